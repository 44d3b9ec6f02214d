"""Replicas as whole processes, of which one cannot reach its source: in by HTTP, out by gRPC."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from pydantic import SecretStr
from structlog.testing import LogCapture

from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.settings import Address, ScrapeSettings, Settings, WebhookSettings
from tests.support import api_server
from tests.support import http_replies as web
from tests.support.api_server import ApiServer
from tests.support.processes import free_port, until
from tests.test_app import (
    DEAD_TARGET,
    LOCAL,
    SAMPLES,
    browser,
    channel,
    lines,
    reference,
    running,
)

__all__ = ["lines"]

TOKEN = "s3cr3t-t0ken"  # noqa: S105 - no secret
OTHER_NAMES = SAMPLES.replace("bert", "other")


def settings(
    target: str, port: int, *peers: int, kubernetes: bool = False, token: str = TOKEN
) -> Settings:
    return Settings(
        kubernetes=kubernetes,
        grpc_address=LOCAL,
        http_address=Address("127.0.0.1", port),
        webhook=WebhookSettings(
            token=SecretStr(token), peers=tuple(f"http://127.0.0.1:{each}" for each in peers)
        ),
        sources={"default": ScrapeSettings(targets=(target,))},
    )


@asynccontextmanager
async def asking(port: int) -> AsyncIterator[externalscaler_pb2_grpc.ExternalScalerStub]:
    async with channel(port) as opened:
        yield externalscaler_pb2_grpc.ExternalScalerStub(opened)


@asynccontextmanager
async def seeing(
    port: int, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[externalscaler_pb2_grpc.ExternalScalerStub]:
    """Run a replica that sees its exporter and the cluster: the workload has no pods."""
    async with (
        web.HttpServer(web.says(OTHER_NAMES, content_type="text/plain")) as exporter,
        api_server.serving(ApiServer()) as api,
    ):
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(directory, token=api_server.TOKEN))
        async with (
            running(settings(exporter.url, port, kubernetes=True)) as scaler,
            asking((await scaler.ports()).grpc_port) as stub,
        ):

            async def is_scraped() -> bool:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await stub.IsActive(reference())
                    return True
                return False

            await until(is_scraped, 30, "the first scrape is over")
            yield stub
        await web.generators_closed()


@asynccontextmanager
async def cut_off(
    port: int, *peers: int, token: str = TOKEN
) -> AsyncIterator[externalscaler_pb2_grpc.ExternalScalerStub]:
    """Run a replica that does not reach its exporter, and nothing of the cluster."""
    async with (
        running(settings(DEAD_TARGET, port, *peers, token=token)) as scaler,
        asking((await scaler.ports()).grpc_port) as stub,
        browser(port) as client,
    ):
        yield stub
        assert (await client.get("/readyz")).status_code == 200


async def is_unknown(stub: externalscaler_pb2_grpc.ExternalScalerStub, **metadata: str) -> str:
    """Ask whether the workload is active, which has to fail; return why."""
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        await stub.IsActive(reference(**metadata))
    assert unknown.value.code() is grpc.StatusCode.UNAVAILABLE
    return unknown.value.details() or ""


async def test_one_that_is_cut_off_answers_what_the_other_one_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: LogCapture
) -> None:
    first, second = free_port(), free_port()
    metric = externalscaler_pb2.GetMetricsRequest(
        scaledObjectRef=reference(), metricName="gpu-utilization"
    )
    async with (
        seeing(second, tmp_path, monkeypatch) as other,
        cut_off(first, first, second) as stub,
    ):
        assert (await other.IsActive(reference())).result is False
        assert (await stub.IsActive(reference())).result is False
        assert (await stub.GetMetrics(metric)).metricValues[0].metricValueFloat == 0
    said = [line["reason"] for line in lines.entries if line["event"] == "decision.changed"]
    assert said[1].startswith(
        f"empty, value 0, inactive by the replica http://127.0.0.1:{second}, asked 0 s ago, "
        "because here: source default: "
    )


@pytest.mark.parametrize(("threshold", "token"), [("80", TOKEN), ("70", "another")])
async def test_of_another_spec_or_with_another_token_the_other_one_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: str, token: str
) -> None:
    """Nor of a trigger that KEDA did not ask it about."""
    first, second = free_port(), free_port()
    async with (
        seeing(second, tmp_path, monkeypatch) as other,
        cut_off(first, second, token=token) as stub,
    ):
        assert (await other.IsActive(reference())).result is False
        await is_unknown(stub, threshold=threshold)


async def test_two_that_are_cut_off_do_not_answer_in_a_circle() -> None:
    first, second = free_port(), free_port()
    async with cut_off(first, first, second) as one, cut_off(second, first, second) as other:
        for stub in (one, other, one, other):
            assert "by the replica" not in await is_unknown(stub)


@pytest.mark.slow
@pytest.mark.parametrize("reply", [web.hangs, web.drips, web.closes, web.says("{}", 404)])
async def test_a_replica_that_does_not_answer_costs_one_call_its_time(reply: web.Reply) -> None:
    async with web.HttpServer(reply) as server:
        async with cut_off(free_port(), server.port) as stub:
            await is_unknown(stub)
            async with asyncio.timeout(2):  # before the replica is given up
                await is_unknown(stub)
        await web.generators_closed()


@pytest.mark.slow
async def test_a_replica_that_a_network_policy_cuts_off_costs_one_call_its_time() -> None:
    """Its packets are dropped, as those to a socket of which nobody takes the connections."""
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)  # noqa: FBT003 - socket's
            waiting.connect_ex(deaf.getsockname())
        async with cut_off(free_port(), deaf.getsockname()[1]) as stub:
            await is_unknown(stub)
            async with asyncio.timeout(2):
                await is_unknown(stub)


ENDED = {"state": "ended", "value": None, "active": False, "activated": False}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decision", "is_taken"),
    [
        (ENDED, True),
        (ENDED | {"more": [{"a": 1}]}, True),
        (ENDED | {"state": "unknown"}, False),
        (ENDED | {"state": "gone"}, False),
        (ENDED | {"active": None}, False),
        (ENDED | {"active": 0}, False),
        (ENDED | {"value": -1}, False),
        (ENDED | {"value": "0"}, False),
        (ENDED | {"value": 2**53}, False),
        ({"state": "ended"}, False),
        ([], False),
    ],
)
async def test_an_answer_is_taken_whole_or_not_at_all(decision: object, *, is_taken: bool) -> None:
    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(request.body)["triggers"] if request.body else []
        told = [{"trigger": one} | decision for one in asked if isinstance(decision, dict)]
        await web.says(json.dumps({"decisions": told or decision}))(request, writer)

    async with web.HttpServer(reply) as server:
        async with cut_off(free_port(), server.port) as stub:
            if is_taken:
                assert (await stub.IsActive(reference())).result is False
            else:
                assert "by the replica" not in await is_unknown(stub)
        assert "bert" in server.requests[-1].body.decode()
        await web.generators_closed()
