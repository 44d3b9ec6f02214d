"""The server binds only one port, shows what it offers, and stops without cutting calls off."""

from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

from keda_gpu_scaler import errors, service
from keda_gpu_scaler.service import server, streams
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from tests.service.harness import (
    QUIET,
    SIGNAL,
    Script,
    Served,
    first,
    reference,
    refusal,
    rest,
    serving,
)


def unstarted(address: str) -> service.GrpcServer:
    return service.GrpcServer(
        Script(QUIET),
        access=Access(),
        address=address,
        observe=facts.ignore,
        max_concurrent_rpcs=10,
        connection_max_age_seconds=3600,
    )


@pytest.mark.parametrize("address", ["", "6000", "127.0.0.1:port", "192.0.2.1:6000"])
async def test_an_address_that_is_not_ours_is_a_wrong_setting(address: str) -> None:
    with pytest.raises(errors.SettingsError, match="expected host:port"):
        await unstarted(address).start()


async def test_open_streams_end_well_and_do_not_hold_a_stopping_server() -> None:
    async with serving(Script(SIGNAL, seconds_per_step=3600)) as served:
        streams = [
            served.stub.StreamIsActive(reference()),
            served.stub.StreamMetricSpec(reference()),
        ]
        for stream in streams:
            await first(stream)
        await served.server.stop(3600)
        assert served.draining.is_set()
        assert [await rest(stream) for stream in streams] == [[], []]


async def test_a_call_that_does_not_end_is_cut_after_the_grace() -> None:
    script = Script(SIGNAL)
    script.gate.clear()
    async with serving(script) as served:
        call = served.stub.IsActive(reference())
        await script.asked_at_least(1)
        await served.server.stop(0.01)
        assert (await refusal(call))[0] is grpc.StatusCode.UNAVAILABLE
        assert await served.next_call() == ("IsActive", "CANCELLED")


def test_a_connection_outlives_the_streams_opened_on_it() -> None:
    options = dict(server.channel_options(connection_max_age_seconds=600))
    age, grace = options["grpc.max_connection_age_ms"], options["grpc.max_connection_age_grace_ms"]
    assert age == 600_000
    assert grace > 1000 * streams.LONGEST_SPEC_SECONDS
    endless = dict(server.channel_options(connection_max_age_seconds=1e9))
    assert endless["grpc.max_connection_age_ms"] == 2**31 - 1  # as much as gRPC can count
    assert endless["grpc.max_connection_age_grace_ms"] == 2**31 - 1


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
