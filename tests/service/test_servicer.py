"""The five RPCs answer KEDA with what was decided, and with nothing else."""

import asyncio

import grpc
import pytest
from structlog.testing import capture_logs

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.evaluator import Caller
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from tests.service.harness import (
    HANG_SECONDS,
    OBJECT,
    QUIET,
    SIGNAL,
    Script,
    decided,
    first,
    metrics_request,
    reference,
    refusal,
    rest,
    serving,
)

DOWN = decided(value=None, active=None, refused=True, reason="default unreachable for 4m")


async def test_a_metric_is_one_value_in_both_forms() -> None:
    async with serving(Script(decided(value=90.01))) as served:
        answer = await served.stub.GetMetrics(metrics_request())
        assert answer.metricValues == [
            pb.MetricValue(metricName="gpu-utilization", metricValue=91, metricValueFloat=90.01)
        ]


async def test_an_error_by_choice_is_unavailable_with_its_reason_also_where_the_hpa_asks() -> None:
    async with serving(Script(DOWN)) as served:
        of_hpa = served.stub.GetMetrics(metrics_request(), timeout=HANG_SECONDS)
        assert await refusal(of_hpa) == (grpc.StatusCode.UNAVAILABLE, DOWN.reason)
        polled = served.stub.IsActive(reference())
        assert await refusal(polled) == (grpc.StatusCode.UNAVAILABLE, DOWN.reason)


async def test_nothing_known_is_an_error_until_the_hpa_asks_which_has_a_deadline() -> None:
    nothing_known = decided(value=None, active=None, reason="no answer yet")
    async with serving(Script(nothing_known)) as served:
        polled = served.stub.IsActive(reference())
        assert await refusal(polled) == (grpc.StatusCode.UNAVAILABLE, "no answer yet")
        assert (await served.stub.IsActive(reference(), timeout=HANG_SECONDS)).result
        assert (await served.stub.IsActive(reference())).result


async def test_a_poll_with_nothing_known_hears_the_hpa_s_first_call_which_comes_with_it() -> None:
    """KEDA takes such a poll for "inactive" if it fails."""
    script = Script(decided(value=None, active=None, reason="no answer yet"))
    async with serving(script) as served:
        polled = served.stub.IsActive(reference())
        await script.asked_at_least(1)
        await served.stub.GetMetrics(metrics_request(), timeout=HANG_SECONDS)
        assert (await polled).result


FOR_FORMULA = [
    pytest.param(decided(value=90.0, active=True), 90.0, id="more than a replica"),
    pytest.param(decided(value=5.0, active=True), 70.0, id="busy just now"),
    pytest.param(decided(value=0.0, active=True), 70.0, id="another input"),
    pytest.param(decided(value=None, active=True), 70.0, id="hold"),
    pytest.param(decided(value=1.5, active=False), 0.0, id="blips of an idle GPU"),
    pytest.param(decided(value=None, active=False), 0.0, id="ended"),
    pytest.param(decided(value=0.0, active=False), 0.0, id="idle"),
]


@pytest.mark.parametrize(("decision", "number"), FOR_FORMULA)
async def test_a_poll_for_a_formula_gets_a_number_that_says_what_is_active_says(
    decision: Decision, number: float
) -> None:
    """A formula has no hold: without a number KEDA takes it for inactive."""
    request = metrics_request(forFormula="true")
    async with serving(Script(decision)) as served:
        (polled,) = (await served.stub.GetMetrics(request)).metricValues
        assert polled.metricValueFloat == number
        assert (await served.stub.IsActive(reference(forFormula="true"))).result is (number > 0)


@pytest.mark.parametrize(("decision", "number"), FOR_FORMULA)
async def test_no_number_for_a_formula_s_activity_reaches_the_hpa(
    decision: Decision, number: float
) -> None:
    async with serving(Script(decision)) as served:
        for_formula = metrics_request(forFormula="true")
        asked = await served.stub.GetMetrics(for_formula, timeout=HANG_SECONDS)
        plain = await served.stub.GetMetrics(metrics_request())
        assert asked == plain, number


async def test_a_poll_for_a_formula_fails_where_is_active_does() -> None:
    request = metrics_request(forFormula="true")
    async with serving(Script(DOWN)) as served:
        assert (await refusal(served.stub.GetMetrics(request)))[1] == DOWN.reason
    async with serving(Script(decided(value=None, active=None, reason="no answer yet"))) as served:
        assert (await refusal(served.stub.GetMetrics(request)))[1] == "no answer yet"
        await served.stub.GetMetrics(request, timeout=HANG_SECONDS)  # the HPA's
        (polled,) = (await served.stub.GetMetrics(request)).metricValues
        assert polled.metricValueFloat == 70


async def test_the_evaluation_gets_the_callers_remaining_time() -> None:
    script = Script(QUIET)
    async with serving(script) as served:
        await served.stub.IsActive(reference(), timeout=30)
        await served.stub.GetMetrics(metrics_request())
        (first_object, first_spec, left), (_, second_spec, unbounded) = script.asked
        assert first_object == OBJECT
        assert first_spec is second_spec
        assert left is not None
        assert 0 < left <= 30.5
        assert unbounded is None


async def test_a_stream_waits_for_news_and_a_poll_does_not() -> None:
    script = Script(SIGNAL, seconds_per_step=3600)
    async with serving(script) as served:
        await served.stub.GetMetrics(metrics_request())
        await served.stub.IsActive(reference())
        stream = served.stub.StreamIsActive(reference())
        assert (await first(stream)).result
        assert script.callers == [None, None, Caller.STREAM]


async def test_a_failing_evaluation_is_logged_and_neither_an_end_nor_an_edge() -> None:
    script = Script(SIGNAL, RuntimeError("a bug"), SIGNAL)
    async with serving(script) as served:
        with capture_logs() as logs:
            stream = served.stub.StreamIsActive(reference())
            await script.asked_at_least(6)
        served.draining.set()
        assert [message.result for message in await rest(stream)] == [True]
    (line,) = logs
    assert (line["event"], line["scaled_object"]) == ("stream.evaluation_failed", str(OBJECT))


async def test_an_alert_is_pushed_at_once() -> None:
    script = Script(QUIET, SIGNAL, seconds_per_step=3600)
    async with serving(script) as served:
        stream = served.stub.StreamIsActive(reference())
        await script.asked_at_least(1)
        (alert_changed,) = script.listeners
        alert_changed()
        assert (await first(stream)).result
        served.draining.set()
        assert await rest(stream) == []
    assert script.listeners == []


async def test_a_spec_stream_outlives_the_age_of_its_connection() -> None:
    """KEDA 2.21 reconciles the ScaledObject whenever one opens."""
    async with serving(Script(SIGNAL), connection_max_age_seconds=0.05) as served:
        spec = served.stub.StreamMetricSpec(reference())
        await first(spec)
        for _ in range(3):
            assert len(await rest(served.stub.StreamIsActive(reference()))) == 1
        assert not spec.done()
        served.draining.set()
        assert await rest(spec) == []


@pytest.mark.parametrize("method", ["StreamIsActive", "StreamMetricSpec"])
async def test_a_caller_who_leaves_a_stream_leaves_no_task(method: str) -> None:
    async with serving(Script(SIGNAL)) as served:
        idle = asyncio.all_tasks()
        streams = [getattr(served.stub, method)(reference()) for _ in range(5)]
        for stream in streams:
            await first(stream)
        for stream in streams:
            stream.cancel()
        ended = [await served.next_call() for _ in streams]
        await served.server.stop(3600)
        assert ended == [(method, "CANCELLED")] * 5
        assert asyncio.all_tasks() <= idle
