"""The instants of a snapshot, the server's clock, and how late its samples arrive. Pure.

Instants are multiples of a step, the same for all triggers and on every server. They are counted in
whole milliseconds, so that they equal the times in a server's answers to the last digit. The
server's clock is known from its answers.
"""

import math
import operator
import time
from collections import deque
from collections.abc import Callable, Iterable

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.times import REMEMBERED_SECONDS

HISTORY_STEP_SECONDS = 120.0
"""Whether a pod existed can be seen at a coarse step, and 30 instants an hour are cheap."""
HISTORY_SECONDS = REMEMBERED_SECONDS + 2 * HISTORY_STEP_SECONDS
"""An hour, as long as pods are waited for, and what its coarse step can hide at both ends."""


def floored(seconds: float, step: float) -> float:
    """Return the last multiple of the step up to a time."""
    step_ms = milliseconds(step)
    return math.floor(seconds * 1000) // step_ms * step_ms / 1000


def whole_steps(span_seconds: float, step: float) -> float:
    """Return the span, rounded up to a whole number of steps.

    Prometheus aligns a subquery to multiples of its step, VictoriaMetrics to its beginning: both
    show the same instants if begin and end are such multiples.
    """
    step_ms = milliseconds(step)
    return math.ceil(milliseconds(span_seconds) / step_ms) * step_ms / 1000


def within(at: float, span_seconds: float, step: float) -> tuple[float, ...]:
    """Return the multiples of the step in (at - span, at]."""
    last, step_ms = milliseconds(at), milliseconds(step)
    first = (last - milliseconds(span_seconds)) // step_ms + 1
    return tuple(number * step_ms / 1000 for number in range(first, last // step_ms + 1))


def between(first: float, last: float, rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the points from `first` to `last` in order, without rows that have none.

    Prometheus 2 and VictoriaMetrics show one more instant, at the very beginning of a span. No
    server shows one that was not asked for, such as a later one, which would be fresh for ever.
    """
    kept, inside = list[Row](), None
    for row in rows:
        times = row.times
        if times is not inside:  # as other rows have them
            if not all(map(operator.le, (first, *times), (*times, last))):
                points = sorted(point for point in row.points if first <= point[0] <= last)
                kept += [Row.of(row.labels, points)] if points else []
                continue
            inside = times
        if times:
            kept.append(row)
    return kept


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


SYNCHRONIZED_SECONDS = 300.0
"""Clocks drift by milliseconds in this time."""
LEAP_SECONDS = 2.0
"""Where wall time differs by more, it was set, or the machine slept: NTP's small corrections do not
count."""
FARTHEST_SECONDS = 365 * 86_400.0
"""Far above what the clocks of a working server and of this machine differ by."""
TURNED_BACK_SECONDS = 60.0
"""A clock that seems to go back by more is an old answer from a cache."""
CACHED_SECONDS = 900.0
"""Caches keep no present number for longer; from then on the clock was in fact turned back."""


class ServerClock:
    """The server's time; this machine's time until the server was asked for its own."""

    def __init__(
        self, clock: Callable[[], float], wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._offset = self._ahead = wall_clock() - clock()
        self._set_at = float("-inf")

    @property
    def is_synchronized(self) -> bool:
        is_recent = self._clock() - self._set_at < SYNCHRONIZED_SECONDS
        return is_recent and not self._leap_seconds()

    def set(self, seconds: float) -> None:
        """Set the server's present time, or raise SourceMalformedError if one of them is wrong."""
        here = self._wall_clock()
        if not abs(seconds - here) <= FARTHEST_SECONDS:
            raise errors.SourceMalformedError(
                f"a clock that says {seconds:.15g} s since 1970, and this machine's says "
                f"{here:.0f}; expected clocks that are less than a year apart"
            )
        behind_seconds = self._clock() + self._offset - seconds
        if behind_seconds > TURNED_BACK_SECONDS and self._clock() - self._set_at < CACHED_SECONDS:
            raise errors.SourceMalformedError(
                f"a clock that went back by {behind_seconds:.0f} s; expected the present time, "
                "not an old answer of a cache"
            )
        self._offset, self._set_at = seconds - self._clock(), self._clock()
        self._ahead = here - self._clock()

    def now(self) -> float:
        return self._clock() + self._offset + self._leap_seconds()

    def _leap_seconds(self) -> float:
        """Return how far the machine's time leapt ahead since the clock was set: it slept."""
        leap_seconds = self._wall_clock() - self._clock() - self._ahead
        return leap_seconds if leap_seconds > LEAP_SECONDS else 0.0


LEAST_SECONDS = 60.0
"""Younger samples are fresh at any scrape interval."""
MOST_SECONDS = 300.0
"""Prometheus shows no sample for longer."""
WATCHED_SECONDS = 120.0
"""How long an age has to stay the same, which allows for half of it: samples come in batches."""


class Lag:
    """How late the samples of one source arrive, where all of them are late; mostly 0.

    Remote write and its relatives can be minutes behind. Then the newest sample is always old, and
    moves on as fast as time does. While nothing is scraped it is old as well, and stands still: its
    age grows. So only an age that stays the same is taken for a lag.
    """

    def __init__(self, step_seconds: float) -> None:
        """Begin without lag; it is counted in whole steps, so that it seldom changes."""
        self.seconds = 0.0
        self._step_seconds = step_seconds
        self._ages = deque[tuple[float, float]]()
        """The ages of the newest sample, each with its time before it."""

    def observe(self, at: float, age_seconds: float) -> None:
        """Note the age of the newest sample of all targets; 0 if it is fresh.

        `at` is on the server's clock; an earlier time than before is ignored.
        """
        if self._ages and at <= self._ages[-1][0]:
            return
        self._ages.append((at, age_seconds))
        while len(self._ages) > 1 and self._ages[1][0] <= at - WATCHED_SECONDS:
            self._ages.popleft()
        ages = [age for _, age in self._ages]
        least, spread = min(ages), max(ages) - min(ages)
        is_watched = at - self._ages[0][0] >= WATCHED_SECONDS
        is_constant = is_watched and spread <= WATCHED_SECONDS / 2 and least <= MOST_SECONDS
        if is_constant or least < self.seconds:
            steps = math.ceil(least / self._step_seconds) if least > LEAST_SECONDS else 0
            self.seconds = steps * self._step_seconds
