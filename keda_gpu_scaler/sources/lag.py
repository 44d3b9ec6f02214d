"""How late the samples of a source arrive, where all of them are late. Pure.

Remote write and its relatives can be minutes behind. Then the newest sample is always old, and
moves on as fast as time does. While nothing is scraped it is old as well, and stands still: its
age grows. So only an age that stays the same is taken for a lag.
"""

import math
from collections import deque
from typing import NamedTuple

LEAST_SECONDS = 60.0
"""Younger samples are fresh at any scrape interval."""
MOST_SECONDS = 300.0
"""Prometheus shows no sample for longer."""
WATCHED_SECONDS = 120.0
"""How long an age has to stay the same, which allows for half of it: samples come in batches."""


class _Seen(NamedTuple):
    at: float
    age_seconds: float


class Lag:
    """The lag of one source; 0 until it has been watched for long enough."""

    def __init__(self, step_seconds: float) -> None:
        """Begin without lag; it is counted in whole steps, so that it seldom changes."""
        self.seconds = 0.0
        self._step_seconds = step_seconds
        self._seen: deque[_Seen] = deque()

    def observe(self, at: float, age_seconds: float) -> None:
        """Note the age of the newest sample of all targets; 0 if it is fresh.

        `at` is on the server's clock; an earlier time than before is ignored.
        """
        if self._seen and at <= self._seen[-1].at:
            return
        self._seen.append(_Seen(at, age_seconds))
        while len(self._seen) > 1 and self._seen[1].at <= at - WATCHED_SECONDS:
            self._seen.popleft()
        ages = [seen.age_seconds for seen in self._seen]
        least, spread = min(ages), max(ages) - min(ages)
        is_watched = at - self._seen[0].at >= WATCHED_SECONDS
        is_constant = is_watched and spread <= WATCHED_SECONDS / 2 and least <= MOST_SECONDS
        if is_constant or least < self.seconds:
            steps = math.ceil(least / self._step_seconds) if least > LEAST_SECONDS else 0
            self.seconds = steps * self._step_seconds
