"""One trigger of one ScaledObject: what is remembered of it, and what its GPUs say.

`decide_gpus` decides by the GPUs alone, from one reading of a shared snapshot.
"""

import math
import operator
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import NamedTuple

from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision import load, reasons
from keda_gpu_scaler.decision.decision import (
    Asking,
    Context,
    Decision,
    Memory,
    State,
    decide,
    is_never_seen,
    recall,
    remember,
    remember_call,
    unknown,
    unlisted_workload,
)
from keda_gpu_scaler.decision.scale_out import ScaleOuts
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.evaluator.ports import ScaleTargets
from keda_gpu_scaler.evaluator.shared_snapshot import Reading, Snapshots
from keda_gpu_scaler.record.causes import Cause
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, SnapshotKey
from keda_gpu_scaler.spec.spec import Demand, OnUnknown, ScaledObject, SnapshotQuery, TriggerSpec
from keda_gpu_scaler.spec.workload import PodSelector, ScaleTarget
from keda_gpu_scaler.times import FORGET_SECONDS, HPA_SECONDS, REPEATED_SECONDS


@dataclass(slots=True)
class HpaCalls:
    """Whether the HPA asks about a trigger, which it does while the workload has replicas.

    KEDA passes the HPA's deadline on, and sets none when it polls. With `useCachedMetrics` the HPA
    never asks, and its silence says nothing. All times are seconds on one clock.
    """

    first: float = -math.inf
    last: float = -math.inf
    """The first and the last call of either; a record is none."""
    _by_hpa: Asking | None = None
    """The HPA's calls, without a gap."""
    _polls: Asking | None = None
    """The polls since its last call, without a gap."""

    def note(self, now: float, *, is_hpa: bool) -> None:
        """Remember a call of the HPA's, or a poll."""
        if self.first == -math.inf:
            self.first = now
        self.last = now
        before = self._by_hpa if is_hpa else self._polls
        since = now if before is None or now - before.at > HPA_SECONDS else before.since
        calls = Asking(since, now)
        if is_hpa:
            self._by_hpa, self._polls = calls, None
        else:
            self._polls = calls

    def asking(self, now: float, ahead_seconds: float = 0.0) -> Asking | None:
        """Return the calls of an HPA that asks again and again; None: it does not.

        Their times are of a clock that is `ahead_seconds` ahead of the one of `now`.
        """
        calls = self._by_hpa
        if calls is None or now - calls.at > HPA_SECONDS:
            return None
        is_repeated = calls.at - calls.since >= REPEATED_SECONDS
        is_new = now < self.first + REPEATED_SECONDS
        if not is_repeated and not is_new:
            return None
        return Asking(calls.since + ahead_seconds, calls.at + ahead_seconds)

    def has_stopped(self, now: float) -> bool:
        """Tell whether the HPA asked before and has been silent since, while polls went on."""
        if self._by_hpa is None or self._polls is None:
            return False
        return now - self._polls.since >= HPA_SECONDS


@dataclass(frozen=True, slots=True)
class GpuDecision:
    """What the GPUs say; the same object as before, until it can have changed."""

    decision: Decision
    neighbour: Decision | None = None
    """The decision for the workload of activationWorkload, unless the own GPUs say active."""
    router_unlisted: str = ""
    """That the cluster lists no router of this name, as a clause."""
    snapshot_at: float | None = None
    """The instant of the snapshot; None: it is not made from one."""
    at: float = 0.0
    """On the source's clock."""


class Answer(NamedTuple):
    """The last answer, and its inputs."""

    decision: Decision
    at: float
    """On the evaluator's clock."""
    gpu: GpuDecision
    alert: str | None
    demand: Demand | None
    """None: it was not asked."""
    summary: Summary | None = None
    """What people are told of it."""
    cause: Cause | None = None
    """Why its GPUs are not read; None: they are, or it is not known."""

    @property
    def active_by(self) -> str | None:
        """The signal that said active, by the name that records have for it; None: none did."""
        if not self.decision.activated:
            return None
        if self.gpu.decision.activated:
            return "gpus"
        if self.gpu.neighbour is not None and self.gpu.neighbour.activated:
            return "activationWorkload"
        return "demand" if self.alert is None else "alert"


@dataclass(eq=False, slots=True)
class TrackedTrigger:
    """A trigger that is evaluated."""

    scaled_object: ScaledObject
    given: TriggerSpec
    """As it was asked for."""
    spec: TriggerSpec
    """The same, with the pods of the scale target if it names none itself."""
    snapshot_query: SnapshotQuery
    """What it asks of its source."""
    key: SnapshotKey
    """The snapshot that it shares."""
    kept_bytes: int
    memory: Memory | None = None
    """Used when its load becomes unknown."""
    answer: Answer | None = None
    hpa_calls: HpaCalls = field(default_factory=HpaCalls)
    scale_outs: ScaleOuts = field(default_factory=ScaleOuts)

    @property
    def fails_while_unknown(self) -> bool:
        """Whether a call fails if the load is not known and no other signal says active."""
        is_forgotten = self.spec.on_unknown is OnUnknown.HOLD and self.memory is None
        return is_forgotten or self.spec.on_unknown is OnUnknown.ERROR


TRACKED_BYTES = 48 * 2**20
"""Room for fifteen thousand usual triggers."""
_DECISION_BYTES = 2048
"""What is remembered of one trigger beside its spec."""


def deep_size(value: object) -> int:
    """Return the bytes of a value and of all that it consists of.

    What is shared with other values counts as well: the result is rather too large.
    """
    size = sys.getsizeof(value)
    if isinstance(value, tuple | frozenset):
        return size + sum(map(deep_size, value))
    if is_dataclass(value):
        return size + sum(deep_size(getattr(value, part.name)) for part in fields(value))
    return size


class TrackedTriggers:
    """The triggers that were asked about within the last ten minutes.

    Of more than have room those go that were asked about longest ago.
    """

    def __init__(
        self, snapshots: Snapshots, targets: ScaleTargets | None, clock: Callable[[], float]
    ) -> None:
        self._snapshots, self._targets = snapshots, targets
        self._tracked: TTLCache[tuple[ScaledObject, TriggerSpec], TrackedTrigger] = TTLCache(
            TRACKED_BYTES, FORGET_SECONDS, clock, operator.attrgetter("kept_bytes")
        )

    async def find(
        self, scaled_object: ScaledObject, given: TriggerSpec, grace_seconds: float
    ) -> tuple[TrackedTrigger, str | None]:
        """Return the tracked trigger, and why the pods of its scale target are not known.

        It is a new one if it is not known yet, or if its scale target has other pods now. While
        these are not known, the trigger keeps those that it had.
        """
        pods: PodSelector | None = None
        trouble: str | None = None
        if isinstance(given.pods, ScaleTarget):
            trouble = "the pods of its scale target are not known"
            if self._targets is not None:
                try:
                    pods = await self._targets.target(scaled_object, grace_seconds)
                    trouble = None
                except errors.SourceError as error:
                    trouble = str(error)
        try:
            tracked = self._tracked[scaled_object, given]  # `get` takes twice the time
        except KeyError:
            tracked = None
        if tracked is None or pods not in (None, tracked.spec.pods):
            spec = given if pods is None else replace(given, pods=pods, workload=str(pods))
            needs, kept_bytes = self._snapshots.needs(spec), _DECISION_BYTES + deep_size(spec)
            tracked = TrackedTrigger(scaled_object, given, spec, *needs, kept_bytes)
            self.keep(tracked)
        elif tracked.given is not given:  # the same trigger in other words
            spec = replace(given, pods=tracked.spec.pods, workload=tracked.spec.workload)
            tracked.given, tracked.spec = given, spec
        return tracked, trouble

    def keep(self, tracked: TrackedTrigger) -> None:
        """Begin the ten minutes of a trigger again: it is asked about now."""
        self._tracked[tracked.scaled_object, tracked.given] = tracked

    def last(self, scaled_object: ScaledObject, given: TriggerSpec) -> TrackedTrigger | None:
        """Return a trigger as it was last asked about; None: not within the last ten minutes."""
        return self._tracked.get((scaled_object, given))

    def current(self, scaled_object: ScaledObject | None = None) -> list[TrackedTrigger]:
        """Return all, or those of one ScaledObject, in order, without those that an edit replaced.

        Of several with the same metric name, one that was not asked about since the first call
        about another, or a minute longer ago than another, is the old version: a metric that the
        HPA goes on asking for is asked for within HPA_SECONDS.
        """
        since: dict[tuple[ScaledObject, str], float] = defaultdict(lambda: -math.inf)
        with self._tracked.timer:  # the time stands still, so none ends meanwhile
            tracked_now = sorted(self._tracked.values(), key=operator.attrgetter("scaled_object"))
        triggers = [each for each in tracked_now if scaled_object in (None, each.scaled_object)]
        for tracked in triggers:
            metric, calls = (tracked.scaled_object, tracked.spec.metric_name), tracked.hpa_calls
            since[metric] = max(since[metric], calls.first, calls.last - HPA_SECONDS)
        return [
            tracked
            for tracked in triggers
            if tracked.hpa_calls.last >= since[tracked.scaled_object, tracked.spec.metric_name]
        ]


def decide_gpus(
    tracked: TrackedTrigger,
    reading: Reading,
    target_trouble: str | None,
    *,
    is_observing: bool,
) -> GpuDecision:
    """Return what the GPUs say, and remember it in case the load becomes unknown.

    It is the last decision again, while all its inputs are the same. While the scale target is
    unknown, only the other workload's GPUs count. With `is_observing` no call of KEDA or the HPA
    tells that a workload exists: one that was never seen is unknown.
    """
    spec, snapshot, calls = tracked.spec, reading.snapshot, tracked.hpa_calls
    if target_trouble is not None:
        decided = unknown(spec, target_trouble, Context(reading.now_for(spec)))
        return GpuDecision(decided, _decide_neighbour(spec, decided, reading))
    if tracked.answer is not None and _still_holds(tracked.answer.gpu, spec, reading):
        return tracked.answer.gpu
    context = Context(
        reading.now_for(spec),
        trouble=reading.trouble,
        asking=calls.asking(reading.clock_seconds, reading.present - reading.clock_seconds),
        hpa_has_stopped=calls.has_stopped(reading.clock_seconds),
    )
    view = None if snapshot is None else snapshot.of(spec.pods.namespace)
    decided = _decide_view(spec, view, context)
    if view is not None and decided.state is not State.UNKNOWN:
        if is_observing and tracked.memory is None and is_never_seen(spec, view, decided):
            never_seen = unknown(spec, reasons.never_seen(spec), Context(context.now))
            decided = replace(
                never_seen, evidence=decided.evidence, is_unread=True, never_seen=True
            )
        else:
            tracked.memory = remember(tracked.memory, decided, view.at)
    else:
        decided = _recalled(tracked, reading, context, decided, view)
    return GpuDecision(
        decided,
        neighbour=_decide_neighbour(spec, decided, reading),
        router_unlisted=_router_unlisted(spec, reading),
        snapshot_at=None if snapshot is None else snapshot.at,
        at=context.now,
    )


def _still_holds(gpu: GpuDecision, spec: TriggerSpec, reading: Reading) -> bool:
    """Tell whether a new decision would be the same: all its inputs are the same.

    That is so if less than a step has passed and there is no trouble. The decision for an
    unknown load also depends on memories, which can change at any time.
    """
    snapshot = reading.snapshot
    if snapshot is None or gpu.snapshot_at != snapshot.at:
        return False
    if gpu.decision.state is State.UNKNOWN or reading.trouble is not None:
        return False
    now = reading.now_for(spec)
    is_recent = 0 <= now - gpu.at < reading.step_seconds
    return is_recent and now - snapshot.at <= spec.max_age_seconds


def _decide_view(spec: TriggerSpec, view: NamespaceSnapshot | None, context: Context) -> Decision:
    if view is not None:
        return decide(spec, view, context)
    return unknown(spec, context.trouble or f"source {spec.source}: no answer yet", context)


def _recalled(
    tracked: TrackedTrigger,
    reading: Reading,
    context: Context,
    decided: Decision,
    view: NamespaceSnapshot | None,
) -> Decision:
    """Return the answer to an unknown load, by what was known before."""
    spec, kept = tracked.spec, tracked.memory
    if view is None or (kept is not None and kept.at > view.at):  # another signal said it
        kept = remember(kept, decided, reading.now)
    else:
        last = decide(spec, view, replace(context, now=view.at))
        kept = remember(kept, last, view.at)
    if context.asking is not None:
        kept = remember_call(kept, context.asking.at)
    tracked.memory = kept
    recalled = recall(
        kept, reading.lost_at, reading.step_seconds, hpa_has_stopped=context.hpa_has_stopped
    )
    return _decide_view(spec, view, replace(context, remembered=recalled))


def _router_unlisted(spec: TriggerSpec, reading: Reading) -> str:
    """Say that there is no router of the demand's, if the snapshot has its namespace."""
    router = None if spec.demand is None else spec.demand.router
    if router is None or reading.snapshot is None:
        return ""
    view = reading.snapshot.of(router.namespace)
    of_router = replace(spec, pods=router, workload=str(router), only_shown=False)
    return unlisted_workload(of_router, view, reading.now_for(spec), load.pods_of(of_router, view))


def _decide_neighbour(spec: TriggerSpec, decided: Decision, reading: Reading) -> Decision | None:
    """Decide about the other workload, unless this workload's own GPUs already say active."""
    if spec.neighbour is None or decided.activated:
        return None
    other = replace(
        spec,
        pods=spec.neighbour,
        workload=str(spec.neighbour),
        on_unknown=OnUnknown.HOLD,
        neighbour=None,
        demand=None,
    )
    view = None if reading.snapshot is None else reading.snapshot.of(other.pods.namespace)
    return _decide_view(other, view, Context(reading.now_for(spec), trouble=reading.trouble))
