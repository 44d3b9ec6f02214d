"""The phases of the demo, and the check that each reaches its expected replicas. Pure.

Everything runs about thirty times faster than in a cluster with KEDA's default settings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.workbench.world.cluster import WorkloadKey

SPEED = 30
POLL_TICKS = 2
"""KEDA polls at every second sync of the HPA: 30 s against 15 s."""
SYNC_SECONDS = 15 / SPEED
COOLDOWN_SECONDS = 300 / SPEED
STABILIZATION_SECONDS = 300 / SPEED
STARTUP_SECONDS = 1.0
THRESHOLD = 70
ROUTER_TARGET = 1000
"""The router's trigger only scales up from 0: its target is too high for a second replica."""

SCALED_OBJECT = ScaledObject("demo", "bert")
OURS = WorkloadKey(*SCALED_OBJECT)
CORRECTED = WorkloadKey("corrected", "bert")
"""The same workload once more, scaled by `sum()` with AverageValue: the recipe that is right."""
USUAL = WorkloadKey("usual", "bert")
"""And once more, scaled by the usual recipe: `avg()` with AverageValue."""
TRIGGER: Mapping[str, str] = {
    "workload": f"deployment/{SCALED_OBJECT.name}",
    "threshold": str(THRESHOLD),
    "window": "2s",
    "activationWindow": "3s",
    # Start-up and window together: no replica counts before the load has spread to all of them.
    "warmup": "3s",
    "maxAge": "30s",
}


class DemoError(Exception):
    """The demo failed; the message says what was expected and what was seen."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A load that is offered until the replicas have met their goal for a while."""

    title: str
    load: float
    hold_seconds: float
    limit_seconds: float

    @property
    def goal(self) -> int:
        return math.ceil(self.load / THRESHOLD)


PHASES = (
    Phase("idle at zero", 0, 2, 6),
    # Held for longer than start-up, window and a poll: after the load has spread, 7 is still right.
    Phase("load arrives", 430, 6, 36),
    Phase("load falls", 130, 2, 20),
    Phase("idle again", 0, 1, 24),
)
HIGHEST = max(PHASES, key=lambda phase: phase.load)


@dataclass(slots=True)
class Progress:
    """The current phase, and since when its goal is met."""

    phases: Sequence[Phase] = PHASES
    index: int = 0
    entered_at: float = 0
    met_at: float | None = None

    @property
    def phase(self) -> Phase:
        return self.phases[self.index]

    def advance(self, now: float, replicas: int) -> bool:
        """Go on to the next phase when the goal was met long enough; True after the last phase.

        DemoError if a phase takes longer than its limit.
        """
        if replicas != self.phase.goal:
            self.met_at = None
        elif self.met_at is None:
            self.met_at = now
        phase = self.phase
        if self.met_at is not None and now - self.met_at >= phase.hold_seconds:
            if self.index + 1 == len(self.phases):
                return True
            self.index, self.entered_at, self.met_at = self.index + 1, now, None
        elif now - self.entered_at > phase.limit_seconds:
            raise DemoError(
                f"{phase.title}: {phase.load:g} % over a threshold of {THRESHOLD} % needs "
                f"{phase.goal} replicas; after {phase.limit_seconds:g} s there are {replicas}"
            )
        return False


def summary(peak: int, corrected_peak: int, usual_peak: int, seconds: float) -> str:
    return (
        f"From 0 to {peak} replicas and back to 0 in {seconds:.0f} s, which stand for "
        f"{seconds * SPEED / 60:.0f} minutes in a cluster. Expected at the peak: "
        f"{HIGHEST.load:g} % / {THRESHOLD} % = {HIGHEST.goal} replicas. On the same load the usual "
        f"recipe, avg() with AverageValue, never asked for more than {usual_peak}, and the "
        f"corrected one, sum() with AverageValue, for {corrected_peak}."
    )
