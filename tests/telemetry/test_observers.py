"""An observer that fails changes nothing for the others and for what states the fact."""

from structlog.testing import LogCapture

from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.log_lines import Observers
from tests.support.triggers import BERT

FACT = facts.Called("GetMetrics", "OK", 0.001)


def failing(_fact: facts.Fact) -> None:
    raise OSError(28, "No space left on device")


def test_a_failure_is_told_once_for_each_kind_and_others_get_all(lines: LogCapture) -> None:
    got: list[facts.Fact] = []
    observe = Observers({"log": failing, "history": got.append, "traces": failing})
    stated = [FACT, FACT, facts.PeersAsked(1, 0)]
    for fact in stated:
        observe(fact)
    assert got == stated
    reports = [(line["event"], line["log_level"], line["observer"]) for line in lines.entries]
    assert reports == [("observer.failed", "error", name) for name in ("log", "traces")] * 2
    assert [line["fact"] for line in lines.entries] == ["Called"] * 2 + ["PeersAsked"] * 2
    assert {str(line["exc_info"]) for line in lines.entries} == {
        "[Errno 28] No space left on device"
    }


def test_a_subscriber_that_fails_at_one_kind_of_fact_gets_the_others() -> None:
    got: list[facts.Fact] = []
    subscriber = facts.Subscriber({facts.Called: failing, facts.PeersAsked: got.append})
    observe = Observers({"subscriber": subscriber})
    for fact in (FACT, facts.PeersAsked(1, 0), facts.CallBegan("IsActive", BERT, "")):
        observe(fact)
    assert got == [facts.PeersAsked(1, 0)]
