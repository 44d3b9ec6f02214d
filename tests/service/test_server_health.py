"""Health says that this process takes calls, and offers nothing beside that."""

from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

from tests.service.harness import QUIET, Script, Served, refusal, serving

SERVING = pb.HealthCheckResponse.SERVING


def health_of(served: Served) -> Any:  # noqa: ANN401 - generated code has no types
    return health_pb2_grpc.HealthStub(served.channel)


async def test_a_service_is_serving_and_one_that_is_not_here_is_not_found() -> None:
    async with serving(Script(QUIET)) as served:
        for service in ("", "externalscaler.ExternalScaler", "grpc.health.v1.Health"):
            answer = await health_of(served).Check(pb.HealthCheckRequest(service=service))
            assert answer.status == SERVING
        code, _ = await refusal(health_of(served).Check(pb.HealthCheckRequest(service="other")))
        assert code is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("method", ["Watch", "List"])
async def test_what_a_probe_needs_not_is_unimplemented(method: str) -> None:
    async with serving(Script(QUIET)) as served:
        request = pb.HealthCheckRequest() if method == "Watch" else pb.HealthListRequest()
        code, _ = await refusal(getattr(health_of(served), method)(request))
        assert code is grpc.StatusCode.UNIMPLEMENTED


async def test_health_answers_when_the_scaler_is_at_its_limit() -> None:
    async with serving(Script(QUIET), max_concurrent_rpcs=0) as served:
        assert (await health_of(served).Check(pb.HealthCheckRequest())).status == SERVING
