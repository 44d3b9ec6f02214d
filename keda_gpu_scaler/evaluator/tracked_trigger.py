"""One trigger of one ScaledObject, and what is remembered of it between two evaluations."""

import math
import operator
import weakref
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.memory import Memory
from keda_gpu_scaler.evaluator.hpa_calls import HpaCalls
from keda_gpu_scaler.evaluator.snapshot_cache import SnapshotCache
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.snapshot import Key, Snapshot
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.spec.sizes import deep_size
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import PodSelector, ScaleTarget


@dataclass(frozen=True, slots=True)
class GpuDecision:
    """What the GPUs say; the same object as before, until it can have changed."""

    decision: Decision
    neighbour: Decision | None = None
    """The decision for the workload of activationWorkload, unless the own GPUs say active."""
    snapshot_age_seconds: float | None = None
    source: str = ""
    """As facts name it."""
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
    key: Key
    """The snapshot that it shares."""
    kept_bytes: int
    asked_at: float
    """When it was asked about last."""
    gpu: GpuDecision | None = None
    memory: Memory | None = None
    """Used when its load becomes unknown."""
    answer: Answer | None = None
    hpa_calls: HpaCalls = field(default_factory=HpaCalls)


TRACKED_BYTES = 48 * 2**20
"""Room for fifteen thousand usual triggers."""
_DECISION_BYTES = 2048
"""What is remembered of one trigger beside its spec."""
_LEFT_BYTES = TRACKED_BYTES // 8 * 7
"""What stays of too many: to find those that were asked about longest ago takes a look at all."""
_LOOK_SECONDS = 60.0
"""How often those are looked for that are forgotten."""


_TrackedKey = tuple[ScaledObject, TriggerSpec, PodSelector | None]


class TrackedTriggers:
    """The triggers that were evaluated within the last ten minutes, bounded in bytes."""

    def __init__(self, snapshot_cache: SnapshotCache) -> None:
        self._snapshot_cache = snapshot_cache
        self._tracked: dict[_TrackedKey, TrackedTrigger] = {}
        self._keys: dict[ScaledObject, list[_TrackedKey]] = {}
        self._kept_bytes, self._looked_at = 0, -math.inf

    def track(
        self,
        scaled_object: ScaledObject,
        given: TriggerSpec,
        now: float,
        pods: PodSelector | None = None,
    ) -> TrackedTrigger:
        """Return the tracked trigger, a new one if it is not known; it is asked about now.

        `pods` are those of the scale target, if the trigger names none itself and they are known.
        """
        tracked = self._tracked.get((scaled_object, given, pods))
        if tracked is None or now - tracked.asked_at >= FORGET_SECONDS:
            tracked = self._add(scaled_object, given, now, pods)
        elif tracked.given is not given:  # the same trigger in other words
            tracked.given, tracked.spec = given, _with_pods(given, pods)
        tracked.asked_at = now
        return tracked

    def all(self, now: float) -> list[TrackedTrigger]:
        """Return every trigger that is tracked, by the names of their ScaledObjects."""
        self._forget(now)
        by_name = sorted(self._tracked.values(), key=operator.attrgetter("scaled_object"))
        return _each_once(by_name)

    def of(self, scaled_object: ScaledObject, now: float) -> list[TrackedTrigger]:
        """Return the tracked triggers of one ScaledObject, without a look at all others."""
        triggers = [self._tracked[key] for key in self._keys.get(scaled_object, ())]
        return _each_once(
            [tracked for tracked in triggers if now - tracked.asked_at < FORGET_SECONDS]
        )

    def _add(
        self, scaled_object: ScaledObject, given: TriggerSpec, now: float, pods: PodSelector | None
    ) -> TrackedTrigger:
        spec = _with_pods(given, pods)
        snapshot_query, key = self._snapshot_cache.needs(spec)
        tracked = TrackedTrigger(
            scaled_object,
            given,
            spec,
            snapshot_query,
            key,
            kept_bytes=_DECISION_BYTES + deep_size(spec),
            asked_at=now,
        )
        tracked_key = scaled_object, given, pods
        self._drop(tracked_key)
        if now >= self._looked_at + _LOOK_SECONDS:
            self._forget(now)
        if self._kept_bytes + tracked.kept_bytes > TRACKED_BYTES:
            longest_ago_first = sorted(self._tracked.items(), key=lambda item: item[1].asked_at)
            for old_key, _ in longest_ago_first:
                if self._kept_bytes > _LEFT_BYTES:
                    self._drop(old_key)
        self._tracked[tracked_key] = tracked
        self._keys.setdefault(scaled_object, []).append(tracked_key)
        self._kept_bytes += tracked.kept_bytes
        return tracked

    def _forget(self, now: float) -> None:
        """Drop the triggers that were not asked about for long."""
        self._looked_at = now
        for key, tracked in list(self._tracked.items()):
            if now - tracked.asked_at >= FORGET_SECONDS:
                self._drop(key)

    def _drop(self, key: _TrackedKey) -> None:
        tracked = self._tracked.pop(key, None)
        if tracked is not None:
            self._kept_bytes -= tracked.kept_bytes
            self._keys[tracked.scaled_object].remove(key)
            if not self._keys[tracked.scaled_object]:
                del self._keys[tracked.scaled_object]


def _each_once(triggers: list[TrackedTrigger]) -> list[TrackedTrigger]:
    """Return each trigger once.

    One without `workload` is tracked again as soon as it is known what the ScaledObject scales.
    """
    with_pods = {
        (tracked.scaled_object, tracked.given)
        for tracked in triggers
        if not isinstance(tracked.spec.pods, ScaleTarget)
    }
    return [
        tracked
        for tracked in triggers
        if not isinstance(tracked.spec.pods, ScaleTarget)
        or (tracked.scaled_object, tracked.given) not in with_pods
    ]


def _with_pods(given: TriggerSpec, pods: PodSelector | None) -> TriggerSpec:
    return given if pods is None else replace(given, pods=pods, workload=str(pods))
