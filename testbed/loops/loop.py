"""The loop itself: time, work, and the replicas that come of the scaler's answers."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from keda_gpu_scaler.autoscaling.rules import Metric, MetricType
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.errors import UnknownLoadError
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Samples
from keda_gpu_scaler.service import messages
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.workbench.backtest.recipes import Recipe
from keda_gpu_scaler.workbench.world.loop import CAPACITY, NEVER, STEP_SECONDS, ClosedLoop
from testbed.loops.api import Api
from testbed.loops.dialects import Dialect
from testbed.loops.monitoring import Monitoring
from testbed.loops.pods import SimPod
from testbed.triggers import BERT, spec

BEGIN = 100_020.0
HPA_SECONDS = 30.0
"""The deadline of the HPA's calls."""
QUERY_FAILED = Decision(state=State.UNKNOWN, reason="the query failed", value=None, active=None)
"""What KEDA gets of a recipe while Prometheus is away."""
P = ParamSpec("P")
T = TypeVar("T")


class AtOnce(ThreadPoolExecutor):
    """Runs in the caller's thread what is meant for another: many calls, each small."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as an executor does
            done.set_exception(error)
        return done


@dataclass(slots=True)
class Loop(ClosedLoop[SimPod]):
    """One workload in one cluster, in which anything can go wrong."""

    evidence: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS
    node_leaves_seconds: float = NEVER
    """How long after a pod its node goes, and the exporter with it."""
    exporter_late_seconds: float = 0.0
    """How long after its pod is Ready a new node's exporter appears."""
    weight: Callable[[int], float] = lambda _number: 1.0
    """How much of the work a replica gets, by its number, beside the others."""
    has_exporter: Callable[[int], bool] = lambda _number: True
    """Tells whether the node of a replica has an exporter."""
    dialect: Dialect = field(default_factory=Dialect)
    owner: Owner | None = None
    """The scale target, if it is not the one that the trigger names: that does not exist."""
    when_created: Callable[[SimPod], None] = lambda _pod: None
    """Makes a new pod differ from the others."""
    group: int = 0
    """The pods of one replica of a LeaderWorkerSet; 0: it is a Deployment."""
    stateful: bool = False
    """It is a StatefulSet: a pod that is gone returns under its name."""
    hpa_asks: bool = True
    """Otherwise KEDA answers the HPA from what it polled: `useCachedMetrics`."""
    demand: Callable[[float], float | None] | None = None
    """What demandQuery gives, by the seconds since the loop began; None: it is refused."""
    restarts: Callable[[], bool] | None = None
    """Tells, step by step, whether a second replica of the scaler restarts; None: there is none."""
    beside: list[tuple[int, Decision, Decision]] = field(default_factory=list)
    """The replicas, and what both scalers say of them, step by step."""
    shares_calls: Callable[[], bool] | None = None
    """Tells, step by step, whether the second replica of the scaler is believed: KEDA spreads the
    calls of one poll over both. None: there is none."""
    formula: Callable[[float, float], float] | None = None
    """What scalingModifiers make of the trigger's number and the seconds since the loop began, for
    a target of 1; None: there are none."""
    recipe: Recipe | None = None
    """What is asked in the scaler's place."""
    also: Callable[[Decision, float | None], Awaitable[None]] | None = None
    """Is told of each decision and of the deadline of the call, at the time of the call."""
    trigger: TriggerSpec = field(default_factory=spec)
    decisions: list[Decision] = field(default_factory=list)
    seed: int = field(default=0, kw_only=True)
    """Of how long each start takes and how the work is spread; 0: all alike."""
    averaged: bool = field(default=False, kw_only=True)
    """The exporters show averages; otherwise what they see at one moment."""
    queues: bool = field(default=False, kw_only=True)
    """Work beyond the replicas' capacity is done later."""
    begin: float = field(default=BEGIN, kw_only=True)
    """Its steps follow from here, and scrapes and what exporters read are at times of their own."""
    monitoring: Monitoring = field(init=False)
    first: Evaluator = field(init=False)
    second: Evaluator = field(init=False)
    _chance: random.Random = field(init=False)
    _waiting: float = field(default=0.0, init=False)
    """Work not done yet, in percent of a replica for one second."""

    def __post_init__(self) -> None:
        """Begin with pods that have been Ready for an hour."""
        ClosedLoop.__post_init__(self)
        self._chance = random.Random(self.seed)
        self.monitoring = Monitoring(
            self.pods, self.owned_by, lambda: self.clock, self.evidence, self.averaged, self.wanted
        )
        self.monitoring.dialect = self.dialect
        self.first, self.second = self.evaluator(), self.evaluator()
        self._settle()

    @property
    def owned_by(self) -> Owner:
        owner = self.owner or self.trigger.pods.owner
        assert owner is not None
        return owner

    @property
    def grown(self) -> list[int]:
        """The replicas in the order in which they were wanted, each once."""
        before = [None, *self.sizes]
        return [size for size, last in zip(self.sizes, before, strict=False) if size != last]

    @property
    def errors(self) -> int:
        """How many answers were errors, of which KEDA's fallback is made."""
        return sum(decision.refused or decision.active is None for decision in self.decisions)

    def seconds_until(self, replicas: int) -> float:
        """Return after how many seconds so many replicas were wanted for the first time."""
        return float((self.sizes.index(replicas) + 1) * STEP_SECONDS)

    async def run(self, seconds: float, *, keda: bool = False) -> None:
        """Let time pass: a step of 15 s at a time, as the HPA syncs; KEDA polls every other one."""
        asyncio.get_running_loop().set_default_executor(AtOnce())
        for _ in range(int(seconds // STEP_SECONDS)):
            until = self.clock + STEP_SECONDS
            self._collect(self.clock, until)
            # Queried a little later than the instant it is about.
            self.clock += 2
            self._count()
            # The HPA sets a deadline, and asks only about a workload with replicas.
            timeout_seconds = HPA_SECONDS if self.replicas and self.hpa_asks else None
            decided = await self._decided(timeout_seconds)
            if self.also is not None:
                await self.also(decided, timeout_seconds)
            metrics = [
                Metric(
                    value=decided.value,
                    target=self.trigger.threshold,
                    metric_type=self.recipe.metric_type
                    if self.recipe
                    else MetricType.AVERAGE_VALUE,
                )
            ]
            metrics += await self._demanded()
            await self._published()
            await self._compare(timeout_seconds)
            self.clock = until
            self.decisions.append(decided)
            active = decided.active
            if self.formula is not None:
                active, metrics = self._by_formula(self.formula, decided)
            self._scale(active=active, metrics=metrics, polls=keda)
            self.sizes.append(self.replicas)

    def evaluator(self, samples: Samples | None = None, *, is_observing: bool = False) -> Evaluator:
        """Return the evaluator of a scaler that has just started, and remembers nothing.

        Args:
            samples: what it sees of the GPUs, if that is not what the monitoring shows.
            is_observing: it observes, and neither KEDA nor the HPA asks it.
        """
        api = Api(pods=self.pods, owner=self.owned_by, wanted=self.wanted)
        stronger = (api,) if self.evidence is EvidenceSource.KUBERNETES else ()
        source = self.monitoring.ports(*stronger)
        return Evaluator(
            {"default": source if samples is None else replace(source, samples=samples)},
            clock=lambda: self.clock,
            is_observing=is_observing,
        )

    def wake(self) -> None:
        """Create the first replica: another trigger is active just now."""
        self.keda.last_active = self.clock
        self.resize(1)

    def surge(self) -> None:
        """Create a replica beyond those wanted, as a rolling update does, until `delete`."""
        self._extra += 1
        self._create(self.clock)

    async def roll_out(
        self, ready_seconds: float, drain_seconds: float = 0.0, *, keda: bool = False
    ) -> None:
        """Replace each pod that works, after the first time by a new one; then let it drain."""
        for old in [pod for pod in self.pods if pod.works(self.clock)]:
            self.surge()
            await self.run(ready_seconds, keda=keda)
            self.delete(old)
            await self.run(drain_seconds, keda=keda)

    def delete(self, pod: SimPod) -> None:
        """Delete a pod with its replica; it is gone after its grace period."""
        self._extra = max(0, self._extra - 1)
        self._delete(pod)

    def _delete(self, pod: SimPod) -> None:
        for member in self.pods:
            if member.number == pod.number:
                member.deleted, member.gone = self.clock, self.clock + self.grace_seconds
                member.unlisted = min(member.unlisted, member.gone + self.node_leaves_seconds)

    def lose(self, *pods: SimPod, evicted_after: float = 0.0) -> None:
        """Lose the nodes of pods; the control plane deletes the pods so much later."""
        for pod in pods:
            pod.lost, pod.unlisted = self.clock, self.clock
            pod.deleted = pod.gone = self.clock + evicted_after

    def fill(self, replicas: int, created: float) -> None:
        """Create the pods that are missing; a StatefulSet's waits until its old one is gone."""
        if not self.stateful:
            ClosedLoop.fill(self, replicas, created)
            return
        taken = {pod.called for pod in self.pods if pod.exists(self.clock)}
        for name in (f"bert-{number}" for number in range(replicas)):
            if name not in taken:
                self._create(created, name)

    def _create(self, created: float, called: str = "") -> None:
        placed, ready = self._times(created)
        number = len(self.pods) // max(1, self.group)
        workers: list[int | None] = list(range(self.group)) if self.group else [None]
        since = ready + self.exporter_late_seconds if self.exporter_late_seconds else placed
        for worker in workers:
            pod = SimPod(number, created, placed, ready, self.loading, worker=worker, called=called)
            pod.exporter_since = since
            pod.asks, pod.gpu_count = self.dialect.resource, self.dialect.gpus
            pod.collect_seconds = self.collect_seconds
            if not self.has_exporter(number):
                pod.silent = created
            self.when_created(pod)
            self.pods.append(pod)

    def _counted(self) -> list[SimPod]:
        return [pod for pod in self.pods if pod.is_replica and pod.counts(self.clock)]

    def _working(self, now: float) -> list[SimPod]:
        return [pod for pod in self.pods if pod.is_replica and pod.works(now)]

    def _times(self, created: float) -> tuple[float, float]:
        placed = created + self.node_seconds * self._spread(0.2)
        return placed, placed + self.start_seconds * self._spread(0.2)

    def _spread(self, part: float) -> float:
        """Return a factor around 1 that differs from time to time, unless all is alike."""
        return self._chance.uniform(1 - part, 1 + part) if self.seed else 1.0

    def _read(self, now: int, working: Sequence[SimPod]) -> None:
        share = self._share(now, len(working))
        weights = sum(self.weight(pod.number) for pod in working) or 1.0
        for pod in self.pods:
            own = share if share >= CAPACITY else share * self._spread(0.05)
            weight = self.weight(pod.number) * len(working) / weights
            pod.collect(now, min(CAPACITY, own * weight if working else own))

    def _share(self, now: float, working: int) -> float:
        """Return how busy each replica is that works, in percent, as exporters collect it."""
        times = range(int(now), int(now) - (self.collect_seconds if self.averaged else 1), -1)
        return sum(self._busy(time, working) for time in times) / len(times)

    def _busy(self, now: float, working: int) -> float:
        """Return how busy each replica is that works, in percent, by the work and what waits."""
        work = self.offered(now - self.begin) + self._waiting / self.collect_seconds
        self._waiting = (
            max(0.0, work - CAPACITY * working) * self.collect_seconds if self.queues else 0.0
        )
        return min(CAPACITY, work / max(1, working))

    def _count(self) -> None:
        """Let the router count what there is now."""
        demand, now = self.demand, self.clock - self.begin
        self.monitoring.counted = None if demand is None else lambda: demand(now)

    async def _decided(self, timeout_seconds: float | None) -> Decision:
        if self.recipe is not None:
            shown = self.monitoring.shown()
            return QUERY_FAILED if shown is None else self.recipe.decided(shown)
        decided = await self.first.evaluate(BERT, self.trigger, timeout_seconds)
        if self.shares_calls is None:
            return decided
        other = await self.second.evaluate(BERT, self.trigger, timeout_seconds)
        return other if self.shares_calls() else decided

    def _by_formula(
        self, formula: Callable[[float, float], float], decided: Decision
    ) -> tuple[bool | None, list[Metric]]:
        """Return what a poll of KEDA's takes the formula for, and its value for the HPA."""
        seconds = self.clock - self.begin
        value = None if decided.value is None else formula(decided.value, seconds)
        active: bool | None = formula_is_active(value)
        if self.trigger.for_formula:
            active = self.polled(formula, decided)
        return active, [Metric(value=value, target=1.0)]

    def polled(self, formula: Callable[[float, float], float], decided: Decision) -> bool | None:
        """Return what a poll takes the formula for with `forFormula`; None: it fails."""
        try:
            (answer,) = messages.formula_value(
                self.trigger.metric_name,
                decided,
                self.trigger.threshold,
                has_replicas=self.first.has_replicas(BERT),
            ).metricValues
        except UnknownLoadError:
            return None
        return formula_is_active(formula(answer.metricValueFloat, self.clock - self.begin))

    def is_active(self, decided: Decision) -> bool | None:
        """Return what IsActive answers; None: it fails."""
        try:
            has_replicas = self.first.has_replicas(BERT)
            return messages.activity(decided, has_replicas=has_replicas).result
        except UnknownLoadError:
            return None

    async def _compare(self, timeout_seconds: float | None) -> None:
        if self.restarts is None:
            return
        if self.restarts():
            await self.second.close()
            anew = replace(self.monitoring, history_since=self.clock // STEP_SECONDS * STEP_SECONDS)
            self.second = self.evaluator(anew if self.monitoring.is_direct else None)
        self.clock += 1  # the same poll would get the same answer
        first = await self.first.evaluate(BERT, self.trigger, timeout_seconds)
        await self.second.evaluate(BERT, self.trigger, timeout_seconds)
        await self._published()
        self.clock += 1
        second = await self.second.evaluate(BERT, self.trigger, timeout_seconds)
        self.beside.append((self.replicas, first, second))

    async def _published(self) -> None:
        """Wait for the snapshots under way: nothing else works beside the loop."""
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    async def _demanded(self) -> list[Metric]:
        """Return the metric of the demand, where the trigger has one."""
        wanted = self.trigger.demand
        if wanted is None or wanted.threshold is None or self.trigger.is_by_demand:
            return []
        found = await self.first.demand(BERT, self.trigger, None)
        return [Metric(value=found.value, target=wanted.threshold)]


def formula_is_active(value: float | None, activation_target: float = 0.0) -> bool:
    """Return what KEDA takes a formula of scalingModifiers for (`getScaledObjectState`).

    It ignores whether the triggers are active. None: a trigger gave no number, so the formula has
    no value.
    """
    return value is not None and value > activation_target
