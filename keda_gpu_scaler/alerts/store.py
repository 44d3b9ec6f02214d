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
class AlertUpdate:
    """What a sender says of one alert."""

    key: Key
    name: str
    fires: bool
    starts_at: float | None = None
    """When it began by the sender's clock; None: it does not say."""
    ends_at: float | None = None
    """When it ended by the sender's clock; None: it does not say, or the alert fires."""


@dataclass(frozen=True, slots=True)
class AlertRecord:
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


def noted(update: AlertUpdate, known: AlertRecord | None, now: float) -> AlertRecord:
    """Return what is known of an alert once a sender has said this of it.

    Args:
        update: what it says.
        known: what was known before.
        now: when it says so.
    """
    at = now if known is None else max(now, known.newest_at + TICK_SECONDS)
    starts_at = at if update.starts_at is None else update.starts_at
    said = AlertRecord(update.key, update.name)
    if update.fires:
        said = replace(said, began_at=starts_at, heard_at=at)
    else:
        # No end comes before its beginning, also by clocks that differ.
        ended_at = max(at if update.ends_at is None else update.ends_at, update.starts_at or NEVER)
        said = replace(said, ended_at=ended_at, told_at=at)
    return said if known is None else merged(known, said)


def merged(one: AlertRecord, other: AlertRecord) -> AlertRecord:
    """Return what two replicas together know of an alert.

    The order of the two does not matter, nor how often and in which groups entries are merged.
    """
    # An end that is told again holds against all that came before: what a late message revived
    # ends with it.
    ended_at, told_at = max((one.ended_at, one.told_at), (other.ended_at, other.told_at))
    return AlertRecord(
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
the store for ever, and above all that is heard here."""


class Alerts:
    """Every alert that this process was told of."""

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
        self._entries: dict[Key, AlertRecord] = {}
        self._firing: dict[ScaledObject, dict[Key, AlertRecord]] = {}
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

    def hear(self, updates: Iterable[AlertUpdate]) -> list[AlertRecord]:
        """Take what a sender says; return what is known now of these alerts.

        What does not fit into the store is missing in there.
        """
        self.expire()
        now = self._clock()
        said = [noted(update, self._entries.get(update.key), now) for update in updates]
        learnt = [record for record in said if self._learn(record, now, "a message")]
        return [self._entries[record.key] for record in learnt]

    def merge(self, records: Iterable[AlertRecord]) -> None:
        """Take what another replica knows; pass over what it cannot have heard yet."""
        self.expire()
        now = self._clock()
        for record in records:
            if record.newest_at <= now + AHEAD_SECONDS:
                self._learn(record, now, "another replica")

    def records(self) -> list[AlertRecord]:
        """Return all that is known, for other replicas."""
        return list(self._entries.values())

    def expire(self) -> None:
        """Forget what nobody has mentioned for so long; call it now and then."""
        since = self._clock() - self.lifetime_seconds
        for record in [each for each in self._entries.values() if each.newest_at <= since]:
            self._forget(record)

    def _learn(self, record: AlertRecord, now: float, speaker: str) -> bool:
        """Merge a record with what is known; tell whether it is in the store now."""
        known = self._entries.get(record.key)
        if record.newest_at <= now - self.lifetime_seconds or not (known or self._has_room()):
            return False
        self._put(record if known is None else merged(known, record), speaker)
        return True

    def _has_room(self) -> bool:
        if len(self._entries) >= self.limit and self._ended:
            self._forget(self._entries[next(iter(self._ended))])
        return len(self._entries) < self.limit

    def _put(self, record: AlertRecord, speaker: str) -> None:
        firing = self._firing.get(record.key.scaled_object, {})
        fired = record.key in firing
        self._entries[record.key] = record
        if record.fires:
            self._firing.setdefault(record.key.scaled_object, firing)[record.key] = record
            self._ended.pop(record.key, None)
        else:
            self._drop_firing(record)
            self._ended.setdefault(record.key)
        if record.fires != fired:
            state = "it fires" if record.fires else "it is resolved"
            self._tell(record, f"{speaker} says that {state}", fires=record.fires)

    def _forget(self, record: AlertRecord) -> None:
        del self._entries[record.key]
        self._ended.pop(record.key, None)
        if self._drop_firing(record):
            lifetime = durations.text(self.lifetime_seconds)
            self._tell(record, f"nobody has said for {lifetime} that it fires", fires=False)

    def _drop_firing(self, record: AlertRecord) -> bool:
        """Take an alert out of those that fire; tell whether it was one of them."""
        firing = self._firing.get(record.key.scaled_object, {})
        fired = firing.pop(record.key, None) is not None
        if not firing:
            self._firing.pop(record.key.scaled_object, None)
        return fired

    def _tell(self, record: AlertRecord, reason: str, *, fires: bool) -> None:
        name = record.key.scaled_object
        self._observe(facts.AlertChanged(name, record.name, fires, reason))
        for call in tuple(self._listening.get(name, ())):
            call()
