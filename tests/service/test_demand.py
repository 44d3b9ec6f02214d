"""Two metrics of one trigger over a real channel: each is answered by its name, and for itself."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import grpc
import pytest

from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.spec.spec import OnUnknown
from tests.service.harness import Served, reference, refusal, serving
from tests.support.scripted import REFUSED, Clock, ScriptedSource
from tests.support.worlds import World, WorldPod

ASKED = "time()"
"""A demandQuery that is sent as it is written."""
DEMAND = {"demandQuery": ASKED, "demandThreshold": "20"}
PODS = tuple(WorldPod(f"bert-7b6667bd9-{letter * 5}", value=30.0) for letter in "bc")
NAMES = ("gpu-utilization", "gpu-demand")


class Bench(NamedTuple):
    """A server with real evaluations, on a source that answers what a test wants."""

    served: Served
    source: ScriptedSource
    clock: Clock

    def metrics(self, name: str, **metadata: str | None) -> Any:
        """Ask for one metric of a trigger with a demand, as KEDA does."""
        return self.served.stub.GetMetrics(_request(name, metadata))

    async def value(self, name: str, **metadata: str | None) -> float | None:
        """Return the number that KEDA reads; None where the answer holds."""
        values = (await self.metrics(name, **metadata)).metricValues
        assert {metric_value.metricName for metric_value in values} <= {name}
        return values[0].metricValueFloat if values else None


def _request(name: str, metadata: Mapping[str, str | None]) -> pb.GetMetricsRequest:
    trigger = reference(**{**DEMAND, **metadata})
    return pb.GetMetricsRequest(scaledObjectRef=trigger, metricName=name)


@asynccontextmanager
async def bench(
    demand: float | Exception | None = 45.0, query: str = ASKED
) -> AsyncIterator[Bench]:
    """Two pods at 30 %, and a demand."""
    clock = Clock()
    source = ScriptedSource(World(PODS), clock, numbers={query: demand})
    evaluator = Evaluator({"default": source.ports()}, clock=clock)
    try:
        async with serving(evaluator) as served:
            yield Bench(served, source, clock)
    finally:
        await evaluator.close()


async def test_the_spec_names_both_metrics_and_nobody_is_asked() -> None:
    async with bench() as running:
        answer = await running.served.stub.GetMetricSpec(reference(**DEMAND))
        stream = running.served.stub.StreamMetricSpec(reference(**DEMAND))
        assert await anext(aiter(stream)) == answer
        running.served.draining.set()
        assert answer.metricSpecs == [
            pb.MetricSpec(metricName="gpu-utilization", targetSize=70, targetSizeFloat=70),
            pb.MetricSpec(metricName="gpu-demand", targetSize=20, targetSizeFloat=20),
        ]
        assert (running.source.fetched, running.source.numbers_asked) == ([], [])


async def test_each_metric_is_answered_by_its_name() -> None:
    async with bench() as running:
        assert await running.value("gpu-utilization") == 60
        assert running.source.numbers_asked == []
        running.source.fetched.clear()
        assert await running.value("gpu-demand") == 45
        assert (running.source.fetched, running.source.numbers_asked) == ([], [ASKED])
        assert await running.value("bert-load", metricName="bert-load") == 60


async def test_just_after_a_start_a_demand_adds_replicas_and_removes_none() -> None:
    """Two replicas serve 40: a demand of 30 may be only that of the servers scraped by then."""
    async with bench() as running:
        assert await running.value("gpu-demand") is None, "nobody knows of a replica yet"
        await running.value("gpu-utilization")
        assert await running.value("gpu-demand") == 45
        running.source.numbers[ASKED] = 30.0
        running.clock.seconds += 45
        for on_unknown in OnUnknown:
            assert await running.value("gpu-demand", onUnknown=on_unknown) is None
        running.clock.seconds += 45
        assert await running.value("gpu-demand") == 30


@pytest.mark.parametrize("name", ["gpu-demands", "demand", "s0-gpu-demand", "", "x" * 5000])
async def test_a_third_metric_is_refused_with_the_names_of_the_two(name: str) -> None:
    async with bench() as running:
        code, text = await refusal(running.metrics(name))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        expected = "is unknown, expected 'gpu-utilization' or 'gpu-demand'"
        assert text == f"metricName {name[:100]!r} {expected}"
        assert (running.source.fetched, running.source.numbers_asked) == ([], [])


@pytest.mark.parametrize("on_unknown", ["hold", "zero", "error"])
@pytest.mark.parametrize("load", [30.0, 0.0])
@pytest.mark.parametrize(
    ("demand", "why"),
    [(REFUSED, f"source default: {REFUSED}"), (None, "its query gives nothing")],
)
async def test_an_unknown_demand_is_never_zero_and_takes_nothing_from_the_load(
    demand: Exception | None, why: str, load: float, on_unknown: str
) -> None:
    """Idle pods are the harder case: whether they are active depends on the demand."""
    async with bench(demand) as running:
        running.source.world = World(tuple(replace(pod, value=load) for pod in PODS))
        assert await running.value("gpu-utilization", onUnknown=on_unknown) == 2 * load
        active = await running.served.stub.IsActive(reference(**DEMAND, onUnknown=on_unknown))
        assert active.result
        if on_unknown == "error":
            refused = await refusal(running.metrics("gpu-demand", onUnknown="error"))
            assert refused == (grpc.StatusCode.UNAVAILABLE, f"{why}: an error by onUnknown error")
        else:
            assert await running.value("gpu-demand", onUnknown=on_unknown) is None


async def test_without_threshold_the_demand_is_the_only_metric() -> None:
    async with bench() as running:
        answer = await running.served.stub.GetMetricSpec(reference(**DEMAND, threshold=None))
        assert answer.metricSpecs == [
            pb.MetricSpec(metricName="gpu-demand", targetSize=20, targetSizeFloat=20)
        ]
        assert await running.value("gpu-demand", threshold=None) == 45
        code, text = await refusal(running.metrics("gpu-utilization", threshold=None))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert text == "metricName 'gpu-utilization' is unknown, expected 'gpu-demand'"


@pytest.mark.parametrize("on_unknown", ["hold", "error"])
async def test_without_threshold_a_failing_load_lets_the_demand_lower_nothing(
    on_unknown: str,
) -> None:
    """The HPA asks for the demand alone: by that call the workload is known to have replicas."""
    keys = {"threshold": None, "onUnknown": on_unknown}
    async with bench(0.0) as running:
        running.source.trouble = REFUSED
        assert await running.value("gpu-demand", **keys) is None
        code, _ = await refusal(running.served.stub.IsActive(reference(**DEMAND, **keys)))
        assert code is grpc.StatusCode.UNAVAILABLE
        await running.served.stub.GetMetrics(_request("gpu-demand", keys), timeout=30)
        assert (await running.served.stub.IsActive(reference(**DEMAND, **keys))).result
