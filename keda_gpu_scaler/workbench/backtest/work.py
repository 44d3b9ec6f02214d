"""What a workload was given to do, as far as its samples show it. Values only."""

from collections.abc import Sequence
from dataclasses import dataclass

from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a workload at equal distances of a step, from `begin` on."""

    begin: float
    """Unix time; a multiple of the step."""
    loads: Sequence[float | None]
    """In percent of what a replica can do; None: unknown."""
    demands: Sequence[float | None] = ()
    """The demand then; None: unknown. Empty: the trigger has none."""
    replicas: Sequence[int | None] = ()
    """How many replicas there were; None: unknown."""
    full: Sequence[bool] = ()
    """Whether all replicas were full: there may have been more work than they show. Empty: the
    work is a demand, which shows all of it."""
    gpus: int = 0
    """The GPUs of a replica; 0: no exporter shows one."""
    futile: Sequence[tuple[float, str]] = ()
    """When a scale-out turned out not to help, and the sentence about it."""

    @property
    def covered_seconds(self) -> float:
        return STEP_SECONDS * sum(load is not None for load in self.loads)

    @property
    def coverage(self) -> float:
        """The part of the time in which the work is known."""
        return self.covered_seconds / (STEP_SECONDS * len(self.loads)) if self.loads else 0.0

    @property
    def saturation(self) -> float:
        """The part of the known time in which the work may have been more than it shows."""
        return STEP_SECONDS * sum(self.full) / self.covered_seconds if self.covered_seconds else 0.0

    def load(self, seconds: float) -> float:
        """Return the work at a time since the begin; the unknown counts as none."""
        at = min(len(self.loads) - 1, max(0, int(seconds // STEP_SECONDS)))
        return self.loads[at] or 0.0
