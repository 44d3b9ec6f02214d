"""An observer that fails changes nothing for the others and for what states the fact."""

from collections.abc import Iterator
from typing import get_args

import pytest
import structlog
from structlog.testing import LogCapture

from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import History
from keda_gpu_scaler.telemetry.log_lines import LogObserver
from keda_gpu_scaler.telemetry.metrics import Telemetry
from keda_gpu_scaler.telemetry.observers import Observers
from keda_gpu_scaler.telemetry.refusals import Refusals
from tests.support.clocks import Clock
from tests.support.triggers import BERT

FACT = facts.Called("GetMetrics", "OK", 0.001)


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    captured = LogCapture()
    structlog.configure(processors=[captured])
    yield captured
    structlog.reset_defaults()


def failing_count(name: str) -> None:
    raise AssertionError(f"{name} failed")


def failing(_fact: facts.Fact) -> None:
    raise OSError(28, "No space left on device")


def test_every_observer_hears_every_fact_in_order_also_after_one_that_fails() -> None:
    heard: list[tuple[str, facts.Fact]] = []
    failures: list[str] = []
    observe = Observers(
        {
            "first": lambda fact: heard.append(("first", fact)),
            "broken": failing,
            "last": lambda fact: heard.append(("last", fact)),
        },
        failures.append,
    )
    observe(FACT)
    observe(FACT)
    assert heard == [("first", FACT), ("last", FACT)] * 2
    assert failures == ["broken"] * 2


class Selective:
    """Hears one kind of fact."""

    hears = frozenset({facts.PeersAsked})

    def __init__(self) -> None:
        self.heard: list[facts.Fact] = []

    def __call__(self, fact: facts.Fact) -> None:
        """Note the fact."""
        self.heard.append(fact)


def test_an_observer_gets_the_facts_that_it_hears_and_no_others() -> None:
    selective, asked = Selective(), facts.PeersAsked(1, 0)
    observe = Observers({"selective": selective}, failing_count)
    observe(FACT)
    observe(asked)
    assert selective.heard == [asked]
    assert facts.is_heard(observe, facts.PeersAsked)
    assert not facts.is_heard(observe, facts.Called)


def test_a_subscriber_that_fails_at_one_kind_of_fact_hears_the_others() -> None:
    heard: list[facts.Fact] = []
    failures: list[str] = []
    subscriber = facts.Subscriber({facts.Called: failing, facts.PeersAsked: heard.append})
    observe = Observers({"subscriber": subscriber}, failures.append)
    for fact in (FACT, facts.PeersAsked(1, 0), facts.CallBegan("IsActive", BERT, "")):
        observe(fact)
    assert heard == [facts.PeersAsked(1, 0)]
    assert failures == ["subscriber"]
    assert observe.hears == {facts.Called, facts.PeersAsked}


def test_one_that_does_not_say_hears_everything() -> None:
    observe = Observers({"selective": Selective(), "all": failing}, failing_count)
    assert observe.hears == frozenset(get_args(facts.Fact))
    assert facts.is_heard(facts.ignore, facts.Called)


@pytest.mark.parametrize(
    "observer",
    [Telemetry(), LogObserver(), History(lambda: 0.0), Refusals()],
    ids=lambda one: type(one).__name__,
)
def test_only_traces_hear_how_a_call_goes_on(observer: facts.Observer) -> None:
    unheard = (facts.CallBegan, facts.CallDecided)
    assert not any(facts.is_heard(observer, kind) for kind in unheard)
    observer(facts.CallBegan("GetMetrics", BERT, ""))  # and does no harm


def test_a_failure_is_told_once_a_minute_for_each_observer(lines: LogCapture) -> None:
    clock = Clock()
    observe = Observers({"log": failing, "traces": failing}, lambda _: None, clock)
    for seconds in (0, 59, 1):
        clock.now += seconds
        observe(FACT)
    told = [(line["event"], line["log_level"], line["observer"]) for line in lines.entries]
    assert told == [("observer.failed", "error", name) for name in ("log", "traces")] * 2
    assert {line["fact"] for line in lines.entries} == {"Called"}
    assert {str(line["exc_info"]) for line in lines.entries} == {
        "[Errno 28] No space left on device"
    }
