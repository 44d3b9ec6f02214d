"""What is decided on every real server, in one situation after the other.

A situation is what exporters and kube-state-metrics have shown for a while, and what the scaler
has to decide from it. `tests/stories/promises/test_situations.py` has others, asked as KEDA asks.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.telemetry import facts
from tests.support import gpus, kube_state
from tests.support.bench import landed
from tests.support.gpus import Gpu, Up
from tests.support.kube_state import KubePod, Listed
from tests.support.prometheus import ON_EVERY_SERVER, PrometheusServer
from tests.support.prometheus_source import connected
from tests.support.scripted import Clock
from tests.support.series import Series
from tests.support.triggers import BERT, spec

PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcd"]
OTHER_NODE = "10.0.0.2:9400"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
BLANK = 2_147_483_632.0
"""What DCGM writes where it has no number."""
KUBE_STATE_METRICS = (kube_state.up(), kube_state.BERT, kube_state.replicas(2))
Part = Gpu | Up | KubePod | Listed
_ACTIVE = {State.PARTIAL: True, State.UNKNOWN: None, State.ENDED: False, State.EMPTY: False}
"""None: that is not known either."""


class Situation(NamedTuple):
    """What a server holds, and what follows from it at a threshold of 70."""

    parts: Sequence[Part]
    state: State
    value: float | None = None

    def series(self, at: float) -> list[Series]:
        """Return everything that is to be stored for a situation that ends at `at`."""
        shown = [part for part in self.parts if isinstance(part, Gpu | Up)]
        listed = [part for part in self.parts if isinstance(part, KubePod | Listed)]
        return [*gpus.history(at, shown), *kube_state.history(at, listed)]

    def follows(self, decision: Decision) -> bool:
        expected = (self.state, self.value, _ACTIVE.get(self.state, bool(self.value)))
        return (decision.state, decision.value, decision.active) == expected


def _slices() -> list[Part]:
    """Return two slices of one GPU: utilization reads 0 where engines are busy."""
    return [
        Gpu(pod, share, uuid="GPU-a", metric=metric, extra=gpus.mig(number))
        for number, (pod, busy) in enumerate(zip(PODS[:2], (0.5, 0.25), strict=True))
        for metric, share in ((ENGINE, busy), ("DCGM_FI_DEV_GPU_UTIL", 0.0))
    ]


READY = KubePod(name=PODS[0])
SITUATIONS = {
    "two pods on two nodes, and another workload's": Situation(
        [
            Up(),
            Up(instance=OTHER_NODE),
            Gpu(PODS[0], 90),
            Gpu(PODS[1], 60, instance=OTHER_NODE, convention="plain"),
            Gpu("bert-canary-7b6667bd9-bbbbb", 100),
        ],
        State.MEASURED,
        150,
    ),
    "two slices of one GPU, whose utilization reads 0": Situation(
        [Up(), *_slices()], State.MEASURED, 75
    ),
    "two jobs scrape the same exporter": Situation(
        [Up(), Up(job="again"), Gpu(PODS[0], 80), Gpu(PODS[0], 80, job="again")],
        State.MEASURED,
        80,
    ),
    "a number that no GPU shows": Situation([Up(), Gpu(PODS[0], BLANK)], State.UNKNOWN),
    "one exporter of two is down": Situation(
        [
            Up(),
            Up(instance=OTHER_NODE, down=-150),
            Gpu(PODS[0], 20),
            Gpu(PODS[1], 90, instance=OTHER_NODE, end=-150),
        ],
        State.PARTIAL,
    ),
    "the only pod has ended under a good scrape": Situation(
        [Up(), Gpu("router-0", 50), Gpu(PODS[0], 90, end=-600)], State.ENDED
    ),
    "the only pod has ended half an hour ago": Situation(
        [
            Up(begin=-3600),
            Gpu("router-0", 50, begin=-3600),
            Gpu(PODS[0], 90, begin=-3600, end=-1800),
        ],
        State.ENDED,
    ),
    "no pod is there, and the exporters are known for 150 seconds": Situation(
        [Up(begin=-150), Gpu("router-0", 50, begin=-150)], State.ENDED
    ),
    "no pod is there, and the exporters are known for 90 seconds": Situation(
        [Up(begin=-90), Gpu("router-0", 50, begin=-90)], State.UNKNOWN
    ),
    "a metric ends while another goes on, and the other way round": Situation(
        [
            Up(),
            Gpu(PODS[0], 0.5, metric=ENGINE, end=-150),
            Gpu(PODS[0], 1),
            Gpu(PODS[1], 0.5, metric=ENGINE),
            Gpu(PODS[1], 1, end=-150),
        ],
        State.MEASURED,
        51,
    ),
    "its owner has no replicas": Situation(
        [Up(), kube_state.up(), kube_state.BERT, kube_state.replicas(0)], State.EMPTY, 0
    ),
    "a pod that loads at 100 % beside one that works": Situation(
        [
            Up(),
            *KUBE_STATE_METRICS,
            READY,
            KubePod(name=PODS[1], ready=False, created=-120),
            Gpu(PODS[0], 40),
            Gpu(PODS[1], 100, begin=-90),
        ],
        State.MEASURED,
        40,
    ),
    "a Ready pod whose exporter shows nothing": Situation(
        [
            Up(),
            Up(instance=OTHER_NODE, down=-300),
            *KUBE_STATE_METRICS,
            READY,
            KubePod(name=PODS[1]),
            Gpu(PODS[0], 30),
            Gpu(PODS[1], 90, instance=OTHER_NODE, end=-300),
        ],
        State.PARTIAL,
    ),
    "idle for longer than the activationWindow": Situation(
        [Up(), *KUBE_STATE_METRICS, READY, Gpu(PODS[0], 0)], State.MEASURED, 0
    ),
}


@ON_EVERY_SERVER
@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
async def test_what_is_decided(prometheus: PrometheusServer, situation: Situation) -> None:
    await prometheus.write(situation.series(prometheus.now()))
    clock = Clock()
    async with connected(prometheus.url, clock=clock, step="15s") as source:
        evaluator = Evaluator({"default": source.ports()}, facts.ignore, clock=clock)
        await evaluator.evaluate(BERT, spec(), None)
        # A busy machine may take longer for the first fetch than a call waits.
        await landed()
        clock.seconds += 1
        decision = await evaluator.evaluate(BERT, spec(), None)
        await evaluator.close()
    assert situation.follows(decision), decision
