"""Claims about the replicas that a decision asks for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.summary import (
    Summary,
    hpa_metrics,
    recommended_replicas,
    summarized,
)
from keda_gpu_scaler.spec.spec import Demand, TriggerSpec
from testbed.triggers import BERT, demanding, spec

BUSY = Decision(state=State.MEASURED, reason="", value=210.0, active=True, expected=2, measured=2)
IDLE = replace(BUSY, value=0.0, active=False)
GONE = Decision(state=State.ENDED, reason="", value=None, active=False)
UNSEEN = replace(BUSY, state=State.UNKNOWN, value=None)
ALONE = demanding("sum(x)", threshold="", demandThreshold="5")
WAKES = demanding("sum(x)")
SCALES = demanding("sum(x)", demandThreshold="5")


@pytest.mark.parametrize(
    ("trigger", "decided", "demand", "replicas"),
    [
        (spec(), BUSY, None, 3),
        (spec(), replace(BUSY, value=150.0), None, 2),  # within the tolerance
        (spec(), replace(BUSY, wanted=6), None, 3),
        (spec(aggregation="average"), replace(BUSY, value=105.0), None, 3),
        (spec(aggregation="average"), replace(BUSY, value=105.0, wanted=4), None, 6),
        (spec(), replace(BUSY, value=0.0), None, 1),  # active: never below one
        (spec(), replace(BUSY, value=None), None, None),
        (spec(), replace(BUSY, refused=True), None, None),
        (spec(), IDLE, None, 0),
        (spec(), GONE, None, 0),
        (spec(), replace(GONE, active=True), None, 1),
        (spec(), replace(GONE, active=True, wanted=2), None, None),  # its pods are to come
        (spec(), replace(GONE, active=None), None, None),
        (WAKES, IDLE, Demand(0.0), 0),
        (WAKES, IDLE, Demand(None, "no answer"), None),
        (WAKES, GONE, Demand(None, "no answer"), None),
        (WAKES, IDLE, None, None),
        (WAKES, replace(GONE, active=True), Demand(40.0), 1),
        (SCALES, replace(GONE, active=True), Demand(40.0), 8),
        (SCALES, BUSY, Demand(40.0), 8),
        (SCALES, BUSY, Demand(4.0), 3),
        (SCALES, replace(BUSY, value=70.0), None, None),  # an unknown metric lets none go
        (SCALES, BUSY, None, 3),
        # Just after a gap it raises as well.
        (SCALES, BUSY, Demand(40.0, is_least=True), 8),
        (ALONE, replace(BUSY, value=4.0), Demand(4.0), 1),
        # Its GPUs are not seen: the demand raises, or holds.
        (ALONE, replace(UNSEEN, value=40.0), Demand(40.0), 8),
        (ALONE, UNSEEN, Demand(4.0), None),
        (ALONE, replace(BUSY, value=None), Demand(4.0), None),  # just after a gap
        (spec(), replace(UNSEEN, value=210.0), None, None),
    ],
)
def test_the_replicas_asked_for(
    trigger: TriggerSpec, decided: Decision, demand: Demand | None, replicas: int | None
) -> None:
    assert recommended_replicas(trigger, decided, demand) == replicas


@given(
    st.builds(
        Decision,
        state=st.just(State.UNKNOWN),
        reason=st.just(""),
        value=st.one_of(st.none(), st.just(0.0)),
        active=st.sampled_from([True, False, None]),
        remembered=st.one_of(st.none(), st.sampled_from(State)),
        wanted=st.one_of(st.none(), st.integers(0, 9)),
    ),
    st.one_of(st.none(), st.builds(Demand, st.one_of(st.none(), st.floats(0, 1e6)))),
)
def test_an_unknown_load_asks_for_nothing_whatever_the_policy_answers(
    decided: Decision, demand: Demand | None
) -> None:
    for trigger in (spec(), WAKES, SCALES):
        assert recommended_replicas(trigger, decided, demand) is None


@given(st.floats(0, 1e6), st.integers(1, 500))
def test_an_active_trigger_asks_for_what_its_value_needs_within_the_tolerance(
    value: float, replicas: int
) -> None:
    decided = replace(BUSY, value=value, expected=replicas)
    found = recommended_replicas(spec(), decided, None)
    assert found is not None
    assert found >= 1
    if found not in {1, replicas}:
        assert (found - 1) * 70 - 0.1 <= value <= found * 70 + 0.1


def test_a_line_for_people_says_what_was_decided() -> None:
    decided = replace(
        BUSY,
        reason="it is so",
        average=105.0,
        never_seen=True,
        unschedulable=1,
        unschedulable_since=60.0,
    )
    found = summarized(BERT, spec(), decided, 3, "gpus")
    assert found == Summary(
        scaled_object="ml/bert",
        workload="deployment/bert",
        metric_name="gpu-utilization",
        state=State.MEASURED,
        value=210.0,
        active=True,
        active_by="gpus",
        average=105.0,
        threshold=70.0,
        unit="%",
        replicas=2,
        measured=2,
        never_seen=True,
        unschedulable=1,
        unschedulable_since=60.0,
        recommended=3,
        reason="it is so",
        source_name="default",
    )
    assert found.answered_seconds_ago == 0
    named = summarized(BERT, spec(), decided, source_name="default/ml")
    assert (named.source_name, named.recommended, named.active_by) == ("default/ml", None, None)


def test_each_metric_of_the_hpas_has_its_name_and_target() -> None:
    found = hpa_metrics(SCALES, BUSY, Demand(12.0))
    assert {name: (one.value, one.target) for name, one in found.items()} == {
        "gpu-utilization": (210, 70),
        "gpu-demand": (12, 5),
    }


def test_one_trigger_of_a_formula_asks_for_no_number_of_replicas() -> None:
    assert recommended_replicas(spec(forFormula="true"), BUSY, None) is None
    assert recommended_replicas(spec(forFormula="true"), IDLE, None) == 0
    assert recommended_replicas(spec(), BUSY, None) == 3
