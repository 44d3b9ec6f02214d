"""The life of the process, with its real parts on free ports."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import LogCapture

from keda_gpu_scaler import app, errors
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import Address, ScrapeSettings, Settings
from testbed.triggers import reference
from tests.support import api_server, certificates
from tests.support.api_server import ApiServer

HANG_SECONDS = 30
"""Bounds a test that hangs; far above anything a test takes."""
LOCAL = Address("127.0.0.1", 0)
DEAD_TARGET = "http://127.0.0.1:1/metrics"
SAMPLES = """\
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",namespace="ml",pod="bert-5d4f7c6b8-x2x4z"} 90
"""


def settings(target: str = DEAD_TARGET, *, kubernetes: bool = False) -> Settings:
    return Settings(
        kubernetes=kubernetes,
        grpc_address=LOCAL,
        http_address=LOCAL,
        sources={"default": ScrapeSettings(targets=(target,))},
    )


class Running:
    """A scaler in this process, its ports, and the event that stops it."""

    def __init__(self, chosen: Settings, asking: app.Asking | None = None) -> None:
        self.stop = asyncio.Event()
        self._ports: asyncio.Future[app.Listening] = asyncio.get_running_loop().create_future()
        self.life = asyncio.create_task(
            app.run(chosen, self.stop, self._ports.set_result, asking=asking)
        )

    async def ports(self) -> app.Listening:
        """Wait until it listens."""
        waited: set[asyncio.Future[Any]] = {self.life, self._ports}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        return self._ports.result()


@asynccontextmanager
async def running(chosen: Settings, asking: app.Asking | None = None) -> AsyncIterator[Running]:
    """Run a scaler for a while, and see that it ends in order."""
    async with asyncio.timeout(HANG_SECONDS):
        scaler = Running(chosen, asking)
        try:
            yield scaler
        finally:
            scaler.stop.set()
            await asyncio.wait({scaler.life})
        scaler.life.result()


@asynccontextmanager
async def channel(port: int) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened


@asynccontextmanager
async def browser(port: int) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60
    ) as client:
        yield client


async def test_it_answers_logs_and_counts_although_its_source_is_down(lines: LogCapture) -> None:
    async with running(settings()) as scaler:
        ports = await scaler.ports()
        async with channel(ports.grpc_port) as opened, browser(ports.http_port) as client:
            check = health_pb2_grpc.HealthStub(opened).Check
            answer = await check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
            stub = externalscaler_pb2_grpc.ExternalScalerStub(opened)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await stub.IsActive(reference())
            shown = (await client.get("/metrics")).text
    found = {line["event"]: line for line in lines.entries}
    served = [event for event in found if event.startswith("serve.")]
    assert served == ["serve.starting", "serve.listening", "serve.stopping", "serve.stopped"]
    listening = found["serve.listening"]
    assert (listening["grpc_port"], listening["http_port"]) == ports
    assert found["decision.changed"]["state"] == "unknown"
    assert 'keda_gpu_scaler_rpcs_total{code="UNAVAILABLE",method="IsActive"} 1.0' in shown


async def test_without_a_workload_the_spec_is_answered_while_everything_else_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: LogCapture
) -> None:
    async with api_server.serving(ApiServer()) as api:
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path, token=api_server.TOKEN))
    untargeted = reference()
    del untargeted.scalerMetadata["workload"]
    async with (
        running(settings(kubernetes=True)) as scaler,
        channel((await scaler.ports()).grpc_port) as opened,
    ):
        stub = externalscaler_pb2_grpc.ExternalScalerStub(opened)
        answer = await stub.GetMetricSpec(untargeted)
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await stub.IsActive(untargeted)
    assert answer.metricSpecs[0].targetSizeFloat == 70
    assert unknown.value.code() is grpc.StatusCode.UNAVAILABLE
    reason = "it is not known which pods ml/bert scales: cannot list scaledobjects.keda.sh: "
    assert (unknown.value.details() or "").startswith(reason)
    lost = {line["resource"] for line in lines.entries if line["event"] == "kubernetes.lost"}
    assert lost == {"pods", "replicasets.apps", "jobs.batch", "scaledobjects.keda.sh"}


async def test_a_cluster_that_is_wanted_and_not_configured_is_a_wrong_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(errors.SettingsError, match="KEDA_GPU_SCALER_KUBERNETES: no cluster to ask"):
        await app.run(settings(kubernetes=True), asyncio.Event())


async def test_a_call_in_progress_finishes_while_it_is_not_ready_any_more() -> None:
    answer = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answer.wait()
        writer.write(f"HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\n{SAMPLES}".encode())
        writer.close()

    exporter = await asyncio.start_server(slow, "127.0.0.1", 0)
    port = exporter.sockets[0].getsockname()[1]
    async with exporter, running(settings(f"http://127.0.0.1:{port}")) as scaler:
        ports = await scaler.ports()
        async with channel(ports.grpc_port) as opened, browser(ports.http_port) as client:
            stub = externalscaler_pb2_grpc.ExternalScalerStub(opened)
            call = stub.IsActive(reference())
            await stub.GetMetricSpec(reference())  # answered after the call has begun
            scaler.stop.set()
            while (await client.get("/readyz")).status_code != 503:
                pass
            assert not call.done()
            answer.set()
            assert (await call).result is True


async def test_a_taken_port_is_named_by_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = Address("127.0.0.1", holder.getsockname()[1])
        for name in ("grpc_address", "http_address"):
            setting = f"KEDA_GPU_SCALER_{name.upper()}: cannot listen on"
            with pytest.raises(errors.SettingsError, match=setting):
                await app.run(settings().model_copy(update={name: taken}), asyncio.Event())


@pytest.mark.parametrize(
    ("name", "part"), [("http", "the HTTP server"), ("alerts", "the exchange of alerts")]
)
async def test_a_part_that_ends_by_surprise_ends_the_process(name: str, part: str) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        scaler = Running(settings())
        await scaler.ports()
        (task,) = (task for task in asyncio.all_tasks() if task.get_name() == name)
        task.cancel()
        with pytest.raises(RuntimeError, match=f"{part} ended by surprise"):
            await scaler.life


async def test_a_certificate_that_broke_meanwhile_is_a_wrong_setting(tmp_path: Path) -> None:
    pair = certificates.write(tmp_path, trustme.CA().issue_cert("127.0.0.1"))
    changed = {"grpc_cert_file": pair.cert, "grpc_key_file": pair.key}
    pair.key.unlink()
    with pytest.raises(errors.SettingsError, match=r"no certificate to serve with: .*tls\.key"):
        await app.run(settings().model_copy(update=changed), asyncio.Event())
