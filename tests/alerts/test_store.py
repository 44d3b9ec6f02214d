"""Which alerts fire, from messages in any order."""

import pytest

from keda_gpu_scaler.alerts import AlertRecord, Alerts, AlertUpdate
from keda_gpu_scaler.alerts.store import (
    AHEAD_SECONDS,
    LATE_SECONDS,
    NEVER,
    SENDER_AHEAD_SECONDS,
    Key,
)
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from tests.support.clocks import Clock

BERT, GPT = ScaledObject("ml", "bert"), ScaledObject("ml", "gpt")
LIFETIME = 3600.0


class Bench:
    """An alert store, its clock, and the changes it reports."""

    def __init__(self, limit: int = 100) -> None:
        self.clock = Clock(10_000.0)
        self.facts: list[facts.Fact] = []
        self.alerts = Alerts(LIFETIME, self.clock, self.facts.append, limit=limit)

    def fires(
        self, starts_at: float | None = None, alert: str = "a", whose: ScaledObject = BERT
    ) -> None:
        """Have a sender say that an alert fires."""
        self.alerts.receive(
            [AlertUpdate(Key(whose, alert), f"Alert {alert}", fires=True, starts_at=starts_at)]
        )

    def ends(
        self,
        starts_at: float | None = None,
        ends_at: float | None = None,
        alert: str = "a",
        whose: ScaledObject = BERT,
    ) -> None:
        """Have a sender say that an alert is resolved."""
        name = f"Alert {alert}"
        key = Key(whose, alert)
        self.alerts.receive(
            [AlertUpdate(key, name, fires=False, starts_at=starts_at, ends_at=ends_at)]
        )

    @property
    def firing(self) -> str | None:
        """What fires for one object."""
        return self.alerts.firing(BERT)

    @property
    def reasons(self) -> list[str]:
        """Why alerts changed, in order."""
        return [fact.reason for fact in self.facts if isinstance(fact, facts.AlertChanged)]

    @property
    def told(self) -> list[tuple[str, bool]]:
        """The changes that were reported, in order."""
        return [
            (fact.alert, fact.fires) for fact in self.facts if isinstance(fact, facts.AlertChanged)
        ]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_alert_fires_until_it_is_resolved(bench: Bench) -> None:
    assert bench.firing is None
    bench.fires(9_990)
    assert bench.firing == "Alert a"
    bench.clock.now += 60
    bench.ends(9_990, 10_050)
    assert bench.firing is None
    assert bench.told == [("Alert a", True), ("Alert a", False)]


def test_it_fires_for_its_own_object_alone(bench: Bench) -> None:
    bench.fires(whose=GPT)
    assert bench.firing is None
    assert bench.alerts.firing(GPT) == "Alert a"


def test_of_several_the_one_that_fires_longest_is_named(bench: Bench) -> None:
    bench.fires(9_990, "later")
    bench.fires(9_980, "first")
    assert bench.firing == "Alert first"
    bench.ends(9_980, 9_999, "first")
    assert bench.firing == "Alert later"


def test_an_alert_that_nobody_mentions_again_ends_with_its_lifetime(bench: Bench) -> None:
    bench.fires()
    bench.clock.now += LIFETIME - 1
    assert bench.firing == "Alert a"
    bench.clock.now += 1
    assert bench.firing is None
    bench.alerts.expire()
    assert bench.alerts.records() == []
    assert bench.told == [("Alert a", True), ("Alert a", False)]
    last = bench.facts[-1]
    assert isinstance(last, facts.AlertChanged)
    assert last.reason == "no message has said for 1h that it fires"


def test_an_alert_that_is_repeated_goes_on_and_is_no_news(bench: Bench) -> None:
    bench.fires(9_990)
    bench.clock.now += LIFETIME - 1
    bench.fires(9_990)
    bench.clock.now += LIFETIME - 1
    assert bench.firing == "Alert a"
    assert bench.told == [("Alert a", True)]


def test_an_alert_that_comes_back_after_its_lifetime_begins_anew(bench: Bench) -> None:
    bench.fires(9_990)
    bench.clock.now += LIFETIME
    bench.fires(9_990)
    assert bench.firing == "Alert a"
    assert bench.told == [("Alert a", True), ("Alert a", False), ("Alert a", True)]


def test_a_message_that_is_late_does_not_revive_what_has_ended(bench: Bench) -> None:
    bench.fires(9_990)
    bench.ends(9_990, 9_999)
    bench.clock.now += LATE_SECONDS - 1
    bench.fires(9_990)
    assert bench.firing is None


def test_an_end_that_is_heard_before_its_beginning_holds(bench: Bench) -> None:
    bench.ends(9_990, 9_999)
    bench.fires(9_990)
    assert bench.firing is None
    assert bench.told == []


def test_a_new_beginning_counts_at_once(bench: Bench) -> None:
    bench.fires(9_990)
    bench.ends(9_990, 9_999)
    bench.fires(10_000)
    assert bench.firing == "Alert a"


def test_the_end_of_an_earlier_time_does_not_end_a_later_one(bench: Bench) -> None:
    bench.fires(9_990)
    bench.fires(9_999)
    bench.ends(9_980, 9_985)
    assert bench.firing == "Alert a"


def test_an_alert_that_only_timed_out_fires_again_with_its_old_beginning(bench: Bench) -> None:
    """Alertmanager resolves an alert that is no longer sent; its startsAt stays when it returns."""
    bench.fires(9_000)
    bench.ends(9_000, 9_999)
    bench.clock.now += LATE_SECONDS + 1
    bench.fires(9_000)
    assert bench.firing == "Alert a"
    bench.clock.now += 60
    bench.ends(9_000, 10_060)
    assert bench.firing is None


def test_an_end_that_is_sent_again_ends_what_a_late_message_revived(bench: Bench) -> None:
    bench.fires(9_990)
    bench.clock.now = 10_110
    bench.ends(9_990, 10_100)
    bench.clock.now = 10_125
    bench.fires(9_990)
    assert bench.firing == "Alert a"
    for now in (10_140, 10_500):
        bench.clock.now = now
        bench.ends(9_990, 10_100)
        assert bench.firing is None
    bench.clock.now += LATE_SECONDS
    bench.fires(9_990)
    assert bench.firing == "Alert a"


def test_the_end_of_an_earlier_time_that_is_sent_again_ends_nothing(bench: Bench) -> None:
    bench.fires(9_000)
    bench.ends(9_000, 9_500)
    bench.fires(9_600)
    bench.clock.now += 60
    bench.ends(9_000, 9_500)
    assert bench.firing == "Alert a"


@pytest.mark.parametrize("skew", [-500, 500])
def test_the_clock_of_the_sender_may_differ(bench: Bench, skew: float) -> None:
    bench.fires(9_990 + skew)
    assert bench.firing == "Alert a"
    bench.ends(9_990 + skew, 9_999 + skew)
    assert bench.firing is None
    bench.fires(10_000 + skew)
    assert bench.firing == "Alert a"


def test_an_end_before_its_own_beginning_is_an_end(bench: Bench) -> None:
    bench.fires(9_990)
    bench.ends(9_990, 9_000)
    assert bench.firing is None


def test_without_times_the_last_word_counts(bench: Bench) -> None:
    bench.fires()
    bench.ends()
    assert bench.firing is None
    bench.fires()
    assert bench.firing == "Alert a"


def test_without_times_the_last_word_counts_though_another_replicas_clock_is_ahead(
    bench: Bench,
) -> None:
    ahead = Bench()
    ahead.clock.now += 3
    ahead.fires()
    bench.alerts.merge(ahead.alerts.records())
    bench.ends()
    assert bench.firing is None


def test_what_has_ended_is_remembered_as_long_as_a_late_word_could_revive_it(bench: Bench) -> None:
    bench.fires(9_990)
    late = bench.alerts.records()
    bench.clock.now += LIFETIME - 1
    bench.ends(9_990, 9_999)
    bench.clock.now += LIFETIME - 1
    bench.alerts.merge(late)
    assert bench.firing is None
    bench.clock.now += 1
    bench.alerts.merge(late)
    assert bench.firing is None
    assert bench.alerts.records() == []


def test_a_full_book_forgets_what_ended_and_never_what_fires() -> None:
    bench = Bench(limit=3)
    bench.fires(alert="a")
    for alert in "bcd":
        bench.ends(alert=alert)
    assert {record.key.alert for record in bench.alerts.records()} == set("ad")
    bench.fires(alert="e")
    bench.fires(alert="f")
    assert {record.key.alert for record in bench.alerts.records()} == set("aef")
    update = AlertUpdate(Key(BERT, "g"), "Alert g", fires=True)
    assert bench.alerts.receive([update]) == []
    assert (
        bench.alerts.receive([AlertUpdate(Key(BERT, "a"), "Alert a", fires=True)])[0].key.alert
        == "a"
    )
    assert len(bench.alerts.records()) == 3


def test_who_listens_is_called_when_an_alert_about_the_object_begins_or_ends(bench: Bench) -> None:
    calls: list[str | None] = []
    with bench.alerts.listen(BERT, lambda: calls.append(bench.firing)):
        bench.fires(9_990)
        bench.fires(9_990)
        bench.fires(whose=GPT)
        bench.ends(9_990, 9_999)
        bench.fires(10_000)
        bench.clock.now += LIFETIME + 1
        bench.alerts.expire()
    bench.fires()
    assert calls == ["Alert a", None, "Alert a", None]


def test_several_may_listen_and_each_leaves_alone(bench: Bench) -> None:
    calls: list[int] = []
    with bench.alerts.listen(BERT, lambda: calls.append(1)):
        with bench.alerts.listen(BERT, lambda: calls.append(2)):
            bench.fires()
        bench.ends()
    assert calls == [1, 2, 1]


def test_the_other_replica_learns_all_of_it(bench: Bench) -> None:
    bench.fires(9_990)
    bench.ends(9_990, 9_999, alert="b")
    other = Bench()
    other.alerts.merge(bench.alerts.records())
    assert other.alerts.records() == bench.alerts.records()
    assert other.firing == "Alert a"
    assert other.told == [("Alert a", True)]


@pytest.mark.parametrize("is_peer", [False, True], ids=["a sender", "a replica"])
def test_a_beginning_from_the_future_ends_like_any_other(is_peer: bool) -> None:  # noqa: FBT001
    bench = Bench()
    far = bench.clock.now + SENDER_AHEAD_SECONDS + 1
    if is_peer:
        bench.alerts.merge(
            [AlertRecord(Key(BERT, "a"), "Alert a", began_at=far, heard_at=bench.clock.now)]
        )
    else:
        bench.fires(starts_at=far)
    assert bench.firing == "Alert a"
    bench.clock.now += 1
    bench.ends()
    assert bench.firing is None


@pytest.mark.parametrize(
    ("heard", "told"), [(AHEAD_SECONDS + 1, NEVER), (NEVER, AHEAD_SECONDS + 1), (0, 1e300)]
)
def test_what_another_replica_cannot_have_heard_yet_is_passed_over(
    bench: Bench, heard: float, told: float
) -> None:
    now, key = bench.clock.now, Key(BERT, "a")
    ahead = AlertRecord(key, "Ahead", now, heard_at=now + heard, ended_at=now, told_at=now + told)
    allowed = AlertRecord(Key(BERT, "b"), "Alert b", began_at=now, heard_at=now + AHEAD_SECONDS)
    bench.alerts.merge([ahead, allowed])
    assert bench.alerts.records() == [allowed]


def test_the_reason_of_a_change_is_who_said_so(bench: Bench) -> None:
    other = Bench()
    bench.fires(9_990)
    other.alerts.merge(bench.alerts.records())
    bench.ends(9_990, 9_999)
    other.alerts.merge(bench.alerts.records())
    assert bench.reasons == ["a message says that it fires", "a message says that it is resolved"]
    assert other.reasons == [
        "another replica says that it fires",
        "another replica says that it is resolved",
    ]
