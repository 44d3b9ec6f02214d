"""Why triggers were refused recently, for users of a ScaledObject without a decision."""

import time
from collections.abc import Callable

from cachetools import TTLCache

from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts

KEPT_SECONDS = 1200.0
"""KEDA tries a ScaledObject that is wrong again after 17 minutes at the latest."""
TOTAL_BYTES = 4 * 2**20
_ENTRY_BYTES = 500
"""What a refusal takes beside its reason."""


class Refusals(facts.Subscriber):
    """Notes refused triggers, until they change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with none."""
        super().__init__({facts.TriggerRefused: self._refused, facts.TriggerChanged: self._changed})
        self._clock = clock
        self._refusals: TTLCache[ScaledObject, tuple[float, str]] = TTLCache(
            TOTAL_BYTES, KEPT_SECONDS, clock, lambda refusal: _ENTRY_BYTES + 4 * len(refusal[1])
        )

    def _refused(self, fact: facts.TriggerRefused) -> None:
        self._refusals[fact.scaled_object] = (self._clock(), fact.reason)

    def _changed(self, fact: facts.TriggerChanged) -> None:
        """Forget a refusal once the ScaledObject has a trigger that is right."""
        self._refusals.pop(fact.scaled_object, None)

    def of(self, scaled_object: ScaledObject) -> str | None:
        """Return when and why a trigger of a ScaledObject was refused, in one sentence."""
        refusal = self._refusals.get(scaled_object)
        if refusal is None:
            return None
        refused_at, reason = refusal
        return f"{self._clock() - refused_at:.0f} s ago KEDA was refused: {reason}"
