"""One trigger of one ScaledObject, and what is remembered of it between two evaluations."""

import math
import operator
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from cachetools import TTLCache

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.memory import Memory
from keda_gpu_scaler.evaluator.hpa_calls import HpaCalls
from keda_gpu_scaler.evaluator.peer_decisions import AskedTrigger, asked_trigger
from keda_gpu_scaler.snapshot.snapshot import Snapshot
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.spec.sizes import deep_size
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec


@dataclass(frozen=True, slots=True)
class GpuDecision:
    """What the GPUs say; the same object as before, until it can have changed."""

    decision: Decision
    neighbour: Decision | None = None
    """The decision for the workload of activationWorkload, unless the own GPUs say active."""
    snapshot_age_seconds: float | None = None
    source: str = ""
    """As facts name it."""
    is_of_peer: bool = False
    """Another replica of the scaler made it, with all other signals that it knows of."""


class MadeDecision(NamedTuple):
    """The last GPU decision, and its inputs."""

    gpu: GpuDecision
    snapshot: weakref.ref[Snapshot] | None
    """A weak reference, only to compare identity: a rarely evaluated trigger must not keep it."""
    at: float
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
        if self.gpu.is_of_peer:
            return "another replica of the scaler"
        if self.gpu.decision.activated:
            return "gpus"
        if self.gpu.neighbour is not None and self.gpu.neighbour.activated:
            return "activationWorkload"
        return "demand" if self.alert is None else "alert"


@dataclass(eq=False, slots=True, weakref_slot=True)
class TrackedTrigger:
    """A trigger that is evaluated."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    asked: AskedTrigger
    """What the replicas of the scaler call it."""
    made: MadeDecision | None = None
    memory: Memory | None = None
    """Used when its load becomes unknown."""
    answer: Answer | None = None
    hpa_calls: HpaCalls = field(default_factory=HpaCalls)
    gone_since: float | None = None
    """Since when another replica of the scaler says that it has no pods; None: it does not."""
    kept_bytes: int = 0
    renewed_at: float = -math.inf
    """When it was asked about last, to a second."""


TRACKED_BYTES = 48 * 2**20
"""Room for fifteen thousand usual triggers."""
_DECISION_BYTES = 2048
"""What is remembered of one trigger beside its spec."""
RENEW_SECONDS = 1.0
"""A trigger that is asked about again within this time is not renewed: its ten minutes last."""


class TrackedTriggers:
    """The triggers that were evaluated within the last ten minutes, bounded in bytes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with no triggers.

        Args:
            clock: seconds that never go back.
        """
        self._clock = clock
        self._tracked: TTLCache[tuple[ScaledObject, TriggerSpec], TrackedTrigger] = TTLCache(
            TRACKED_BYTES, FORGET_SECONDS, clock, operator.attrgetter("kept_bytes")
        )
        self._named: weakref.WeakValueDictionary[AskedTrigger, TrackedTrigger] = (
            weakref.WeakValueDictionary()
        )

    def track(self, scaled_object: ScaledObject, spec: TriggerSpec) -> TrackedTrigger:
        """Return the tracked trigger, new if needed, and renew it."""
        key = scaled_object, spec
        tracked = self._tracked.get(key)
        if tracked is None:
            size = _DECISION_BYTES + deep_size(spec)
            asked = asked_trigger(scaled_object, spec)
            tracked = TrackedTrigger(scaled_object, spec, asked, kept_bytes=size)
            self._named[asked] = tracked
        tracked.spec, now = spec, self._clock()
        if now - tracked.renewed_at >= RENEW_SECONDS:
            tracked.renewed_at = now
            self._tracked[key] = tracked
        return tracked

    def all(self) -> list[TrackedTrigger]:
        """Return every trigger that is tracked, by the names of their ScaledObjects."""
        return sorted(self._tracked.values(), key=operator.attrgetter("scaled_object"))

    def find(self, asked: AskedTrigger) -> TrackedTrigger | None:
        """Return the trigger that another replica of the scaler asks about, if it is tracked."""
        return self._named.get(asked)
