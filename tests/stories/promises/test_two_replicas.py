"""Two replicas of the scaler on one Prometheus, and one that was started later.

They share nothing but the Prometheus: each has a source, a cache and a memory of its own. They are
asked in turn, again and again, while the load changes at every sample and a pod joins.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from tests.support import kube_state, triggers
from tests.support.gpus import Gpu, Up, history
from tests.support.kube_state import KubePod
from tests.support.processes import until
from tests.support.prometheus import PrometheusServer
from tests.support.series import Series

STEP_SECONDS = 3
PATIENCE_SECONDS = 120.0
BERT = ScaledObject("ml", "bert")
FIRST, JOINING = "bert-7b6667bd9-bbbbb", "bert-7b6667bd9-ccccc"
JOINS_AFTER_SECONDS = 12
AHEAD_SECONDS = 240
"""Samples are written ahead of time, for longer than the test waits."""


@dataclass(slots=True)
class Replica:
    """One replica: what it decided, by the instant of the samples that it decided from."""

    evaluator: Evaluator
    decided: dict[int, Decision] = field(default_factory=dict)

    async def ask(self) -> None:
        """Ask as a poll of KEDA's does."""
        await self.evaluator.evaluate(BERT, triggers.spec(window="6s", warmup="6s"), None)

    def observe(self, fact: facts.Fact) -> None:
        """Keep a decision that is about a snapshot, unless its instant is in doubt."""
        if not isinstance(fact, facts.Evaluated) or fact.snapshot_age_seconds is None:
            return
        at = (time.time() - fact.snapshot_age_seconds) / STEP_SECONDS
        if abs(at - round(at)) < 0.4:
            self.decided[round(at) * STEP_SECONDS] = fact.decision


@asynccontextmanager
async def replica(prometheus: PrometheusServer) -> AsyncIterator[Replica]:
    settings = PrometheusSettings.model_validate(
        {"url": prometheus.url, "step": f"{STEP_SECONDS}s"}
    )
    seen: list[Replica] = []

    def observe(fact: facts.Fact) -> None:
        for one in seen:
            one.observe(fact)

    source = PrometheusSource("default", settings, observe)
    made = Replica(Evaluator({"default": source.ports()}, observe))
    seen.append(made)
    try:
        yield made
    finally:
        await made.evaluator.close()
        await source.close()


def climbing(now: float, pod: str, begin: float) -> Series:
    """Return a GPU whose utilization is another one at every sample, from a moment on."""
    labels = Gpu(pod, 0).series(now).labels
    times = range(int(now + begin), int(now + AHEAD_SECONDS))
    return Series("DCGM_FI_DEV_GPU_UTIL", labels, [(at, 20 + at * 7 % 73) for at in times])


async def test_replicas_give_the_same_answers_at_the_same_instant_also_one_that_came_later(
    prometheus: PrometheusServer,
) -> None:
    now = time.time()
    end = now + AHEAD_SECONDS
    listed = [
        KubePod(name=pod, owner=("ReplicaSet", "bert-7b6667bd9"), begin=begin - AHEAD_SECONDS)
        for pod, begin in ((FIRST, -900), (JOINING, JOINS_AFTER_SECONDS))
    ]
    await prometheus.write(history(end, [Up(begin=-900 - AHEAD_SECONDS)]))
    await prometheus.write(kube_state.history(end, [kube_state.up(), *listed]))
    await prometheus.write(
        [climbing(now, FIRST, -900), climbing(now, JOINING, JOINS_AFTER_SECONDS)]
    )

    async with replica(prometheus) as one, replica(prometheus) as other:

        async def have_seen_the_pod_join() -> bool:
            await one.ask()
            await other.ask()
            measured = [both.measured for both in one.decided.values()]
            return 2 in measured and len(one.decided.keys() & other.decided.keys()) >= 6

        await until(have_seen_the_pod_join, PATIENCE_SECONDS, "six instants, and two pods")
        async with replica(prometheus) as later:

            async def have_answered_beside_each_other() -> bool:
                for each in (one, other, later):
                    await each.ask()
                return len(one.decided.keys() & other.decided.keys() & later.decided.keys()) >= 3

            await until(have_answered_beside_each_other, PATIENCE_SECONDS, "three instants of all")

    for another in (other, later):
        instants = one.decided.keys() & another.decided.keys()
        assert {at: one.decided[at] for at in instants} == {
            at: another.decided[at] for at in instants
        }
    # A busy machine may ask so late that an instant is a hold.
    values = {decision.value for decision in one.decided.values()} - {None}
    assert len(values) >= 3, "the load has changed from instant to instant"
