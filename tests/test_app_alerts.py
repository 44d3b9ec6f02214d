"""Alerts through the whole process: in by HTTP, out by gRPC, over several replicas."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import Address, ScrapeSettings, Settings
from tests.support.alert_messages import alert, group
from tests.support.processes import free_port
from tests.support.serving import serving
from tests.test_app import DEAD_TARGET, LOCAL, channel, reference, running

RARELY_SECONDS = 3600.0
"""How often there can be news other than alerts."""
TOKEN = "s3cr3t-t0ken"  # noqa: S105 - no secret


def settings(port: int = 0, *peers: int) -> Settings:
    source = ScrapeSettings(
        targets=(DEAD_TARGET,), interval_seconds=RARELY_SECONDS, timeout_seconds=1
    )
    return Settings(
        grpc_address=LOCAL,
        http_address=Address("127.0.0.1", port),
        webhook_token=SecretStr(TOKEN),
        webhook_peers=tuple(f"http://127.0.0.1:{each}" for each in peers),
        sources={"default": source},
    )


async def sent(port: int, message: object, path: str = "/webhook", token: str = TOKEN) -> int:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        url, known = f"http://127.0.0.1:{port}{path}", {"authorization": f"Bearer {token}"}
        return (await client.post(url, json=message, headers=known)).status_code


@asynccontextmanager
async def asking(port: int) -> AsyncIterator[externalscaler_pb2_grpc.ExternalScalerStub]:
    async with channel(port) as opened:
        yield externalscaler_pb2_grpc.ExternalScalerStub(opened)


async def is_active(port: int) -> bool:
    """Ask whether the object is active; its load is unknown, which is to count as zero."""
    async with asking(port) as stub:
        return bool((await stub.IsActive(reference(onUnknown="zero"))).result)


async def test_a_replica_that_takes_over_knows_what_fires_before_it_is_ready() -> None:
    first, second = free_port(), free_port()
    async with running(settings(first, second)) as one:
        await one.ports()
        assert await sent(first, group(alert())) == 200
        async with running(settings(second, first)) as other:
            grpc_port, http_port = await other.ports()
            one.stop.set()
            await asyncio.wait({one.life})
            assert await is_active(grpc_port) is True
            assert await sent(http_port, group(alert(fires=False))) == 200
            assert await is_active(grpc_port) is False


@pytest.mark.slow
async def test_two_processes_agree_and_none_writes_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    ports = [free_port(), free_port()]
    common = {
        "WEBHOOK_TOKEN_FILE": str(token),
        "WEBHOOK_PEERS": ",".join(f"http://127.0.0.1:{port}" for port in ports),
        "LOG_LEVEL": "debug",
    }
    one, two = (serving(HTTP_ADDRESS=f"127.0.0.1:{port}", **common) for port in ports)
    with one as first, two as second:
        grpc_ports = [first.grpc_port, second.grpc_port]
        assert await sent(ports[0], group(alert())) == 200
        assert [await is_active(port) for port in grpc_ports] == [True, True]
        token.write_text("another")
        assert await sent(ports[1], group(alert(fires=False))) == 401
        assert await sent(ports[1], group(alert(fires=False)), token="another") == 200  # noqa: S106 - no secret
        assert [await is_active(port) for port in grpc_ports] == [False, False]
        for process in (first.process, second.process):
            os.kill(process.pid, signal.SIGTERM)
            written, _ = process.communicate(timeout=30)
            assert process.returncode == 0
            assert "alert.fires" in written
            assert TOKEN not in written
