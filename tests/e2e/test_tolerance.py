"""A tolerance of its own for each direction of an HPA, which KEDA hands on from `behavior`."""

from itertools import pairwise
from typing import Any

import pytest

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from tests.e2e import generation
from tests.e2e.lab import Lab
from tests.e2e.recorder import METRIC, Recorder

REPLICAS, TARGET = 12, 10
TOLERANCES = {
    "clusters": {},
    "wide": {"up": 0.25, "down": 0.25},
    "narrow": {"up": 0.02, "down": 0.02},
    "up": {"up": 0.25},
    "down": {"down": 0.25},
    "none": {"up": 0.0, "down": 0.0},
}
VALUES = (121, 130, 140, 160, 120, 109, 98, 80)
"""With twelve replicas: 1.01, 1.08, 1.17, 1.33, 1, 0.91, 0.82 and 0.67 of the target."""


def modelled(name: str, value: float, replicas: int) -> int:
    """Return the replicas at which the model of the HPA comes to rest."""
    metric = rules.Metric(value=value, target=TARGET)
    tolerances = rules.Tolerances(**TOLERANCES[name])
    step = rules.recommend([metric], rules.Scale.steady(replicas), tolerances)
    assert step is not None
    return replicas if step.replicas == replicas else modelled(name, value, step.replicas)


def behavior(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    for direction, tolerance in TOLERANCES[name].items():
        field = {"up": "scaleUp", "down": "scaleDown"}[direction]
        found[field] = found.get(field, {}) | {"tolerance": str(tolerance)}
    return {"horizontalPodAutoscalerConfig": {"behavior": found}}


@pytest.mark.generations
@pytest.mark.skipif(generation.KEDA_IS_OLDEST, reason="its ScaledObject has no such field")
async def test_each_direction_of_an_hpa_has_its_own_tolerance_as_the_model_says(
    lab: Lab, recorder: Recorder
) -> None:
    def say(value: float) -> None:
        lab.timeline.note(f"the sum is {value:g}")
        recorder.values = [pb.MetricValue(metricName=METRIC, metricValueFloat=value)]
        recorder.calls.clear()

    def syncs(name: str) -> int:
        asked = recorder.asked("GetMetrics", workload=name)
        return len([call for call in asked if call.seconds_left is not None])

    say(REPLICAS * TARGET)
    for name in TOLERANCES:
        await lab.deploy(name, replicas=REPLICAS, gpus=0)
        given = lab.gpu(name, scalerAddress=recorder.address)
        await lab.autoscale(name, given, max_replicas=100, advanced=behavior(name))
    paths = {name: [REPLICAS] for name in TOLERANCES}
    for value in (REPLICAS * TARGET, *VALUES):
        say(value)
        for name, path in paths.items():
            path.append(modelled(name, value, path[-1]))

            async def used(name: str = name) -> bool:
                return syncs(name) >= 2

            await lab.wait(used, f"the HPA of {name} has used {value}")
            await lab.reaches(name, path[-1])
    for name, path in paths.items():
        changes = [now for before, now in pairwise([0, *path]) if now != before]
        assert lab.path(name) == changes, f"{name}\n{lab.story()}"
    assert len({tuple(path) for path in paths.values()}) == len(TOLERANCES)
