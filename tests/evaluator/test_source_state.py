"""Claims about whether a source is up: stated once at each change, by one object."""

from dataclasses import replace

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.source_state import RECENT_SECONDS, SourceState
from keda_gpu_scaler.snapshot.snapshot import Key, Snapshot
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts
from tests.support.scripted import Clock
from tests.support.triggers import spec

REFUSED = errors.SourceRefusedError("HTTP 422, execution: unknown metric")
AWAY = errors.SourceUnreachableError("connection refused")
LATE = errors.SourceTimeoutError("no answer within 10 s")
UTILIZATION = Key("default", Signal.UTILIZATION, "auto")
POWER = Key("default", Signal.POWER, "auto")
OWN = replace(spec(query="load", signal="memory", activationThreshold="5")).query
BY_HAND = Key("default", Signal.NUMBER, "query-1", query=OWN)
TAKEN = Snapshot(at=1.0, namespaces={})


class Watched:
    """The state of a source, and what it states."""

    def __init__(self) -> None:
        """Begin before the first fetch."""
        self.clock, self.seen = Clock(), list[facts.Fact]()
        self.state = SourceState("default", self.seen.append, self.clock)

    def works(self, *keys: Key) -> None:
        """Let fetches end well, one after the other."""
        for key in keys:
            self.clock.seconds += 1
            self.state.succeeded(key, TAKEN)

    def fails(self, error: errors.SourceError, *keys: Key) -> None:
        """Let fetches fail, one after the other."""
        for key in keys:
            self.clock.seconds += 1
            self.state.failed(key, error)

    def said(self) -> list[str]:
        """Return what was stated since the last look: `up`, `down`, or a query's name."""
        found = []
        for fact in self.seen:
            if isinstance(fact, facts.SourceChanged):
                found.append("up" if fact.works else "down")
            elif isinstance(fact, facts.QueryChanged):
                found.append(f"{fact.query} {'works' if fact.works else 'fails'}")
        self.seen.clear()
        return found


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_the_first_answer_is_stated(watched: Watched) -> None:
    watched.works(UTILIZATION, POWER, UTILIZATION)
    assert [type(fact) for fact in watched.seen] == [
        facts.SourceChanged,
        *[facts.SnapshotTaken] * 3,
    ]
    assert watched.said() == ["up"]


@pytest.mark.parametrize("error", [AWAY, LATE])
def test_an_outage_is_stated_at_its_first_sign_and_once(
    watched: Watched, error: errors.SourceError
) -> None:
    watched.works(UTILIZATION, POWER)
    watched.said()
    watched.fails(error, UTILIZATION)
    assert watched.said() == ["down"]
    watched.fails(error, POWER, UTILIZATION, POWER)
    assert watched.said() == []
    watched.works(POWER)
    assert watched.said() == ["up"]  # utilization was not asked since
    watched.works(UTILIZATION, POWER)
    assert watched.said() == []


def test_the_reason_names_the_source_and_what_happened(watched: Watched) -> None:
    watched.fails(AWAY, UTILIZATION)
    assert watched.seen == [
        facts.SourceChanged("default", works=False, reason=f"source default: {AWAY}")
    ]


def test_a_refused_query_takes_no_source_down_that_answers_others(watched: Watched) -> None:
    watched.works(UTILIZATION)
    watched.fails(REFUSED, POWER)
    watched.works(UTILIZATION)
    watched.fails(REFUSED, POWER)
    assert watched.said() == ["up", "power fails"]
    watched.state.let_go(POWER)
    watched.fails(AWAY, UTILIZATION)
    watched.works(UTILIZATION)
    assert watched.said() == ["down", "up"]


def test_a_source_that_refuses_all_it_is_asked_is_down(watched: Watched) -> None:
    watched.works(UTILIZATION, POWER)
    watched.fails(REFUSED, UTILIZATION)
    assert watched.said() == ["up", "utilization fails"]
    watched.fails(REFUSED, POWER)
    assert watched.said() == ["down"]
    watched.works(UTILIZATION)
    assert watched.said() == ["utilization works", "up"]
    watched.fails(REFUSED, POWER)
    assert watched.said() == ["power fails"]


def test_an_answer_of_long_ago_says_nothing_of_now(watched: Watched) -> None:
    watched.works(UTILIZATION, POWER)
    watched.fails(REFUSED, UTILIZATION)
    assert watched.said() == ["up", "utilization fails"]
    watched.clock.seconds += RECENT_SECONDS  # the trigger on power is gone
    watched.fails(REFUSED, UTILIZATION, UTILIZATION)
    assert watched.said() == ["down"]
    watched.works(UTILIZATION)
    assert watched.said() == ["utilization works", "up"]


def test_a_query_that_takes_too_long_takes_its_source_down_once_nothing_else_is_answered(
    watched: Watched,
) -> None:
    watched.works(UTILIZATION)
    watched.fails(LATE, POWER)
    watched.works(UTILIZATION)
    watched.fails(LATE, POWER)
    assert watched.said() == ["up", "down", "up", "power fails"]
    watched.clock.seconds += RECENT_SECONDS
    watched.fails(LATE, POWER)
    assert watched.said() == ["down"]


def test_what_is_let_go_of_changes_nothing_by_itself(watched: Watched) -> None:
    watched.works(UTILIZATION)
    watched.fails(REFUSED, POWER)
    watched.said()
    watched.state.let_go(UTILIZATION)
    assert watched.said() == []
    watched.fails(AWAY, POWER)
    assert watched.said() == ["down"]
    watched.state.let_go(POWER)
    watched.state.let_go(POWER)
    assert watched.said() == []
    watched.works(UTILIZATION)
    assert watched.said() == ["up"]


def test_one_query_that_always_takes_too_long_does_not_make_its_source_go_up_and_down(
    watched: Watched,
) -> None:
    watched.works(UTILIZATION)
    for _ in range(10):
        watched.fails(LATE, POWER)
        watched.works(UTILIZATION)
    assert watched.said() == ["up", "down", "up", "power fails"]
    watched.fails(AWAY, UTILIZATION)
    assert watched.said() == ["down"]


def test_a_users_query_that_fails_says_nothing_of_its_source(watched: Watched) -> None:
    assert OWN is not None
    watched.fails(AWAY, BY_HAND, BY_HAND)
    assert watched.said() == [f"{OWN.name} fails"]
    watched.works(BY_HAND)
    assert watched.said() == [f"{OWN.name} works", "up"]
    watched.fails(REFUSED, UTILIZATION)
    assert watched.said() == ["utilization fails"]
    watched.fails(AWAY, BY_HAND)
    watched.fails(AWAY, UTILIZATION)
    assert watched.said() == [f"{OWN.name} fails", "down"]


def test_a_signal_of_a_named_profile_is_called_by_both(watched: Watched) -> None:
    watched.works(UTILIZATION)
    watched.fails(REFUSED, POWER._replace(profile="amd"))
    assert watched.said() == ["up", "power of amd fails"]


def test_a_snapshot_that_reaches_far_back_is_called_so(watched: Watched) -> None:
    watched.works(UTILIZATION)
    watched.fails(REFUSED, UTILIZATION._replace(is_long_range=True))
    assert watched.said() == ["up", "utilization over a long range fails"]
