"""What KEDA asks of its own accord, and what it says of a ScaledObject whose load is unknown.

Since 2.21 it takes what the HPA asked for last, where nothing can go to zero and the HPA is
ScalingActive: its polls then ask for the metrics' names alone.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from testbed.cluster import generation
from tests.e2e.lab import Lab
from tests.e2e.recorder import Recorder
from tests.e2e.relay import Door
from tests.e2e.under_load import (
    LESS_LOAD,
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    REPLICAS,
    SHORT_MAX_AGE,
    the_hpa_has_a_number,
)

MANY = 8
HELD = "False FailedGetExternalMetric"
SCALES = "True ValidMetricFound"
METHODS = "GetMetricSpec", "GetMetrics", "IsActive"


async def _asks(lab: Lab, recorder: Recorder) -> set[str]:
    """Return which methods KEDA calls in many polls of its own: calls without a deadline."""
    recorder.calls.clear()

    def polls() -> list[str]:
        return [call.method for call in recorder.calls if call.seconds_left is None]

    def heard_enough() -> bool:
        from_polls = polls().count("GetMetricSpec")
        return min(from_polls, len(recorder.asked("GetMetricSpec")) - from_polls) >= MANY

    await lab.wait(heard_enough, f"{MANY} polls, and as many calls of the HPA's")
    return set(polls())


@pytest.mark.generations
@pytest.mark.skipif(generation.KEDA_IS_OLDEST, reason="it shows no HPAActive")
async def test_values_are_polled_where_zero_is_allowed_or_the_hpa_has_none(
    lab: Lab, recorder: Recorder
) -> None:
    values = recorder.values
    await lab.deploy("bert", replicas=1)
    given = lab.gpu("bert", scalerAddress=recorder.address)
    await lab.autoscale("bert", given)
    await the_hpa_has_a_number(lab)
    # A poll may have begun before KEDA learned of the HPA's condition.
    await lab.stays("bert", 1, for_seconds=3)
    names_only = set(METHODS) if generation.KEDA_IS_OLD else {"GetMetricSpec"}
    assert await _asks(lab, recorder) == names_only

    recorder.values = []
    await lab.shows("bert", "hpa ScalingActive", HELD)
    await lab.shows("bert", "keda HPAActive", HELD)
    assert await _asks(lab, recorder) == set(METHODS)

    recorder.values = values
    await the_hpa_has_a_number(lab)
    await lab.shows("bert", "keda HPAActive", "True")
    await lab.stays("bert", 1, for_seconds=3)
    assert await _asks(lab, recorder) == names_only

    await lab.patch("bert", minReplicaCount=0)
    await lab.stays("bert", 1, for_seconds=3)
    assert await _asks(lab, recorder) == set(METHODS)


async def _show(lab: Lab, workloads: Iterable[str], of_hpa: str, of_keda: str) -> None:
    for name in workloads:
        await lab.shows(name, "hpa ScalingActive", of_hpa)
        await lab.shows(name, "keda HPAActive", of_keda)


@pytest.mark.core
@pytest.mark.generations
@pytest.mark.skipif(generation.KEDA_IS_OLDEST, reason="it shows no HPAActive")
async def test_a_hold_is_shown_by_keda_unless_a_known_demand_keeps_the_replicas(lab: Lab) -> None:
    # A second metric is known to need all four replicas, or two of them.
    demands = {"alone": None, "needed": 280, "less": 140}
    for name, demand in demands.items():
        await lab.deploy(name, replicas=REPLICAS, load=LOAD)
        await lab.offer(f"{name}-demand", demand or 0)
        await lab.reaches(name, REPLICAS)
    for name, demand in demands.items():
        query = lab.offered(f"{name}-demand")
        scaled = {"demandQuery": query, "demandThreshold": "70"} if demand else {}
        # A hold is no failure, so that no `fallback` comes.
        no_failure = {"fallback": {"failureThreshold": 1, "replicas": 7}}
        fields: dict[str, Any] = {} if demand else no_failure
        await lab.autoscale(name, lab.gpu(name, **SHORT_MAX_AGE, **scaled), **fields)
    await _show(lab, demands, SCALES, "True")

    lab.timeline.note("the exporters are gone")
    for exporter in lab.exporters.values():
        await exporter.turn(Door.SHUT)
    for name in demands:
        await lab.becomes(name, "unknown")
        await lab.offer(name, LESS_LOAD)
    held = lab.timeline.now_seconds
    await _show(lab, ["alone", "less"], HELD, HELD)
    for name in demands:
        await lab.stays(name, REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.timeline.path("needed", "hpa ScalingActive", held) == [SCALES], lab.story()
    for name in demands:
        assert lab.path(name) == [REPLICAS], lab.story()
        assert lab.timeline.path(name, "keda Ready", held) == ["True ScaledObjectReady"]

    lab.timeline.note("the exporters are back")
    for exporter in lab.exporters.values():
        await exporter.turn(Door.OPEN)
    await lab.reaches("alone", 2)
    await _show(lab, demands, SCALES, "True")
