"""What happened in a scenario, second by second: the failure message of every test here.

    12.3 s  bert: replicas 1 → 3
    12.3 s  bert: hpa 230/70, ScalingActive True
    14.0 s  -- Prometheus stopped

It only records what it is given, once per change.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """One change of one thing."""

    at_seconds: float
    subject: str
    aspect: str
    value: object

    def __str__(self) -> str:
        what = f"-- {self.value}" if not self.subject else f"{self.subject}: {self.aspect}"
        return f"{self.at_seconds:7.1f} s  {what}" + (f" {self.value}" if self.subject else "")


@dataclass(slots=True)
class Timeline:
    """The changes seen so far, oldest first."""

    clock: Callable[[], float] = time.monotonic
    entries: list[Entry] = field(default_factory=list)
    _began: float = field(init=False)
    _last: dict[tuple[str, str], object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def now_seconds(self) -> float:
        return self.clock() - self._began

    def note(self, text: str) -> None:
        self.entries.append(Entry(self.now_seconds, "", "", text))

    def see(self, subject: str, aspect: str, value: object) -> None:
        """Write down what something is now, if it was something else before."""
        if self._last.get((subject, aspect)) != value:
            self._last[subject, aspect] = value
            self.entries.append(Entry(self.now_seconds, subject, aspect, value))

    def last(self, subject: str, aspect: str) -> object:
        return self._last.get((subject, aspect))

    def now(self, subject: str) -> dict[str, object]:
        return {aspect: value for (what, aspect), value in self._last.items() if what == subject}

    def path(self, subject: str, aspect: str, since_seconds: float = 0) -> list[object]:
        """Return every value in order: the one at `since_seconds`, and each change after it."""
        seen = [
            entry for entry in self.entries if (entry.subject, entry.aspect) == (subject, aspect)
        ]
        earlier = [entry.value for entry in seen if entry.at_seconds < since_seconds]
        return earlier[-1:] + [entry.value for entry in seen if entry.at_seconds >= since_seconds]

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))
