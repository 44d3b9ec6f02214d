"""Claims about the history of decisions, and about refused triggers."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import (
    CHANGES,
    REASON_CHARACTERS,
    REFUSAL_SECONDS,
    TOTAL_CHANGES,
    History,
)
from testbed.triggers import BERT, evaluated, spec

BUSY = Decision(state=State.MEASURED, reason="busy", value=100.0, active=True, average=50.0)
OTHER = ScaledObject("ml", "other")


class Watched:
    """A history on a clock of the test's."""

    def __init__(self, total_changes: int = TOTAL_CHANGES) -> None:
        self.now = 1000.0
        self.history = History(lambda: self.now, total_changes)

    def decided(
        self, decided: Decision, scaled_object: ScaledObject = BERT, metric: str = "a"
    ) -> None:
        """Let it be decided a second later."""
        self.now += 1
        named = replace(spec(), metric_name=metric)
        self.history(evaluated(decided, named, scaled_object))

    def values(self, scaled_object: ScaledObject = BERT) -> list[float | None]:
        """Return the values of the changes."""
        return [change.summary.value for change in self.history.of(scaled_object)]


@pytest.mark.parametrize(
    ("later", "is_change"),
    [
        (replace(BUSY, value=109.0, reason="a little more"), False),
        (replace(BUSY, value=112.0), True),
        (replace(BUSY, value=89.0), True),
        (replace(BUSY, value=None), True),
        (replace(BUSY, active=False), True),
        (replace(BUSY, state=State.PARTIAL), True),
        (replace(BUSY, average=60.0), False),
    ],
)
def test_a_change_is_another_state_or_activity_or_a_value_that_the_hpa_sees(
    later: Decision,
    is_change: bool,
) -> None:
    watched = Watched()
    watched.decided(BUSY)
    watched.decided(later)
    assert len(watched.history.of(BERT)) == 1 + is_change
    named = replace(spec(), workload="deployment/gpt")
    watched.history(evaluated(later, named))
    assert [change.summary.workload for change in watched.history.of(BERT)][-1] == "deployment/gpt"


def test_a_trigger_keeps_its_last_changes_and_a_reason_of_bounded_length() -> None:
    watched = Watched()
    for number in range(CHANGES + 5):
        watched.decided(replace(BUSY, value=2.0**number, reason="x" * 5000))
    assert watched.values() == [2.0**number for number in range(5, CHANGES + 5)]
    assert {len(change.summary.reason) for change in watched.history.of(BERT)} == {
        REASON_CHARACTERS
    }


@pytest.mark.parametrize(
    ("metrics", "values"), [(1, 10), (10, 1)], ids=["many changes", "many triggers"]
)
def test_the_changes_of_all_are_bounded_and_the_oldest_object_goes(
    metrics: int, values: int
) -> None:
    watched = Watched(total_changes=100)
    others = [ScaledObject("web", f"bert-{number}") for number in range(50)]
    for other in others:
        for metric in range(metrics):
            for value in range(values):
                watched.decided(replace(BUSY, value=2.0**value), other, f"{metric}")
        watched.decided(replace(BUSY, value=2.0 ** (values - 1)), others[0], "0")
    counts = [len(watched.history.of(other)) for other in others]
    assert counts == [10] + [0] * 40 + [10] * 9


def test_a_refusal_is_told_with_its_age_until_a_trigger_is_right_or_keda_would_try_again() -> None:
    watched = Watched()
    history = watched.history
    assert history.refusal(BERT) is None
    history(facts.TriggerRefused(BERT, "treshold: unknown key"))
    watched.now += 5
    assert history.refusal(BERT) == "5 s ago KEDA was refused: treshold: unknown key"
    history(facts.TriggerChanged(OTHER))
    history(facts.Called("GetMetrics", "OK", 0.1))
    assert history.refusal(BERT) is not None
    history(facts.TriggerChanged(BERT))
    assert history.refusal(BERT) is None
    history(facts.TriggerRefused(BERT, "wrong"))
    watched.now += REFUSAL_SECONDS - 1
    assert history.refusal(BERT) is not None
    watched.now += 1
    assert history.refusal(BERT) is None
