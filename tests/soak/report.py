"""What a soak has counted, and whether it holds. Pure."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.soak.process import Size

GROWTH = 1.05
"""The largest ratio between the medians of the last and the second quarter."""
FLAT = ("resident_bytes", "files", "threads", "tasks", "series")
"""What may not grow, by the names of Size."""
KNOWN = 0.95
"""The smallest share of numbers among the answers in undisturbed minutes."""


@dataclass(slots=True)
class Report:
    """The counts of one soak."""

    seconds: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    """By what came back: a number, hold, active, inactive, or a status."""
    broken: list[str] = field(default_factory=list)
    """Answers that are wrong, stuck, or of a status that no fault of a server may cause, and what
    the scalers logged of faults of their own."""
    calm: Counter[str] = field(default_factory=Counter)
    """The same, of GetMetrics in undisturbed minutes at the scaler that is not restarted.

    The other one's direct source has no past: it holds until its window is full.
    """
    faults: Counter[str] = field(default_factory=Counter)
    """How often each fault was played."""
    restarts: Counter[str] = field(default_factory=Counter)
    sizes: list[Size] = field(default_factory=list)

    @property
    def known(self) -> float:
        """The share of numbers among the answers in undisturbed minutes."""
        return self.calm["number"] / max(1, self.calm.total())

    def growth(self, name: str) -> float:
        """Return the median of the last quarter, in medians of the second.

        One more is none: a pool that was never full before may start its next thread.
        """
        values = [float(getattr(size, name)) for size in self.sizes]
        quarter = len(values) // 4
        if not quarter:
            return 1.0
        second, last = values[quarter : 2 * quarter], values[-quarter:]
        before, after = statistics.median(second), statistics.median(last)
        return after / before if after > before + 1 else min(1.0, after / before)

    def failures(self, *, is_long: bool) -> list[str]:
        """Return what does not hold.

        Args:
            is_long: it took long enough to judge sizes, and what is known in undisturbed minutes.
        """
        if not is_long:
            return self.broken
        unknown = f"only {self.known:.1%} of the undisturbed answers are numbers"
        return [
            *self.broken,
            *([unknown] if self.known < KNOWN else ()),
            *(
                f"{name} grew to {self.growth(name):.3f} of what it was"
                for name in FLAT
                if self.growth(name) > GROWTH
            ),
        ]

    def lines(self) -> Sequence[str]:
        mib = 1024 * 1024
        sizes = self.sizes or [Size(0, 0, 0, 0, 0, 0)]
        played = f"{self.faults.total()} faults of {len(self.faults)} kinds"
        peak = max(size.peak_bytes for size in sizes) / mib
        return [
            f"{self.seconds / 60:.0f} minutes, {played}, restarts {dict(self.restarts)}",
            f"{self.calls.total():,} answers {dict(self.calls)}",
            f"{len(self.broken)} of them wrong, stuck or of a faulty status, or own faults",
            f"numbers in undisturbed minutes {self.known:.2%} of {self.calm.total():,}",
            f"resident {sizes[-1].resident_bytes / mib:.0f} MiB, peak {peak:.0f} MiB",
            *(f"{name} {getattr(sizes[-1], name)}, {self.growth(name):.3f}" for name in FLAT),
        ]
