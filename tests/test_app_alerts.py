"""Alerts through the whole process: in by HTTP, out by gRPC, over several replicas."""

import asyncio

from pydantic import SecretStr

from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import Address, ScrapeSettings, Settings
from testbed.processes import free_port
from testbed.triggers import reference
from tests.support.alert_messages import alert, group
from tests.test_app import DEAD_TARGET, LOCAL, browser, channel, running

RARELY_SECONDS = 3600.0
"""How often there can be news other than alerts."""
TOKEN = "s3cr3t-t0ken"


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


async def sent(port: int, message: object) -> int:
    async with browser(port) as client:
        known = {"authorization": f"Bearer {TOKEN}"}
        return (await client.post("/webhook", json=message, headers=known)).status_code


async def is_active(port: int) -> bool:
    """Ask whether the object is active; its load is unknown, which is to count as zero."""
    async with channel(port) as opened:
        stub = externalscaler_pb2_grpc.ExternalScalerStub(opened)
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
