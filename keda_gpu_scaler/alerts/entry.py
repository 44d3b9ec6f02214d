"""What is known of one alert, and how it merges with what another replica knows of it.

Messages come late, twice, in any order and over several replicas. So an entry holds the newest
that was ever said of either state, and from that alone follows whether the alert fires: whoever has
heard the same messages says the same, in whatever order they came.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from keda_gpu_scaler.spec import ScaledObject

NEVER = float("-inf")
LATE_SECONDS = 10.0
"""A message can be this late: on its way, or sent anew after an answer that was lost. An alert that
is said to fire later than this after it was last said to have ended does fire again, even if it
claims to have begun before: so says Alertmanager of one that it took for resolved because nobody
mentioned it for a while."""
TICK_SECONDS = 0.001
"""What is heard after something else is newer than that, whatever the clocks of replicas say."""


class Key(NamedTuple):
    """What tells one alert from every other."""

    scaled_object: ScaledObject
    alert: str
    """The sender's mark of the alert, such as a fingerprint of its labels."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a sender says of one alert."""

    key: Key
    name: str
    fires: bool
    starts_at: float | None = None
    """When it began by the sender's clock; None: it does not say."""
    ends_at: float | None = None
    """When it ended by the sender's clock; None: it does not say, or the alert fires."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The newest that was said of an alert; seconds since the epoch, or `NEVER`."""

    key: Key
    name: str
    began_at: float = NEVER
    """Its newest beginning, by the sender's clock if it gave one."""
    heard_at: float = NEVER
    """When it was last said to fire."""
    ended_at: float = NEVER
    """Its newest end, by the sender's clock if it gave one."""
    told_at: float = NEVER
    """When that end was last told."""

    @property
    def fires(self) -> bool:
        """Whether it fires by the newest that was said of it."""
        return self.began_at > self.ended_at or self.heard_at >= self.told_at + LATE_SECONDS

    @property
    def newest_at(self) -> float:
        """When something new was last said of it."""
        return max(self.heard_at, self.told_at)


def noted(notice: Notice, known: Entry | None, now: float) -> Entry:
    """Return what is known of an alert once a sender has said this of it.

    Args:
        notice: what it says.
        known: what was known before.
        now: when it says so.
    """
    at = now if known is None else max(now, known.newest_at + TICK_SECONDS)
    starts_at = at if notice.starts_at is None else notice.starts_at
    said = Entry(notice.key, notice.name)
    if notice.fires:
        said = replace(said, began_at=starts_at, heard_at=at)
    else:
        # No end comes before its beginning, also by clocks that differ.
        ended_at = max(at if notice.ends_at is None else notice.ends_at, notice.starts_at or NEVER)
        said = replace(said, ended_at=ended_at, told_at=at)
    return said if known is None else merged(known, said)


def merged(one: Entry, other: Entry) -> Entry:
    """Return what two replicas together know of an alert.

    The order of the two does not matter, nor how often and in which groups entries are merged.
    """
    # An end that is told again holds against all that came before: what a late message revived
    # ends with it.
    ended_at, told_at = max((one.ended_at, one.told_at), (other.ended_at, other.told_at))
    return Entry(
        one.key,
        max(one.name, other.name),
        began_at=max(one.began_at, other.began_at),
        heard_at=max(one.heard_at, other.heard_at),
        ended_at=ended_at,
        told_at=told_at,
    )
