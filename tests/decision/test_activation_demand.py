"""Claims about the metric of a demand beside the load: just after a gap it never lowers."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.activation import AFTER_GAP, demand_for_hpa
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.spec import Demand
from testbed.triggers import demanding

SCALES, WAKES = demanding("sum(x)", demandThreshold="5"), demanding("sum(x)")
TWO = Decision(state=State.MEASURED, reason="", value=90.0, active=True, expected=2)
UNSEEN = replace(TWO, state=State.UNKNOWN, value=None)
LEAST, UNKNOWN = Demand(12.0, is_least=True), Demand(None, "no answer")


@pytest.mark.parametrize(
    ("decided", "number", "is_told"),
    [
        (TWO, 10.0, True),
        (TWO, 9.9, False),
        (TWO, 0.0, False),
        (replace(TWO, wanted=3), 12.0, False),
        (replace(TWO, wanted=3), 15.0, True),
        (replace(TWO, state=State.PARTIAL), 12.0, True),
        (replace(TWO, active=False, value=0.0), 4.0, False),
        (UNSEEN, 12.0, False),
        (replace(UNSEEN, wanted=2), 12.0, True),
        (replace(TWO, expected=0, starting=3), 14.9, False),
        (replace(TWO, expected=0, starting=3), 15.0, True),
        (replace(TWO, state=State.EMPTY, expected=0), 12.0, False),
        (replace(TWO, state=State.EMPTY, expected=0, wanted=0), 4.9, False),
        (replace(TWO, state=State.EMPTY, expected=0, wanted=0), 12.0, True),
        (None, 12.0, False),  # nothing was decided yet
    ],
)
def test_just_after_a_gap_the_hpa_is_told_of_as_many_replicas_or_more_and_never_of_fewer(
    decided: Decision | None, number: float, *, is_told: bool
) -> None:
    demand = demand_for_hpa(SCALES, decided, Demand(number, is_least=True))
    assert demand == (Demand(number) if is_told else Demand(None, AFTER_GAP))
    assert demand_for_hpa(SCALES, decided, Demand(number)) == Demand(number)


def test_a_demand_that_does_not_scale_or_is_not_known_stays_as_it_is() -> None:
    assert demand_for_hpa(WAKES, TWO, replace(LEAST, value=1.0)).value == 1
    assert demand_for_hpa(SCALES, None, UNKNOWN) is UNKNOWN
