"""`serve` with one good exporter and one that answers too much, for ever, or in secrets."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.stories.promises.stack import reference
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer
from tests.support.processes import until

BOUND_SECONDS = 60.0
DEADLINE_SECONDS = 5.0
"""Within this, calls are answered and the process ends, whatever the bad exporter does."""
SHORT = {"warmup": "0s", "window": "5s", "activationWindow": "10s"}
SECRET = "s3cr3t-of-the-test"  # noqa: S105 - guards nothing
FOREIGN = "".join(f'node_cpu{{cpu="{number}"}} {number}\n' for number in range(10))
HUGE = FOREIGN * (16 * 2**20 // len(FOREIGN))


def gpu(load: float) -> web.Reply:
    """Answer with one GPU of one pod."""
    labels = 'gpu="0",UUID="GPU-0",namespace="ml",pod="bert-7b6667bd9-bcdfg",container="bert"'
    return web.says(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {load}\n", content_type="text/plain")


async def dust(_: web.Request, writer: asyncio.StreamWriter) -> None:
    """Begin an answer, and send it in chunks of one byte for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n\n\r\n" * 1000)
        await writer.drain()


@dataclass(slots=True)
class Serving:
    """A process, what it says, and a client of it."""

    process: asyncio.subprocess.Process
    stub: Any = None
    http_url: str = ""
    lines: list[str] = field(default_factory=list)

    async def listen(self) -> None:
        """Read its log, as a container's runtime does, to the end."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode())

    def ports(self) -> dict[str, int] | None:
        """Return its ports, once it has said them."""
        said = map(json.loads, self.lines)
        return next((one for one in said if one["event"] == "serve.listening"), None)

    async def value(self) -> float | None:
        """Ask GetMetricSpec, GetMetrics and `/healthz`, each within the deadline."""
        asked = reference(**SHORT)
        await self.stub.GetMetricSpec(asked, timeout=DEADLINE_SECONDS)
        async with httpx.AsyncClient(timeout=DEADLINE_SECONDS, trust_env=False) as client:
            assert (await client.get(f"{self.http_url}/healthz")).status_code == 200
        request = pb.GetMetricsRequest(scaledObjectRef=asked, metricName="gpu-utilization")
        with suppress(grpc.aio.AioRpcError):  # nothing is known yet
            answer = await self.stub.GetMetrics(request, timeout=DEADLINE_SECONDS)
            return next((float(one.metricValueFloat) for one in answer.metricValues), None)
        return None


@pytest_asyncio.fixture
async def good() -> AsyncIterator[HttpServer]:
    async with HttpServer(gpu(90)) as running:
        yield running


@pytest_asyncio.fixture
async def bad() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.says(HUGE)) as running:
        yield running


@asynccontextmanager
async def serving(*targets: str) -> AsyncIterator[Serving]:
    settings = {
        "GRPC_ADDRESS": "127.0.0.1:0",
        "HTTP_ADDRESS": "127.0.0.1:0",
        "SCRAPE_TARGETS": ",".join(targets),
        "SCRAPE_INTERVAL": "3s",
        "LOG_LEVEL": "debug",
    }
    environ = {**os.environ, **{f"KEDA_GPU_SCALER_{name}": text for name, text in settings.items()}}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keda_gpu_scaler", "serve"),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    running = Serving(process)
    listening = asyncio.create_task(running.listen())

    async def is_up() -> bool:
        return running.ports() is not None

    try:
        await until(is_up, BOUND_SECONDS, "it listens")
        ports = running.ports() or {}
        running.http_url = f"http://127.0.0.1:{ports['http_port']}"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{ports['grpc_port']}") as channel:
            running.stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
            yield running
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await listening
        await process.wait()


@pytest.mark.slow
async def test_sixteen_mebibytes_about_other_things_do_not_make_a_good_exporter_stale(
    good: HttpServer, bad: HttpServer
) -> None:
    async with serving(f"{good.url}/metrics?token={SECRET}", bad.url) as scaler:
        for load in (90, 50):
            good.reply = gpu(load)

            async def is_known(load: float = load) -> bool:
                return await scaler.value() == load

            await until(is_known, BOUND_SECONDS, f"a load of {load} is measured")
        async with httpx.AsyncClient(timeout=DEADLINE_SECONDS, trust_env=False) as client:
            metrics = (await client.get(f"{scaler.http_url}/metrics")).text

    assert good.requests[0].path == f"/metrics?token={SECRET}"
    assert SECRET not in "".join([metrics, *scaler.lines])


@pytest.mark.slow
@pytest.mark.parametrize("reply", [web.says(HUGE), dust], ids=["huge", "endless"])
async def test_calls_are_answered_and_the_process_ends_whatever_an_exporter_answers(
    good: HttpServer, bad: HttpServer, reply: web.Reply
) -> None:
    bad.reply = reply
    async with serving(good.url, bad.url) as scaler:

        async def is_scraped() -> bool:
            await scaler.value()
            return len(bad.requests) > 1

        await until(is_scraped, BOUND_SECONDS, "it is scraped")
        scaler.process.send_signal(signal.SIGTERM)
        status = await asyncio.wait_for(scaler.process.wait(), DEADLINE_SECONDS)

    assert status == 0
