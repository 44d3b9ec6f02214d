"""One trigger of one ScaledObject, and what is remembered of it between two evaluations."""

import operator
import weakref
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cachetools import LRUCache

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
from keda_gpu_scaler.spec.workload import PodSelector


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
    key: Key
    """The snapshot that it shares."""
    kept_bytes: int
    asked_at: float
    """When it was asked about last."""
    target_error: str | None = None
    """Why the pods of its scale target are not known now."""
    gpu: GpuDecision | None = None
    memory: Memory | None = None
    """Used when its load becomes unknown."""
    answer: Answer | None = None
    hpa_calls: HpaCalls = field(default_factory=HpaCalls)


TRACKED_BYTES = 48 * 2**20
"""Room for fifteen thousand usual triggers."""
_DECISION_BYTES = 2048
"""What is remembered of one trigger beside its spec."""


class TrackedTriggers:
    """The triggers that were asked about within the last ten minutes.

    Of more than have room those go that were asked about longest ago.
    """

    def __init__(self, snapshot_cache: SnapshotCache) -> None:
        self._snapshot_cache = snapshot_cache
        self._tracked: LRUCache[tuple[ScaledObject, TriggerSpec], TrackedTrigger] = LRUCache(
            TRACKED_BYTES, operator.attrgetter("kept_bytes")
        )

    def track(
        self,
        scaled_object: ScaledObject,
        given: TriggerSpec,
        now: float,
        pods: PodSelector | None = None,
    ) -> TrackedTrigger:
        """Return the tracked trigger, a new one if it is not known; it is asked about now.

        `pods` are those of the scale target, if the trigger names none itself and they are known.
        While they are not known, the trigger keeps those that it had. With other pods it is new.
        """
        key = scaled_object, given
        tracked = self._tracked.get(key)
        if (
            tracked is None
            or now - tracked.asked_at >= FORGET_SECONDS
            or pods not in (None, tracked.spec.pods)
        ):
            spec = given if pods is None else replace(given, pods=pods, workload=str(pods))
            tracked = self._tracked[key] = TrackedTrigger(
                scaled_object,
                given,
                spec,
                *self._snapshot_cache.needs(spec),
                kept_bytes=_DECISION_BYTES + deep_size(spec),
                asked_at=now,
            )
        elif tracked.given is not given:  # the same trigger in other words
            spec = replace(given, pods=tracked.spec.pods, workload=tracked.spec.workload)
            tracked.given, tracked.spec = given, spec
        tracked.asked_at = now
        return tracked

    def all(self, now: float) -> list[TrackedTrigger]:
        """Return every trigger that is tracked, by the names of their ScaledObjects."""
        return sorted(self._kept(now), key=operator.attrgetter("scaled_object"))

    def of(self, scaled_object: ScaledObject, now: float) -> list[TrackedTrigger]:
        """Return the tracked triggers of one ScaledObject."""
        return [tracked for tracked in self._kept(now) if tracked.scaled_object == scaled_object]

    def _kept(self, now: float) -> list[TrackedTrigger]:
        triggers = self._tracked.values()
        return [tracked for tracked in triggers if now - tracked.asked_at < FORGET_SECONDS]
