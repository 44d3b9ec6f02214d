"""An observer that fails changes nothing for the others and for what states the fact."""

from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.observers import Observers
from tests.support.clocks import Clock
from tests.support.triggers import BERT

FACT = facts.Called("GetMetrics", "OK", 0.001)


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    captured = LogCapture()
    structlog.configure(processors=[captured])
    yield captured
    structlog.reset_defaults()


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


def test_a_subscriber_that_fails_at_one_kind_of_fact_hears_the_others() -> None:
    heard: list[facts.Fact] = []
    failures: list[str] = []
    subscriber = facts.Subscriber({facts.Called: failing, facts.PeersAsked: heard.append})
    observe = Observers({"subscriber": subscriber}, failures.append)
    for fact in (FACT, facts.PeersAsked(1, 0), facts.CallBegan("IsActive", BERT, "")):
        observe(fact)
    assert heard == [facts.PeersAsked(1, 0)]
    assert failures == ["subscriber"]


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
