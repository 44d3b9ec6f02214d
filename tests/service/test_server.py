"""The server binds only one port, shows what it offers, and stops without cutting calls off."""

import grpc
import pytest
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

from keda_gpu_scaler import errors, service
from keda_gpu_scaler.service import server, servicer
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from tests.service.harness import (
    QUIET,
    SIGNAL,
    Script,
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
    assert grace > 1000 * servicer.LONGEST_SPEC_SECONDS
    endless = dict(server.channel_options(connection_max_age_seconds=1e9))
    assert endless["grpc.max_connection_age_ms"] == 2**31 - 1  # as much as gRPC can count
    assert endless["grpc.max_connection_age_grace_ms"] == 2**31 - 1


async def test_health_is_what_a_probe_needs_and_answers_also_at_the_limit_of_calls() -> None:
    async with serving(Script(QUIET), max_concurrent_rpcs=0) as served:
        health = health_pb2_grpc.HealthStub(served.channel)
        for name in ("", "externalscaler.ExternalScaler", "grpc.health.v1.Health"):
            answer = await health.Check(pb.HealthCheckRequest(service=name))
            assert answer.status == pb.HealthCheckResponse.SERVING
        code, _ = await refusal(health.Check(pb.HealthCheckRequest(service="other")))
        assert code is grpc.StatusCode.NOT_FOUND
        code, _ = await refusal(health.Watch(pb.HealthCheckRequest()))
        assert code is grpc.StatusCode.UNIMPLEMENTED
