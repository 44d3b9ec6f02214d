"""Which alerts fire, from messages in any order."""

from collections.abc import Sequence
from typing import TypeAlias

import pytest

from keda_gpu_scaler.alerts import AlertRecord, Alerts, AlertUpdate
from keda_gpu_scaler.alerts.store import (
    AHEAD_SECONDS,
    LATE_SECONDS,
    LINES,
    NEVER,
    SENDER_AHEAD_SECONDS,
    Key,
)
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from testbed.clocks import Clock

BERT, GPT = ScaledObject("ml", "bert"), ScaledObject("ml", "gpt")
LIFETIME = 3600.0


class Bench:
    """An alert store, its clock, and the changes it reports."""

    def __init__(self, limit: int = 100) -> None:
        self.clock = Clock(10_000.0)
        self.facts: list[facts.Fact] = []
        self.alerts = Alerts(LIFETIME, self.clock, self.facts.append, limit=limit)

    def receive(
        self,
        *,
        fires: bool,
        starts_at: float | None = None,
        ends_at: float | None = None,
        alert: str = "a",
        whose: ScaledObject = BERT,
    ) -> list[AlertRecord]:
        update = AlertUpdate(Key(whose, alert), f"Alert {alert}", fires, starts_at, ends_at)
        return [record for record in self.alerts.receive([update]) if record is not None]

    @property
    def firing(self) -> str | None:
        return self.alerts.firing(BERT)

    @property
    def told(self) -> list[tuple[str, bool]]:
        return [
            (fact.alert, fact.fires) for fact in self.facts if isinstance(fact, facts.AlertChanged)
        ]


@pytest.fixture
def bench() -> Bench:
    return Bench()


FIRES, ENDS, SILENCE = "fires", "ends", "nobody says anything"
Step: TypeAlias = tuple[float, str, float | None, float | None, bool]
"""Seconds later, a message with the times in it, and whether the alert fires then."""
STORIES: dict[str, Sequence[Step]] = {
    "it fires until it is resolved": [(0, FIRES, 0, None, True), (60, ENDS, 0, 60, False)],
    "repeated, it goes on": [
        (0, FIRES, 0, None, True),
        (LIFETIME - 1, FIRES, 0, None, True),
        (LIFETIME - 1, SILENCE, None, None, True),
        (1, SILENCE, None, None, False),
    ],
    "after its lifetime it begins anew": [
        (0, FIRES, 0, None, True),
        (LIFETIME, SILENCE, None, None, False),
        (0, FIRES, 0, None, True),
    ],
    "a message that is late revives nothing": [
        (0, FIRES, 0, None, True),
        (9, ENDS, 0, 9, False),
        (LATE_SECONDS - 1, FIRES, 0, None, False),
    ],
    "an end that is heard before its beginning holds": [
        (0, ENDS, -10, -1, False),
        (0, FIRES, -10, None, False),
    ],
    "a new beginning counts at once": [
        (0, FIRES, -10, None, True),
        (0, ENDS, -10, -1, False),
        (0, FIRES, 0, None, True),
    ],
    "the end of an earlier time ends nothing, however often it is told": [
        (0, FIRES, -1000, None, True),
        (0, ENDS, -1000, -500, False),
        (0, FIRES, -400, None, True),
        (60, ENDS, -1000, -500, True),
        (60, ENDS, -1000, -500, True),
    ],
    "what only timed out fires again with its old beginning, as Alertmanager sends it": [
        (0, FIRES, -1000, None, True),
        (0, ENDS, -1000, -1, False),
        (LATE_SECONDS + 1, FIRES, -1000, None, True),
        (60, ENDS, -1000, 200, False),
    ],
    "an end that is told again ends what a late message has revived": [
        (0, FIRES, -10, None, True),
        (110, ENDS, -10, 100, False),
        (15, FIRES, -10, None, True),
        (15, ENDS, -10, 100, False),
        (360, ENDS, -10, 100, False),
        (LATE_SECONDS, FIRES, -10, None, True),
    ],
    **{
        f"the clock of the sender differs by {skew} s": [
            (0, FIRES, -10 + skew, None, True),
            (0, ENDS, -10 + skew, -1 + skew, False),
            (0, FIRES, skew, None, True),
        ]
        for skew in (-500, 500)
    },
    "an end before its own beginning is an end": [
        (0, FIRES, -10, None, True),
        (0, ENDS, -10, -1000, False),
    ],
    "without times the last word counts": [
        (0, FIRES, None, None, True),
        (0, ENDS, None, None, False),
        (0, FIRES, None, None, True),
    ],
}


@pytest.mark.parametrize("steps", STORIES.values(), ids=STORIES.keys())
def test_whether_an_alert_fires_follows_from_what_was_said(steps: Sequence[Step]) -> None:
    bench, replica = Bench(), Bench()
    began, fired, changes = bench.clock.now, False, []
    for seconds, message, starts_at, ends_at, fires in steps:
        bench.clock.now += seconds
        replica.clock.now += seconds
        starts = None if starts_at is None else began + starts_at
        ends = None if ends_at is None else began + ends_at
        if message != SILENCE:
            bench.receive(fires=message == FIRES, starts_at=starts, ends_at=ends)
        bench.alerts.expire()
        assert bench.firing == ("Alert a" if fires else None)
        assert bench.alerts.firing(GPT) is None
        list(replica.alerts.merge(bench.alerts.records()))
        assert (replica.alerts.records(), replica.firing) == (bench.alerts.records(), bench.firing)
        if fires != fired:
            changes.append(("Alert a", fires))
            fired = fires
    assert bench.told == changes


def test_without_times_the_last_word_counts_though_a_clock_is_ahead(bench: Bench) -> None:
    ahead = Bench()
    ahead.clock.now += 3
    ahead.receive(fires=True)
    list(bench.alerts.merge(ahead.alerts.records()))
    bench.receive(fires=False)
    assert bench.firing is None


def test_what_has_ended_is_remembered_as_long_as_a_late_word_could_revive_it(bench: Bench) -> None:
    bench.receive(fires=True, starts_at=9_990)
    late = bench.alerts.records()
    bench.clock.now += LIFETIME - 1
    bench.receive(fires=False, starts_at=9_990, ends_at=9_999)
    bench.clock.now += LIFETIME - 1
    list(bench.alerts.merge(late))
    assert bench.firing is None
    bench.clock.now += 1
    list(bench.alerts.merge(late))
    assert bench.firing is None
    assert bench.alerts.records() == []


def test_a_full_book_forgets_what_ended_and_never_what_fires() -> None:
    bench = Bench(limit=3)
    bench.receive(fires=True)
    for alert in "bcd":
        bench.receive(fires=False, alert=alert)
    assert {record.key.alert for record in bench.alerts.records()} == set("ad")
    kept = [bench.receive(fires=True, alert=alert) for alert in "efga"]
    assert [bool(records) for records in kept] == [True, True, False, True]
    assert {record.key.alert for record in bench.alerts.records()} == set("aef")


def test_a_namespace_with_its_share_forgets_what_ended_there_and_leaves_room_for_others() -> None:
    bench, replica, other = Bench(limit=8), Bench(limit=8), ScaledObject("nlp", "bert")
    bench.receive(fires=False, whose=other)
    for alert in "abcde":
        bench.receive(fires=alert < "d", alert=alert)
    kept = [bool(bench.receive(fires=True, alert=alert)) for alert in "fghi"]
    assert kept == [True, True, True, False]
    known = {(record.key.scaled_object, record.fires) for record in bench.alerts.records()}
    assert known == {(BERT, True), (other, False)}
    assert not bench.alerts.is_full
    assert bench.receive(fires=True, whose=other, alert="b")
    # What another replica knows has the same share.
    flood = [AlertRecord(Key(GPT, f"{number}"), "Alert", 1, bench.clock.now) for number in range(8)]
    list(replica.alerts.merge(flood))
    assert len(replica.alerts.records()) == 6
    assert replica.receive(fires=True, whose=other)


@pytest.mark.parametrize("number", [LINES, LINES + 1])
def test_of_many_changes_at_once_the_log_is_told_in_one_line(bench: Bench, number: int) -> None:
    updates = [AlertUpdate(Key(BERT, f"{each}"), "Alert", fires=True) for each in range(number)]
    bench.receive(fires=True, alert="0")
    list(bench.alerts.receive(updates))
    list(bench.alerts.receive(updates))  # nothing changes
    bench.clock.now += LIFETIME + 1
    bench.alerts.expire()
    changes = [fact for fact in bench.facts if isinstance(fact, facts.AlertChanged)]
    assert len(changes) == 2 * number
    together = [fact for fact in bench.facts if isinstance(fact, facts.AlertsChanged)]
    if number == LINES:
        assert together == []
        assert not any(change.is_one_of_many for change in changes)
    else:
        assert [(fact.firing, fact.ended) for fact in together] == [(LINES, 0), (0, LINES + 1)]
        assert [change.is_one_of_many for change in changes[1:]] == [True] * (2 * number - 1)


def test_who_listens_is_called_when_an_alert_about_the_object_begins_or_ends(bench: Bench) -> None:
    calls: list[str | None] = []
    with bench.alerts.listen(BERT, lambda: calls.append(bench.firing)):
        bench.receive(fires=True, starts_at=9_990)
        bench.receive(fires=True, starts_at=9_990)
        bench.receive(fires=True, whose=GPT)
        bench.receive(fires=False, starts_at=9_990, ends_at=9_999)
        bench.receive(fires=True, starts_at=10_000)
        bench.clock.now += LIFETIME + 1
        bench.alerts.expire()
    bench.receive(fires=True)
    assert calls == ["Alert a", None, "Alert a", None]


@pytest.mark.parametrize("is_peer", [False, True], ids=["a sender", "a replica"])
def test_a_beginning_from_the_future_ends_like_any_other(is_peer: bool) -> None:
    bench = Bench()
    far = bench.clock.now + SENDER_AHEAD_SECONDS + 1
    if is_peer:
        record = AlertRecord(Key(BERT, "a"), "Alert a", began_at=far, heard_at=bench.clock.now)
        list(bench.alerts.merge([record]))
    else:
        bench.receive(fires=True, starts_at=far)
    assert bench.firing == "Alert a"
    bench.clock.now += 1
    bench.receive(fires=False)
    assert bench.firing is None


def test_an_end_from_the_future_leaves_later_ends_their_word(bench: Bench) -> None:
    bench.receive(fires=False, ends_at=bench.clock.now + SENDER_AHEAD_SECONDS + 1)
    bench.clock.now += LATE_SECONDS
    bench.receive(fires=True)
    assert bench.firing == "Alert a"
    bench.clock.now += 1
    bench.receive(fires=False)
    assert bench.firing is None


@pytest.mark.parametrize(
    ("heard", "told"), [(AHEAD_SECONDS + 1, NEVER), (NEVER, AHEAD_SECONDS + 1), (0, 1e300)]
)
def test_what_nobody_can_have_heard_yet_is_passed_over(
    bench: Bench, heard: float, told: float
) -> None:
    now, key = bench.clock.now, Key(BERT, "a")
    ahead = AlertRecord(key, "Ahead", now, heard_at=now + heard, ended_at=now, told_at=now + told)
    allowed = AlertRecord(Key(BERT, "b"), "Alert b", began_at=now, heard_at=now + AHEAD_SECONDS)
    list(bench.alerts.merge([ahead, allowed]))
    assert bench.alerts.records() == [allowed]
