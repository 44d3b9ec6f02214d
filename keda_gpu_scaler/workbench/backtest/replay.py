"""Work + a way to scale → the replicas that there would have been, and what they would have cost.

Pure. The decisions are the scaler's own; KEDA and the HPA are their rules.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from keda_gpu_scaler.autoscaling.rules import Metric, MetricType
from keda_gpu_scaler.decision import activation
from keda_gpu_scaler.decision.decision import (
    Asking,
    Context,
    Decision,
    Memory,
    State,
    decide,
    recall,
    remember,
)
from keda_gpu_scaler.spec.spec import Demand, TriggerSpec
from keda_gpu_scaler.spec.workload import Kind, Workload
from keda_gpu_scaler.workbench.backtest.recipes import Recipe
from keda_gpu_scaler.workbench.backtest.view import view
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import (
    CAPACITY,
    STEP_SECONDS,
    ClosedLoop,
    SimulatedReplica,
)

QUERIED_SECONDS = 2.0
"""A snapshot is queried so much later than the instant that it is about."""
_FORGET_SECONDS = 120.0
"""How long a pod that is gone can matter, beyond the reach of the samples."""


class Outcome(NamedTuple):
    """What came of one way to scale."""

    replica_hours: float
    overloaded: tuple[float, ...]
    """The seconds up to the end of each step with more work than the replicas could do."""
    changes: int
    """How often the number of replicas changed."""
    wakes: int
    """How often the first replica was created."""
    longest_wake_seconds: float
    """From work at zero replicas to a replica that does it."""
    sizes: tuple[int | None, ...]
    """The replicas after each step; None: the work is not known then, and nothing counts."""

    @property
    def overloaded_seconds(self) -> float:
        return self.overloaded[-1] if self.overloaded else 0.0


@dataclass(slots=True)
class Replay(ClosedLoop[SimulatedReplica]):
    """The replicas of one workload under one trigger, or under a recipe, for some work."""

    offered: Callable[[float], float] = field(init=False)
    begin: float = field(init=False)
    work: Work
    trigger: TriggerSpec
    recipe: Recipe | None = None
    metric_type: MetricType = MetricType.AVERAGE_VALUE
    _workload: Workload = field(init=False)
    _asked_since: float | None = field(default=None, init=False)
    """Since when the HPA asks; None: there are no replicas."""
    _memory: Memory | None = field(default=None, init=False)
    _created: int = field(default=0, init=False)
    _waited_since: float | None = field(default=None, init=False)
    """Since when work waits at zero replicas; None: there is none, or a replica."""
    _longest_wake: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Begin with replicas that have been Ready for an hour."""
        self.offered, self.begin = self.work.load, self.work.begin
        ClosedLoop.__post_init__(self)
        self._workload = Workload(Kind.DEPLOYMENT, self.trigger.pods.namespace, "replayed")
        self.trigger = replace(self.trigger, pods=self._workload, only_shown=False, neighbour=None)
        self._settle()

    def run(self) -> Outcome:
        """Let all the time of the work pass; where it is unknown, everything stays as it is."""
        sizes: list[int | None] = []
        overloaded: list[float] = []
        for number, load in enumerate(self.work.loads):
            until = self.clock + STEP_SECONDS
            if load is not None:
                self._collect(self.clock, until)
                self._step(number, load)
            self.clock = until
            sizes.append(None if load is None else self.replicas)
            overloaded.append(self.overloaded_seconds)
        return _outcome(sizes, overloaded, self._longest_wake)

    def _step(self, number: int, load: float) -> None:
        at, spec = self.clock, self.trigger
        demand = Demand(self.work.demands[number]) if self.work.demands else None
        if self.recipe is not None:
            there = (pod.exported(at) for pod in self.pods if at < pod.gone)
            shown = [percent for percent in there if percent is not None]
            decided, metric_type = self.recipe.decided(shown), self.recipe.metric_type
        else:
            decided, metric_type = self._decide(at, demand), self.metric_type
        metrics = [Metric(value=decided.value, target=spec.threshold, metric_type=metric_type)]
        second = None if spec.demand is None or spec.is_by_demand else spec.demand.threshold
        if self.recipe is None and second is not None:
            value = None if demand is None else demand.value
            metrics.append(Metric(value=value, target=second))
        wanted = 0.0 if demand is None else demand.value or 0.0
        is_wanted = spec.demand is not None and wanted > spec.demand.activation_threshold
        if self._working(at) or not (load > 0 or is_wanted):
            self._waited_since = None
        else:
            if self._waited_since is None:
                self._waited_since = at
            self._longest_wake = max(self._longest_wake, at + STEP_SECONDS - self._waited_since)
        self.clock += STEP_SECONDS
        self._scale(active=decided.active, metrics=metrics, polls=True)

    def resize(self, replicas: int) -> None:
        if not replicas:
            self._asked_since = None
        elif self._asked_since is None:
            self._asked_since = self.clock
        kept = self.clock - self.trigger.reach_seconds - _FORGET_SECONDS
        self.pods = [pod for pod in self.pods if pod.gone > kept]
        ClosedLoop.resize(self, replicas)

    def _create(self, created: float) -> None:
        placed, ready = self._times(created)
        self.pods.append(SimulatedReplica(self._created, created, placed, ready, self.loading))
        self._created += 1

    def _decide(self, at: float, demand: Demand | None) -> Decision:
        """Return the scaler's decision, as its evaluator comes to it."""
        spec, now = self.trigger, at + QUERIED_SECONDS
        span = spec.reach_seconds + STEP_SECONDS
        snapshot = view(self._workload, self.pods, at, span, self.wanted)
        since = self._asked_since
        context = Context(now, asking=None if since is None else Asking(since, now))
        decided = decide(spec, snapshot, context)
        if decided.state is State.UNKNOWN:
            remembered = recall(self._memory, now, STEP_SECONDS)
            decided = decide(spec, snapshot, replace(context, remembered=remembered))
        else:
            self._memory = remember(self._memory, decided, at)
        return decided if demand is None else activation.apply_demand(spec, decided, demand)


def clairvoyant(work: Work, start_seconds: float) -> Outcome:
    """Return the outcome of one who knows the work in advance: what is needed until a start."""
    ahead = math.ceil(start_seconds / STEP_SECONDS) + 1
    needs = [math.ceil((load or 0.0) / CAPACITY) for load in work.loads]
    return _at_once(work, [max(needs[at : at + ahead]) for at in range(len(needs))])


def fixed(work: Work, replicas: int) -> Outcome:
    """Return the outcome of a number of replicas that never changes."""
    return _at_once(work, [replicas] * len(work.loads))


def past(work: Work) -> Outcome:
    """Return what there was; where GPUs are the work, they were overloaded when all were full."""
    if not work.full:
        loads = [
            None if size is None else load
            for load, size in zip(work.loads, work.replicas, strict=True)
        ]
        return _at_once(replace(work, loads=loads), [size or 0 for size in work.replicas])
    return _outcome(work.replicas, list(accumulate(STEP_SECONDS * full for full in work.full)))


def _at_once(work: Work, sizes: Sequence[int]) -> Outcome:
    """Return the outcome of a size for each step, of replicas that work at once."""
    steps = list(zip(sizes, work.loads, strict=True))
    return _outcome(
        [None if load is None else size for size, load in steps],
        list(accumulate(STEP_SECONDS * ((load or 0.0) > CAPACITY * size) for size, load in steps)),
    )


def _outcome(
    sizes: Sequence[int | None], overloaded: Sequence[float], longest_wake_seconds: float = 0.0
) -> Outcome:
    known = [size for size in sizes if size is not None]
    return Outcome(
        sum(known) * STEP_SECONDS / 3600,
        tuple(overloaded),
        sum(size != before for before, size in pairwise(known)),
        sum(not before and size > 0 for before, size in pairwise(known)),
        longest_wake_seconds,
        tuple(sizes),
    )
