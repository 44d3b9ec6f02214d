"""One trigger of one ScaledObject: what is remembered of it, and what its GPUs say.

`decide_gpus` decides by the GPUs alone, from one reading of a shared snapshot.
"""

import operator
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cachetools import TTLCache

from keda_gpu_scaler.decision import memory, reasons
from keda_gpu_scaler.decision.decision import (
    Asking,
    Context,
    Decision,
    State,
    decide,
    is_never_seen,
    unknown,
)
from keda_gpu_scaler.decision.memory import Memory
from keda_gpu_scaler.decision.scale_out import ScaleOuts
from keda_gpu_scaler.evaluator.snapshot_cache import Reading, SnapshotCache
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Snapshot, SnapshotKey
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import (
    FORGET_SECONDS,
    OnUnknown,
    ScaledObject,
    TriggerSpec,
    deep_size,
)
from keda_gpu_scaler.spec.workload import PodSelector

SILENT_SECONDS = 60.0
"""Four syncs of the HPA at its default of 15 s, because a sync may be late."""
REPEATED_SECONDS = 30.0
"""A person or a probe asks once; the HPA goes on. But a process that has just started cannot know
whether it is the first call: for this long, one is enough."""


@dataclass(slots=True)
class HpaCalls:
    """Whether the HPA asks about a trigger, which it does while the workload has replicas.

    KEDA passes the HPA's deadline on, and sets none when it polls. With `useCachedMetrics` the HPA
    never asks, and its silence says nothing. All times are seconds on one clock.
    """

    _noted_since: float | None = None
    """When the first call of all was noted."""
    _asked_at: float | None = None
    _asking_since: float = 0.0
    _called_at: float = 0.0
    _polled_since: float | None = None
    """Since when there are only polls, without a gap; None: the HPA asked last."""

    def note(self, now: float, *, is_hpa: bool) -> None:
        """Remember a call of the HPA's, or a poll."""
        if self._noted_since is None:
            self._noted_since = now
        if is_hpa:
            if self._asked_at is None or now - self._asked_at > SILENT_SECONDS:
                self._asking_since = now
            self._asked_at, self._polled_since = now, None
        elif self._polled_since is None or now - self._called_at > SILENT_SECONDS:
            self._polled_since = now
        self._called_at = now

    def has_asked(self, now: float) -> bool:
        return self._asked_at is not None and now - self._asked_at <= SILENT_SECONDS

    def asking(self, now: float, ahead_seconds: float = 0.0) -> Asking | None:
        """Return the calls of an HPA that asks again and again; None: it does not.

        Their times are of a clock that is `ahead_seconds` ahead of the one of `now`.
        """
        if self._asked_at is None or not self.has_asked(now):
            return None
        is_repeated = self._asked_at - self._asking_since >= REPEATED_SECONDS
        is_new = self._noted_since is not None and now - self._noted_since < REPEATED_SECONDS
        if not is_repeated and not is_new:
            return None
        return Asking(self._asking_since + ahead_seconds, self._asked_at + ahead_seconds)

    def has_stopped(self, now: float) -> bool:
        """Tell whether the HPA asked before and has been silent since, while polls went on."""
        if self._asked_at is None or self._polled_since is None:
            return False
        return now - self._polled_since >= SILENT_SECONDS


@dataclass(frozen=True, slots=True)
class GpuDecision:
    """What the GPUs say; the same object as before, until it can have changed."""

    decision: Decision
    neighbour: Decision | None = None
    """The decision for the workload of activationWorkload, unless the own GPUs say active."""
    snapshot_age_seconds: float | None = None
    snapshot: weakref.ref[Snapshot] | None = None
    """A weak reference, only to compare identity: a rarely evaluated trigger must not keep it."""
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
    recommended: int | None
    """The replicas that it asks for; None: not known, or held."""

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
    target_error: str | None = None
    """Why the pods of its scale target are not known now."""
    gpu: GpuDecision | None = None
    memory: Memory | None = None
    """Used when its load becomes unknown."""
    answer: Answer | None = None
    hpa_calls: HpaCalls = field(default_factory=HpaCalls)
    scale_outs: ScaleOuts = field(default_factory=ScaleOuts)


TRACKED_BYTES = 48 * 2**20
"""Room for fifteen thousand usual triggers."""
_DECISION_BYTES = 2048
"""What is remembered of one trigger beside its spec."""


class TrackedTriggers:
    """The triggers that were asked about within the last ten minutes.

    Of more than have room those go that were asked about longest ago.
    """

    def __init__(self, snapshot_cache: SnapshotCache, clock: Callable[[], float]) -> None:
        self._snapshot_cache = snapshot_cache
        self._tracked: TTLCache[tuple[ScaledObject, TriggerSpec], TrackedTrigger] = TTLCache(
            TRACKED_BYTES, FORGET_SECONDS, clock, operator.attrgetter("kept_bytes")
        )

    def track(
        self, scaled_object: ScaledObject, given: TriggerSpec, pods: PodSelector | None = None
    ) -> TrackedTrigger:
        """Return the tracked trigger, a new one if it is not known.

        `pods` are those of the scale target, if the trigger names none itself and they are known.
        While they are not known, the trigger keeps those that it had. With other pods it is new.
        """
        key = scaled_object, given
        try:
            tracked: TrackedTrigger | None = self._tracked[key]  # `get` takes twice the time
        except KeyError:
            tracked = None
        if tracked is None or pods not in (None, tracked.spec.pods):
            spec = given if pods is None else replace(given, pods=pods, workload=str(pods))
            tracked = TrackedTrigger(
                scaled_object,
                given,
                spec,
                *self._snapshot_cache.needs(spec),
                kept_bytes=_DECISION_BYTES + deep_size(spec),
            )
            self._tracked[key] = tracked
        elif tracked.given is not given:  # the same trigger in other words
            spec = replace(given, pods=tracked.spec.pods, workload=tracked.spec.workload)
            tracked.given, tracked.spec = given, spec
        return tracked

    def keep(self, tracked: TrackedTrigger) -> None:
        """Begin the ten minutes of a trigger again: it is asked about now."""
        self._tracked[tracked.scaled_object, tracked.given] = tracked

    def all(self) -> list[TrackedTrigger]:
        """Return every trigger that is tracked, by the names of their ScaledObjects."""
        with self._tracked.timer:  # the time stands still, so none ends meanwhile
            return sorted(self._tracked.values(), key=operator.attrgetter("scaled_object"))

    def of(self, scaled_object: ScaledObject) -> list[TrackedTrigger]:
        return [tracked for tracked in self.all() if tracked.scaled_object == scaled_object]


def decide_gpus(
    tracked: TrackedTrigger,
    reading: Reading | str,
    target_error: str | None,
    *,
    is_observing: bool,
) -> GpuDecision:
    """Return what the GPUs say, and remember it in case the load becomes unknown.

    It is the last decision again, while all its inputs are the same. While the scale target is
    unknown, only the other workload's GPUs count. With `is_observing` no call of KEDA or the HPA
    tells that a workload exists: one that was never seen is unknown.
    """
    spec = tracked.spec
    if isinstance(reading, str):
        return GpuDecision(unknown(spec, reading, None))
    if target_error is not None:
        decided = unknown(spec, target_error, None)
        return GpuDecision(decided, _decide_neighbour(spec, decided, reading))
    if tracked.gpu is not None and _still_holds(tracked.gpu, spec, reading):
        return tracked.gpu
    snapshot, calls = reading.snapshot, tracked.hpa_calls
    asking = calls.asking(reading.clock_seconds, reading.present - reading.clock_seconds)
    context = Context(
        reading.now_for(spec),
        trouble=reading.trouble,
        asking=asking,
        hpa_has_stopped=calls.has_stopped(reading.clock_seconds),
    )
    if snapshot is None or not reading.is_covered:
        decided = _recalled_without_snapshot(tracked, reading, context)
    else:
        view = snapshot.of(spec.pods.namespace)
        decided = decide(spec, view, context)
        if is_observing and tracked.memory is None and is_never_seen(spec, view, decided):
            never_seen = unknown(spec, reasons.never_seen(spec), None)
            decided = replace(never_seen, evidence=decided.evidence)
        elif decided.state is State.UNKNOWN:
            decided = _recalled(tracked, reading, context, decided, view)
        else:
            tracked.memory = memory.remember(tracked.memory, decided, snapshot.at)
    tracked.gpu = GpuDecision(
        decided,
        neighbour=_decide_neighbour(spec, decided, reading),
        snapshot_age_seconds=None if snapshot is None else reading.now - snapshot.at,
        snapshot=None if snapshot is None else weakref.ref(snapshot),
        at=context.now,
    )
    return tracked.gpu


def _still_holds(gpu: GpuDecision, spec: TriggerSpec, reading: Reading) -> bool:
    """Tell whether a new decision would be the same: all its inputs are the same.

    That is so if less than a step has passed and there is no trouble. The decision for an
    unknown load also depends on memories, which can change at any time.
    """
    snapshot = reading.snapshot
    if snapshot is None or gpu.snapshot is None or gpu.snapshot() is not snapshot:
        return False
    if gpu.decision.state is State.UNKNOWN or reading.trouble is not None:
        return False
    now = reading.now_for(spec)
    is_recent = 0 <= now - gpu.at < reading.step_seconds
    return is_recent and now - snapshot.at <= spec.max_age_seconds


def _recalled_without_snapshot(
    tracked: TrackedTrigger, reading: Reading, context: Context
) -> Decision:
    """Return the answer to a load that is unknown because there is no snapshot of it."""
    spec, kept, asking = tracked.spec, tracked.memory, context.asking
    if asking is not None:
        kept = memory.asked(kept, asking.at)
    recalled = memory.recall(
        kept, reading.now, reading.step_seconds, hpa_has_stopped=context.hpa_has_stopped
    )
    decided = unknown(
        spec,
        reading.trouble or f"source {spec.source}: no answer yet",
        recalled,
        hpa_has_stopped=context.hpa_has_stopped,
        has_pods=None if asking is None else reasons.ASKED,
    )
    tracked.memory = memory.remember(kept, decided, reading.now)
    return decided


def _recalled(
    tracked: TrackedTrigger,
    reading: Reading,
    context: Context,
    decided: Decision,
    view: NamespaceSnapshot,
) -> Decision:
    """Return the answer to a load that the snapshot leaves unknown, by what was known before."""
    spec, before = tracked.spec, tracked.memory
    if before is not None and before.at > view.at:  # another signal said it
        kept = memory.remember(before, decided, reading.now)
    else:
        last = decide(spec, view, replace(context, now=view.at))
        kept = memory.remember(before, last, view.at)
    if context.asking is not None:
        kept = memory.asked(kept, context.asking.at)
    tracked.memory = kept
    recalled = memory.recall(
        kept, reading.lost_at, reading.step_seconds, hpa_has_stopped=context.hpa_has_stopped
    )
    return decide(spec, view, replace(context, remembered=recalled))


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
    snapshot = reading.covered
    if snapshot is None:
        return unknown(other, decided.reason, None)
    context = Context(reading.now_for(spec), trouble=reading.trouble)
    return decide(other, snapshot.of(other.pods.namespace), context)
