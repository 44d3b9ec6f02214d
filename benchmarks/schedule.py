"""When KEDA's loops and the HPA's ask about which trigger, at their defaults. Pure.

KEDA polls each ScaledObject every 30 s and the HPA syncs every 15 s, each in a loop of its own; a
loop starts when its object was made, so that many of them are spread evenly.
"""

from operator import attrgetter
from typing import NamedTuple

POLL_SECONDS = 30.0
SYNC_SECONDS = 15.0
ASKED_PER_SECOND = 1 / POLL_SECONDS + 1 / SYNC_SECONDS
"""Per ScaledObject. KEDA's own prometheus trigger sends one query each time."""


class Ask(NamedTuple):
    """One time that one trigger is asked about."""

    at: float
    """Seconds since the begin."""
    trigger: int


def asks(triggers: int, seconds: float) -> list[Ask]:
    """Return everything that is asked in this time, in order."""
    both = [*_loops(POLL_SECONDS, triggers, seconds), *_loops(SYNC_SECONDS, triggers, seconds)]
    return sorted(both, key=attrgetter("at"))


def queries_per_second(triggers: int) -> float:
    """Return what KEDA's own prometheus trigger sends for as many ScaledObjects."""
    return triggers * ASKED_PER_SECOND


def _loops(every_seconds: float, triggers: int, seconds: float) -> list[Ask]:
    gap = every_seconds / triggers
    count = round(seconds / gap)
    # Half a gap in, so that no ask is at the very edge of the time.
    return [Ask((number + 0.5) * gap, number % triggers) for number in range(count)]
