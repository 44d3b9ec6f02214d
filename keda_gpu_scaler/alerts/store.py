"""The alerts that this process was told of, and how records of two replicas merge. Pure.

Messages come late, twice, in any order and through several replicas. So a record holds the newest
times of both states, firing and ended, and these alone decide whether the alert fires. Two replicas
with the same messages agree, in whatever order the messages came.

A record of an ended alert is kept as long as one of a firing alert, so that a late message does not
revive it. A record that no message mentions for that time is forgotten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import msgspec

from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.places import Places

NEVER = 0.0
"""Before any time of an alert."""
LATE_SECONDS = 10.0
"""A message can be this late: delayed, or sent again after a lost answer. If an alert is said to
fire later than this after its end was told, it fires again, even if it claims to have begun before:
Alertmanager says so of an alert that it took for resolved because it was not mentioned for a
while."""
TICK_SECONDS = 0.001
"""A later message is newer by at least this, whatever the clocks of replicas say."""
LIMIT = 10_000
"""Far more than the ScaledObjects that alerts wake in any cluster; a few MB."""
LINES = 10
"""Of a message with more alerts than this, the log has one line."""
AHEAD_SECONDS = 60.0
"""How far a replica's clock may be ahead. A record from later than that would stay in the store for
ever and override all that is heard here."""
SENDER_AHEAD_SECONDS = 600.0
"""How far a sender's clock may be ahead. A beginning later than that would outlast every end."""


Text = Annotated[str, msgspec.Meta(max_length=256)]
"""An alert's mark or name; senders' texts are cut to less."""


class Key(NamedTuple):
    """What identifies one alert."""

    scaled_object: ScaledObject
    alert: Text
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
    """The newest information on an alert; times in seconds since the epoch, or `NEVER`."""

    key: Key
    name: Text
    began_at: float = NEVER
    """Its newest beginning, by the sender's clock if it gave one."""
    heard_at: float = NEVER
    """When it was last said to fire."""
    ended_at: float = NEVER
    """Its newest end, by the sender's clock if it gave one."""
    told_at: float = NEVER
    """When it was last said to have ended."""

    @property
    def fires(self) -> bool:
        return self.began_at > self.ended_at or self.heard_at >= self.told_at + LATE_SECONDS

    @property
    def newest_at(self) -> float:
        return max(self.heard_at, self.told_at)


def updated(known: AlertRecord | None, update: AlertUpdate, now: float) -> AlertRecord:
    """Return the record of an alert after a sender's update; None: it had no record before."""
    at = now if known is None else max(now, known.newest_at + TICK_SECONDS)
    starts_at = at if update.starts_at is None else update.starts_at
    if update.fires:
        record = AlertRecord(update.key, update.name, began_at=starts_at, heard_at=at)
    else:
        # An end never comes before its beginning, even if clocks differ.
        ended_at = max(at if update.ends_at is None else update.ends_at, update.starts_at or NEVER)
        record = AlertRecord(update.key, update.name, ended_at=ended_at, told_at=at)
    return record if known is None else merged(known, record)


def merged(first: AlertRecord, second: AlertRecord) -> AlertRecord:
    """Return what two replicas together know of an alert.

    The result does not depend on the order, the number or the grouping of merges.
    """
    # An end that is told again also ends what a late message has revived.
    ended_at, told_at = max((first.ended_at, first.told_at), (second.ended_at, second.told_at))
    return AlertRecord(
        first.key,
        max(first.name, second.name),
        began_at=max(first.began_at, second.began_at),
        heard_at=max(first.heard_at, second.heard_at),
        ended_at=ended_at,
        told_at=told_at,
    )


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
        """Start with no alerts; each fires for its lifetime without being mentioned again.

        `clock` gives seconds since the epoch; the clocks of all replicas must agree within seconds.
        """
        self.lifetime_seconds, self.limit = lifetime_seconds, limit
        self._clock, self._observe = clock, observe
        self._places = Places(limit)
        self._records: dict[Key, AlertRecord] = {}
        self._firing: dict[ScaledObject, dict[Key, AlertRecord]] = {}
        self._listening: dict[ScaledObject, list[Callable[[], None]]] = {}

    def firing(self, scaled_object: ScaledObject) -> str | None:
        """Return the name of the alert that has fired longest for an object; None: none fires."""
        since = self._clock() - self.lifetime_seconds
        alerts = self._firing.get(scaled_object, {}).values()
        names = [(alert.began_at, alert.name) for alert in alerts if alert.heard_at > since]
        return min(names)[1] if names else None

    @contextmanager
    def listen(self, scaled_object: ScaledObject, call: Callable[[], None]) -> Iterator[None]:
        """Call `call` whenever an alert for this object begins or ends, while the context lasts."""
        calls = self._listening.setdefault(scaled_object, [])
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)
            if not calls:
                self._listening.pop(scaled_object, None)

    def receive(self, updates: Sequence[AlertUpdate]) -> Iterator[AlertRecord | None]:
        """Take what a sender says, one alert with each step; each yields the alert's record.

        None: it does not fit into the store. The caller decides what runs between the steps.
        """
        now = self._clock()
        records = (updated(self._records.get(update.key), update, now) for update in updates)
        return self._take(records, len(updates), "a message")

    def merge(self, records: Sequence[AlertRecord]) -> Iterator[AlertRecord | None]:
        """Take what another replica knows, in the same way; ignore records from the future."""
        latest = self._clock() + AHEAD_SECONDS
        heard = (record for record in records if record.newest_at <= latest)
        return self._take(heard, len(records), "another replica")

    @property
    def is_full(self) -> bool:
        return not self._places.free

    def records(self) -> list[AlertRecord]:
        return list(self._records.values())

    def expire(self) -> None:
        """Forget alerts that were not mentioned for their lifetime; call it from time to time.

        A full store forgets those that ended as well, to have room for others, and so does a
        namespace that has its share of it.
        """
        since = self._clock() - self.lifetime_seconds
        reason = f"no message for {durations.text(self.lifetime_seconds)} that it fires"
        namespaces = {key.scaled_object.namespace for key in self._records}
        full = {namespace for namespace in namespaces if not self._places.has_room(namespace)}
        forgotten = [
            record
            for record in self._records.values()
            if record.newest_at <= since
            or (not record.fires and record.key.scaled_object.namespace in full)
        ]
        with self._changes(len(forgotten), reason) as changes:
            for record in forgotten:
                del self._records[record.key]
                self._places.give_back(record.key.scaled_object.namespace)
                self._note(record, reason, changes, fires=False)

    @contextmanager
    def _changes(self, alerts: int, reason: str) -> Iterator[Counter[bool] | None]:
        """Count the changes of many alerts, and state them at the end; None: they are few."""
        changes = Counter[bool]() if alerts > LINES else None
        try:
            yield changes
        finally:
            if changes:
                self._observe(facts.AlertsChanged(changes[True], changes[False], reason))

    def _take(
        self, records: Iterable[AlertRecord], number: int, source: str
    ) -> Iterator[AlertRecord | None]:
        self.expire()
        with self._changes(number, f"told by {source}") as changes:
            for record in records:
                yield self._add(record, source, changes)

    def _add(
        self, record: AlertRecord, source: str, changes: Counter[bool] | None
    ) -> AlertRecord | None:
        """Merge a record with what is known; return what is in the store now."""
        now, known = self._clock(), self._records.get(record.key)
        if record.began_at > now + SENDER_AHEAD_SECONDS:
            record = replace(record, began_at=record.heard_at)
        if record.ended_at > now + SENDER_AHEAD_SECONDS:  # no later end would count
            record = replace(record, ended_at=record.told_at)
        if record.newest_at <= now - self.lifetime_seconds:
            return None
        if known is not None:
            record = merged(known, record)
        elif not self._places.take(record.key.scaled_object.namespace):
            return None
        self._records[record.key] = record
        state = "it fires" if record.fires else "it is resolved"
        self._note(record, f"{state}: told by {source}", changes, fires=record.fires)
        return record

    def _note(
        self, record: AlertRecord, reason: str, changes: Counter[bool] | None, *, fires: bool
    ) -> None:
        """Note whether an alert fires, and tell of it if that has changed."""
        scaled_object = record.key.scaled_object
        firing = self._firing.setdefault(scaled_object, {})
        fired_before = firing.pop(record.key, None) is not None
        if fires:
            firing[record.key] = record
        elif not firing:
            del self._firing[scaled_object]
        if fires != fired_before:
            is_one_of_many = changes is not None
            change = facts.AlertChanged(scaled_object, record.name, fires, reason, is_one_of_many)
            self._observe(change)
            if changes is not None:
                changes[fires] += 1
            for call in tuple(self._listening.get(scaled_object, ())):
                call()
