"""Which alerts this process was told of, and how what two replicas know is merged. Pure.

Messages come late, twice, in any order and over several replicas. So an entry holds the newest that
was ever said of either state, firing or ended, and from that alone follows whether the alert fires:
two replicas that were told the same messages say the same, in whatever order they came.

An entry that has ended stays for as long as one that fires may, so that a late message does not
revive it. What nobody has mentioned for that time is forgotten.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts

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


LIMIT = 10_000
"""Far more than any cluster has ScaledObjects that alerts wake; a few MB."""
AHEAD_SECONDS = 60.0
"""No replica's clock is further ahead. What one claims to have heard later than that would stay in
the book for ever, and above all that is heard here."""


class Alerts:
    """The book of alerts."""

    def __init__(
        self,
        lifetime_seconds: float,
        clock: Callable[[], float],
        observe: facts.Observer = facts.ignore,
        *,
        limit: int = LIMIT,
    ) -> None:
        """Know of no alert yet.

        Args:
            lifetime_seconds: how long an alert fires that nobody mentions again.
            clock: seconds since the epoch; those of all replicas have to agree within seconds.
            observe: is told of every alert that begins or ends.
            limit: how many alerts to know at most.
        """
        self.lifetime_seconds, self.limit = lifetime_seconds, limit
        self._clock, self._observe = clock, observe
        self._entries: dict[Key, Entry] = {}
        self._firing: dict[ScaledObject, dict[Key, Entry]] = {}
        self._ended: dict[Key, None] = {}
        """A set that keeps its order: the alert that ended first is the first one to forget."""
        self._listening: dict[ScaledObject, list[Callable[[], None]]] = {}

    def firing(self, scaled_object: ScaledObject) -> str | None:
        """Return the name of the alert that has fired longest for an object; None: none fires."""
        since = self._clock() - self.lifetime_seconds
        alerts = self._firing.get(scaled_object, {}).values()
        names = [(each.began_at, each.name) for each in alerts if each.heard_at > since]
        return min(names)[1] if names else None

    @contextmanager
    def listen(self, scaled_object: ScaledObject, call: Callable[[], None]) -> Iterator[None]:
        """Call at once whenever an alert about this object begins or ends, until left."""
        calls = self._listening.setdefault(scaled_object, [])
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)
            if not calls:
                self._listening.pop(scaled_object, None)

    def hear(self, notices: Iterable[Notice]) -> list[Entry]:
        """Take what a sender says; return what is known now of these alerts.

        What does not fit into the book is missing in there.
        """
        self.expire()
        now = self._clock()
        said = [noted(notice, self._entries.get(notice.key), now) for notice in notices]
        learnt = [entry for entry in said if self._learn(entry, now, "a message")]
        return [self._entries[entry.key] for entry in learnt]

    def merge(self, entries: Iterable[Entry]) -> None:
        """Take what another replica knows; pass over what it cannot have heard yet."""
        self.expire()
        now = self._clock()
        for entry in entries:
            if entry.newest_at <= now + AHEAD_SECONDS:
                self._learn(entry, now, "another replica")

    def entries(self) -> list[Entry]:
        """Return all that is known, for other replicas."""
        return list(self._entries.values())

    def expire(self) -> None:
        """Forget what nobody has mentioned for so long; call it now and then."""
        since = self._clock() - self.lifetime_seconds
        for entry in [each for each in self._entries.values() if each.newest_at <= since]:
            self._forget(entry)

    def _learn(self, entry: Entry, now: float, speaker: str) -> bool:
        """Merge an entry with what is known; tell whether it is in the book now."""
        known = self._entries.get(entry.key)
        if entry.newest_at <= now - self.lifetime_seconds or not (known or self._has_room()):
            return False
        self._put(entry if known is None else merged(known, entry), speaker)
        return True

    def _has_room(self) -> bool:
        if len(self._entries) >= self.limit and self._ended:
            self._forget(self._entries[next(iter(self._ended))])
        return len(self._entries) < self.limit

    def _put(self, entry: Entry, speaker: str) -> None:
        firing = self._firing.get(entry.key.scaled_object, {})
        fired = entry.key in firing
        self._entries[entry.key] = entry
        if entry.fires:
            self._firing.setdefault(entry.key.scaled_object, firing)[entry.key] = entry
            self._ended.pop(entry.key, None)
        else:
            self._drop_firing(entry)
            self._ended.setdefault(entry.key)
        if entry.fires != fired:
            state = "it fires" if entry.fires else "it is resolved"
            self._tell(entry, f"{speaker} says that {state}", fires=entry.fires)

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.key]
        self._ended.pop(entry.key, None)
        if self._drop_firing(entry):
            lifetime = durations.text(self.lifetime_seconds)
            self._tell(entry, f"nobody has said for {lifetime} that it fires", fires=False)

    def _drop_firing(self, entry: Entry) -> bool:
        """Take an alert out of those that fire; tell whether it was one of them."""
        firing = self._firing.get(entry.key.scaled_object, {})
        fired = firing.pop(entry.key, None) is not None
        if not firing:
            self._firing.pop(entry.key.scaled_object, None)
        return fired

    def _tell(self, entry: Entry, reason: str, *, fires: bool) -> None:
        name = entry.key.scaled_object
        self._observe(facts.AlertChanged(name, entry.name, fires, reason))
        for call in tuple(self._listening.get(name, ())):
            call()
