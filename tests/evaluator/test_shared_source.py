"""Claims about whether a source is up: stated once at each change, by one object."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.shared_source import SourceDown, SourceState
from keda_gpu_scaler.snapshot.snapshot import Snapshot, SnapshotKey
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import RECENT_SECONDS
from testbed.triggers import spec
from tests.support.scripted import Clock

REFUSED = errors.SourceRefusedError("HTTP 422, execution: unknown metric")
AWAY = errors.SourceUnreachableError("connection refused")
LATE = errors.SourceTimeoutError("no answer within 10 s")
OK, GONE, LONG_AFTER = "it answers", "nobody asks any more", "it was long ago"
UTILIZATION = SnapshotKey("default", Signal.UTILIZATION, "auto")
POWER = SnapshotKey("default", Signal.POWER, "auto")
OF_AMD = POWER._replace(profile="amd")
FAR_BACK = UTILIZATION._replace(is_long_range=True)
OWN = replace(spec(query="load", signal="memory", activationThreshold="5")).query
BY_HAND = SnapshotKey("default", Signal.NUMBER, "query-1", query=OWN)
NAME = "" if OWN is None else OWN.name
URL = "http://prometheus:9090"
Step: TypeAlias = tuple[SnapshotKey | None, str | errors.SourceError, str]
"""What a fetch was about, how it ended, and what is stated of it: `up`, `down`, or a query. None:
it was the query at the start."""


class Watched:
    """The state of a source, and what it states."""

    def __init__(self) -> None:
        """Begin before the first fetch."""
        self.clock, self.seen = Clock(), list[facts.Fact]()
        self.state = SourceState("default", URL, self.seen.append, self.clock)

    def take(self, key: SnapshotKey | None, ended: str | errors.SourceError) -> None:
        """Let a fetch end a second later."""
        self.clock.seconds += 1
        if key is None:
            self.state.looked(ended if isinstance(ended, errors.SourceError) else None)
        elif isinstance(ended, errors.SourceError):
            self.state.failed(key, ended)
        elif ended == GONE:
            self.state.let_go(key)
        elif ended == LONG_AFTER:
            self.clock.seconds += RECENT_SECONDS
        else:
            self.state.succeeded(key, Snapshot(at=1.0, namespaces={}))

    def said(self) -> str:
        """Return what was stated since the last look."""
        found = []
        for fact in self.seen:
            if isinstance(fact, facts.SourceChanged):
                found.append("up" if fact.works else "down")
            elif isinstance(fact, facts.QueryChanged):
                found.append(f"{fact.query} {'works' if fact.works else 'fails'}")
        self.seen.clear()
        return ", ".join(found)


def outage(error: errors.SourceError) -> list[Step]:
    """Return an outage: it is stated at its first sign, and with the first answer it is over."""
    return [
        (UTILIZATION, OK, "up"),
        (POWER, OK, ""),
        (UTILIZATION, error, "down"),
        (POWER, error, ""),
        (UTILIZATION, error, ""),
        (POWER, OK, "up"),  # utilization was not asked since
        (UTILIZATION, OK, ""),
    ]


STORIES: dict[str, Sequence[Step]] = {
    "nobody answers": outage(AWAY),
    "all answers are late": outage(LATE),
    "a refused query takes no source down that answers others": [
        (UTILIZATION, OK, "up"),
        (POWER, REFUSED, "power fails"),
        (UTILIZATION, OK, ""),
        (POWER, REFUSED, ""),
        (POWER, GONE, ""),
        (UTILIZATION, AWAY, "down"),
        (UTILIZATION, OK, "up"),
    ],
    "a source that refuses all it is asked is down": [
        (UTILIZATION, OK, "up"),
        (POWER, OK, ""),
        (UTILIZATION, REFUSED, "utilization fails"),
        (POWER, REFUSED, "down"),
        (UTILIZATION, OK, "utilization works, up"),
        (POWER, REFUSED, "power fails"),
    ],
    "an answer of long ago says nothing of now": [
        (UTILIZATION, OK, "up"),
        (POWER, OK, ""),
        (UTILIZATION, REFUSED, "utilization fails"),
        (POWER, LONG_AFTER, ""),
        (UTILIZATION, REFUSED, "down"),
        (UTILIZATION, OK, "utilization works, up"),
    ],
    "one query that is always late does not make its source go up and down": [
        (UTILIZATION, OK, "up"),
        (POWER, LATE, "down"),
        (UTILIZATION, OK, "up"),
        (POWER, LATE, "power fails"),
        (UTILIZATION, OK, ""),
        (POWER, LATE, ""),
        (UTILIZATION, AWAY, "down"),
    ],
    "a user's query that fails says nothing of its source": [
        (BY_HAND, AWAY, f"{NAME} fails"),
        (BY_HAND, AWAY, ""),
        (BY_HAND, OK, f"{NAME} works, up"),
        (UTILIZATION, REFUSED, "utilization fails"),
        (BY_HAND, AWAY, f"{NAME} fails"),
        (UTILIZATION, AWAY, "down"),
    ],
    "what a source says at the start counts until triggers ask it": [
        (None, REFUSED, "down"),
        (None, AWAY, ""),
        (None, OK, "up"),
        (UTILIZATION, REFUSED, "down"),
        (None, OK, ""),
        (UTILIZATION, OK, "up"),
        (None, AWAY, ""),
    ],
    "while no trigger asks, what it says counts again": [
        (UTILIZATION, OK, "up"),
        (UTILIZATION, LONG_AFTER, ""),
        (None, AWAY, "down"),
        (None, OK, "up"),
        (UTILIZATION, AWAY, "down"),
        (UTILIZATION, LONG_AFTER, ""),
        (None, OK, "up"),
    ],
    "a source that is down from the start is not stated again": [
        (None, AWAY, "down"),
        (UTILIZATION, AWAY, ""),
        (UTILIZATION, OK, "up"),
    ],
    "a signal is called by its profile and its range too": [
        (UTILIZATION, OK, "up"),
        (OF_AMD, REFUSED, "power of amd fails"),
        (FAR_BACK, REFUSED, "utilization over a long range fails"),
    ],
}


@pytest.mark.parametrize("steps", STORIES.values(), ids=STORIES.keys())
def test_each_change_is_stated_once(steps: Sequence[Step]) -> None:
    watched = Watched()
    told = []
    for key, ended, _ in steps:
        watched.take(key, ended)
        told.append(watched.said())
    assert told == [said for *_, said in steps]


def test_the_reason_names_the_source_and_what_happened() -> None:
    watched = Watched()
    watched.take(UTILIZATION, AWAY)
    reason = f"source default: {AWAY}"
    assert watched.seen == [facts.SourceChanged("default", works=False, reason=reason, url=URL)]


def test_a_source_is_down_with_its_newest_reason_since_it_has_not_answered() -> None:
    watched = Watched()
    assert watched.state.down() == SourceDown("default", URL, "no answer yet", 0)
    for key, ended in ((None, AWAY), (None, REFUSED), (UTILIZATION, LATE)):
        watched.take(key, ended)
        assert watched.state.known.is_set()
        seconds = watched.clock.seconds - Watched().clock.seconds - 1
        assert watched.state.down() == SourceDown("default", URL, str(ended), seconds)
    watched.take(UTILIZATION, OK)
    assert watched.state.down() is None
