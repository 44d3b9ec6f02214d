"""When KEDA's loops and the HPA's ask about which trigger, at their defaults. Pure.

KEDA polls each ScaledObject every 30 s and the HPA syncs every 15 s, each in a loop of its own; a
loop starts when its object was made, so that many of them are spread evenly. Where nothing can go
to zero (`minReplicaCount: 1` or more, no `idleReplicaCount`), KEDA 2.21 polls for the metrics'
names alone.
"""

from operator import attrgetter
from typing import NamedTuple

POLL_SECONDS = 30.0
SYNC_SECONDS = 15.0
STEP_SECONDS, DELAY_SECONDS = 15.0, 10.0
"""The scaler's defaults: a decision holds for a step, and instants are so long ago."""


class Ask(NamedTuple):
    """One time that one trigger is asked about."""

    at: float
    """Seconds since the begin."""
    trigger: int
    is_for_value: bool = True
    """Whether it needs a value, or the metrics' names alone."""


def asks(triggers: int, seconds: float, *, polls_values: bool = True) -> list[Ask]:
    """Return everything that is asked in this time, in order.

    Args:
        triggers: how many ScaledObjects there are, each with one trigger.
        seconds: how long it goes on.
        polls_values: whether KEDA polls for values, or the HPA alone asks for them.
    """
    polls = _loops(POLL_SECONDS, triggers, seconds)
    polled = [each._replace(is_for_value=polls_values) for each in polls]
    return sorted([*polled, *_loops(SYNC_SECONDS, triggers, seconds)], key=attrgetter("at"))


def queries_per_second(triggers: int, *, polls_values: bool = True) -> float:
    """Return what KEDA's own prometheus trigger sends for as many ScaledObjects.

    Args:
        triggers: how many ScaledObjects there are, each with one trigger.
        polls_values: whether KEDA polls for values, or the HPA alone asks for them.
    """
    return triggers * ((1 / POLL_SECONDS if polls_values else 0) + 1 / SYNC_SECONDS)


def seconds_until_between(now: float) -> float:
    """Return how long it is until the middle between two instants that the scaler asks about."""
    return (STEP_SECONDS / 2 + DELAY_SECONDS - now) % STEP_SECONDS


def _loops(every_seconds: float, triggers: int, seconds: float) -> list[Ask]:
    gap = every_seconds / triggers
    count = round(seconds / gap)
    # Half a gap in, so that no ask is at the very edge of the time.
    return [Ask((number + 0.5) * gap, number % triggers) for number in range(count)]
