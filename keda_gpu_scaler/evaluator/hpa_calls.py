"""Whether the HPA asks about a trigger, which it does while the workload has replicas.

KEDA passes the HPA's deadline on, and sets none when it polls. With `useCachedMetrics` the HPA
never asks, and its silence says nothing.
"""

from dataclasses import dataclass

from keda_gpu_scaler.decision.decision import Asking

SILENT_SECONDS = 60.0
"""Four syncs of the HPA at its default of 15 s, because a sync may be late."""
REPEATED_SECONDS = 30.0
"""A person or a probe asks once; the HPA goes on. But a process that has just started cannot know
whether it is the first call: for this long, one is enough."""


@dataclass(slots=True)
class HpaCalls:
    """The calls about one trigger; all times are seconds on one clock."""

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
        """Tell whether the HPA asked within the last minute."""
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
