"""`serve` with one good exporter and one that answers too much, for ever, or in secrets."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from testbed.processes import until
from testbed.triggers import reference
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer
from tests.support.serving import DEADLINE_SECONDS, Scaler, writing_to

BOUND_SECONDS = 60.0
SHORT = {"warmup": "0s", "window": "5s", "activationWindow": "10s"}
SECRET = "s3cr3t-of-the-test"
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


async def value(scaler: Scaler) -> float | None:
    """Ask GetMetricSpec, GetMetrics and `/healthz`, each within the deadline."""
    return await asyncio.to_thread(_value, scaler)


def _value(scaler: Scaler) -> float | None:
    assert scaler.specify(**SHORT) == 70
    assert scaler.get("/healthz") == "ok\n"
    asked = reference(**SHORT)
    request = pb.GetMetricsRequest(scaledObjectRef=asked, metricName="gpu-utilization")
    with suppress(grpc.RpcError):  # nothing is known yet
        answer = scaler.stub.GetMetrics(request, timeout=DEADLINE_SECONDS)
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


@contextmanager
def serving(log: Path, *targets: str) -> Iterator[Scaler]:
    settings = {"SCRAPE_TARGETS": ",".join(targets), "SCRAPE_INTERVAL": "3s", "LOG_LEVEL": "debug"}
    with log.open("wb") as file, writing_to(file, file, **settings) as scaler:
        yield scaler


@pytest.mark.slow
async def test_sixteen_mebibytes_about_other_things_do_not_make_a_good_exporter_stale(
    good: HttpServer, bad: HttpServer, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with serving(log, f"{good.url}/metrics?token={SECRET}", bad.url) as scaler:
        for load in (90, 50):
            good.reply = gpu(load)

            async def is_known(load: float = load) -> bool:
                return await value(scaler) == load

            await until(is_known, BOUND_SECONDS, f"a load of {load} is measured")
        metrics = await asyncio.to_thread(scaler.get, "/metrics")
    assert good.requests[0].path == f"/metrics?token={SECRET}"
    assert SECRET not in metrics + log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("reply", [web.says(HUGE), dust], ids=["huge", "endless"])
async def test_calls_are_answered_and_the_process_ends_whatever_an_exporter_answers(
    good: HttpServer, bad: HttpServer, reply: web.Reply, tmp_path: Path
) -> None:
    bad.reply = reply
    with serving(tmp_path / "log", good.url, bad.url) as scaler:

        async def is_scraped() -> bool:
            await value(scaler)
            return len(bad.requests) > 1

        await until(is_scraped, BOUND_SECONDS, "it is scraped")
        scaler.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(scaler.process.wait, DEADLINE_SECONDS) == 0
