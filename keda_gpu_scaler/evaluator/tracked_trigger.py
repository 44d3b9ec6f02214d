"""One trigger of one ScaledObject, and all that is remembered of it between two questions."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import TTLCache

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.memory import Memory
from keda_gpu_scaler.retention import remembering
from keda_gpu_scaler.snapshot.snapshot import Snapshot
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec


@dataclass(frozen=True, slots=True)
class GpuDecision:
    """What the GPUs said; the same object as before, as long as nothing about it can be new."""

    decision: Decision
    neighbour: Decision | None = None
    """About the workload that activationWorkload names, unless the own GPUs say active."""
    snapshot_age_seconds: float | None = None
    source: str = ""
    """As the facts of the snapshot name it."""


class MadeDecision(NamedTuple):
    """What the GPUs said last, and what that was made of."""

    gpu: GpuDecision
    snapshot: weakref.ref[Snapshot] | None
    """Known by identity and not kept: a trigger that is asked about rarely outlives many."""
    at: float
    """On the source's clock."""


class Answer(NamedTuple):
    """What was answered last, and what that was made of."""

    decision: Decision
    at: float
    """On the evaluator's clock."""
    gpu: GpuDecision
    alert: str | None


@dataclass(eq=False, slots=True)
class TrackedTrigger:
    """A trigger that is asked about."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    made: MadeDecision | None = None
    memory: Memory | None = None
    """For the time when its load becomes unknown."""
    answer: Answer | None = None


class TrackedTriggers:
    """Every trigger that was asked about within ten minutes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Track none yet.

        Args:
            clock: seconds that never go back.
        """
        self._tracked: TTLCache[tuple[ScaledObject, TriggerSpec], TrackedTrigger] = remembering(
            clock
        )

    def track(self, scaled_object: ScaledObject, spec: TriggerSpec) -> TrackedTrigger:
        """Return the one, old or new, that is asked about now."""
        key = scaled_object, spec
        tracked = self._tracked.get(key) or TrackedTrigger(scaled_object, spec)
        self._tracked[key] = tracked
        return tracked
