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
    wrong: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    faulty: list[str] = field(default_factory=list)
    """Answers with a status that no fault of a server may cause."""
    calm: Counter[str] = field(default_factory=Counter)
    """The same, of GetMetrics in undisturbed minutes at the scaler that is not restarted.

    The other one's direct source has no past: it holds until its window is full.
    """
    faults: Counter[str] = field(default_factory=Counter)
    """How often each fault was played."""
    restarts: Counter[str] = field(default_factory=Counter)
    sizes: list[Size] = field(default_factory=list)
    stop_seconds: list[float] = field(default_factory=list)
    own_faults: list[str] = field(default_factory=list)
    """What the scalers logged of faults of their own."""

    @property
    def known(self) -> float:
        """The share of numbers among the answers in undisturbed minutes."""
        return self.calm["number"] / max(1, self.calm.total())

    def growth(self, name: str) -> float:
        """Return the median of the last quarter, in medians of the second."""
        values = [float(getattr(size, name)) for size in self.sizes]
        quarter = len(values) // 4
        if not quarter:
            return 1.0
        second, last = values[quarter : 2 * quarter], values[-quarter:]
        return statistics.median(last) / statistics.median(second)

    def failures(self, *, is_long: bool) -> list[str]:
        """Return what does not hold.

        Args:
            is_long: it took long enough to judge sizes, and what is known in undisturbed minutes.
        """
        found = [f"wrong: {one}" for one in self.wrong]
        found += [f"stuck: {one}" for one in self.stuck]
        found += [f"faulty: {one}" for one in self.faulty]
        found += [f"own fault: {one}" for one in self.own_faults]
        if is_long:
            if self.known < KNOWN:
                found.append(f"only {self.known:.1%} of the undisturbed answers are numbers")
            grown = {name: self.growth(name) for name in FLAT}
            found += [
                f"{name} grew to {ratio:.3f} of what it was"
                for name, ratio in grown.items()
                if ratio > GROWTH
            ]
        return found

    def lines(self) -> Sequence[str]:
        mib = 1024 * 1024
        sizes = self.sizes or [Size(0, 0, 0, 0, 0, 0)]
        played = f"{self.faults.total()} faults of {len(self.faults)} kinds"
        bad = {
            "wrong": len(self.wrong),
            "stuck": len(self.stuck),
            "of a faulty status": len(self.faulty),
            "own faults": len(self.own_faults),
        }
        peak = max(size.peak_bytes for size in sizes) / mib
        return [
            f"{self.seconds / 60:.0f} minutes, {played}, restarts {dict(self.restarts)}",
            f"{self.calls.total():,} answers {dict(self.calls)}",
            ", ".join(f"{name} {count}" for name, count in bad.items()),
            f"numbers in undisturbed minutes {self.known:.2%} of {self.calm.total():,}",
            f"resident {sizes[-1].resident_bytes / mib:.0f} MiB, peak {peak:.0f} MiB",
            *(f"{name} {getattr(sizes[-1], name)}, {self.growth(name):.3f}" for name in FLAT),
            f"ended by SIGTERM within {max(self.stop_seconds, default=0):.1f} s",
        ]
