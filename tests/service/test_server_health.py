"""Health says whether this process takes calls: SERVING until it drains."""

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

from keda_gpu_scaler.service.interceptor import BUSY, OTHER_STREAMS
from tests.service.harness import QUIET, Script, Served, first, refusal, rest, serving

SERVING = pb.HealthCheckResponse.SERVING
NOT_SERVING = pb.HealthCheckResponse.NOT_SERVING
UNKNOWN = pb.HealthCheckResponse.SERVICE_UNKNOWN
SERVICES = ["", "externalscaler.ExternalScaler", "grpc.health.v1.Health"]


def health_of(served: Served) -> Any:  # noqa: ANN401 - generated code has no types
    return health_pb2_grpc.HealthStub(served.channel)


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_is_serving_until_the_server_drains(service: str) -> None:
    request = pb.HealthCheckRequest(service=service)
    async with serving(Script(QUIET)) as served:
        assert (await health_of(served).Check(request)).status == SERVING
        served.draining.set()
        assert (await health_of(served).Check(request)).status == NOT_SERVING


async def test_a_service_that_is_not_here_is_not_found() -> None:
    async with serving(Script(QUIET)) as served:
        code, _ = await refusal(health_of(served).Check(pb.HealthCheckRequest(service="other")))

        assert code is grpc.StatusCode.NOT_FOUND


async def test_all_services_can_be_listed() -> None:
    async with serving(Script(QUIET)) as served:
        statuses = (await health_of(served).List(pb.HealthListRequest())).statuses

        assert {name: answer.status for name, answer in statuses.items()} == dict.fromkeys(
            SERVICES, SERVING
        )


@pytest.mark.parametrize(
    ("service", "expected"), [("", [SERVING, NOT_SERVING]), ("other", [UNKNOWN])]
)
async def test_a_watcher_hears_of_the_change_and_does_not_hold_a_stopping_server(
    service: str, expected: list[int]
) -> None:
    async with serving(Script(QUIET)) as served:
        stream = health_of(served).Watch(pb.HealthCheckRequest(service=service))
        heard = [await first(stream)]
        await served.server.stop(3600)
        heard += await rest(stream)

        assert [message.status for message in heard] == expected


async def test_health_answers_when_the_scaler_is_at_its_limit() -> None:
    async with serving(Script(QUIET), max_concurrent_rpcs=0) as served:
        assert (await health_of(served).Check(pb.HealthCheckRequest())).status == SERVING


async def test_there_are_at_most_a_hundred_watches_and_checks_beyond_that() -> None:
    async with serving(Script(QUIET)) as served:
        watches = [health_of(served).Watch(pb.HealthCheckRequest()) for _ in range(OTHER_STREAMS)]
        for watch in watches:
            assert (await first(watch)).status == SERVING

        assert await refusal(health_of(served).Watch(pb.HealthCheckRequest())) == BUSY
        assert (await health_of(served).Check(pb.HealthCheckRequest())).status == SERVING

        watches[0].cancel()
        async with asyncio.timeout(30):
            while not await _is_answered(health_of(served).Watch(pb.HealthCheckRequest())):
                pass


async def _is_answered(watch: Any) -> bool:  # noqa: ANN401 - as above
    """Tell whether a watch is answered, and not refused."""
    try:
        return bool((await first(watch)).status == SERVING)
    except grpc.aio.AioRpcError:
        return False
