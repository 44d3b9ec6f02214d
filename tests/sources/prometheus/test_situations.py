"""What is decided on every real server when pods or metrics end, which its answers must show.

`tests/stories/promises/test_situations.py` has other situations, asked as KEDA asks.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.telemetry import facts
from testbed import gpus
from testbed.gpus import Gpu, Up
from testbed.prometheus import PrometheusServer
from testbed.triggers import BERT, spec
from tests.support.bench import landed
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.prometheus_source import connected
from tests.support.scripted import Clock

PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bc"]
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
BESIDE = Gpu("router-0", 50, begin=-3600)


@ON_EVERY_SERVER
@pytest.mark.parametrize(
    ("parts", "state", "value", "active"),
    [
        pytest.param(
            [Up(), BESIDE, Gpu(PODS[0], 90, end=-600)],
            *(State.ENDED, None, False),
            id="the only pod has ended under a good scrape",
        ),
        pytest.param(
            [Up(begin=-3600), BESIDE, Gpu(PODS[0], 90, begin=-3600, end=-1800)],
            *(State.ENDED, None, False),
            id="the only pod has ended half an hour ago",
        ),
        pytest.param(
            [Up(begin=-150), replace(BESIDE, begin=-150)],
            *(State.ENDED, None, False),
            id="no pod is there, and the exporters are known for 150 seconds",
        ),
        pytest.param(
            [Up(begin=-90), replace(BESIDE, begin=-90)],
            *(State.UNKNOWN, None, None),
            id="no pod is there, and the exporters are known for 90 seconds",
        ),
        pytest.param(
            [
                Up(),
                Gpu(PODS[0], 0.5, metric=ENGINE, end=-150),
                Gpu(PODS[0], 1),
                Gpu(PODS[1], 0.5, metric=ENGINE),
                Gpu(PODS[1], 1, end=-150),
            ],
            *(State.MEASURED, 51, True),
            id="a metric ends while another goes on, and the other way round",
        ),
    ],
)
async def test_what_is_decided(
    prometheus: PrometheusServer,
    parts: Sequence[Gpu | Up],
    state: State,
    value: float | None,
    active: bool | None,
) -> None:
    await prometheus.write(gpus.history(prometheus.now(), parts))
    clock = Clock()
    async with connected(prometheus.url, clock=clock, step="15s") as source:
        evaluator = Evaluator({"default": source.ports()}, facts.ignore, clock=clock)
        await evaluator.evaluate(BERT, spec(), None)
        # A busy machine may take longer for the first fetch than a call waits.
        await landed()
        clock.seconds += 1
        decision = await evaluator.evaluate(BERT, spec(), None)
        await evaluator.close()
    assert (decision.state, decision.value, decision.active) == (state, value, active)
