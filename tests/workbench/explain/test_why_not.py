"""What would give another number of replicas: each change is applied, and gives it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.record.record import MetricRecord, Record
from keda_gpu_scaler.spec.spec import DEMAND_METRIC, Demand, TriggerSpec
from keda_gpu_scaler.workbench.explain.why_not import Way, WhyNot, why_not
from testbed.triggers import demanding, spec
from tests.support.records import HOUR, decided, record
from tests.support.snapshots import NOW, bert, said, snapshot, unseen

SUFFIXES = "bcdfghjklm"
PODS = "bert-7b6667bd9-"


def busy(*loads: float, **metadata: str) -> Record:
    """Return the record of pods with these loads."""
    pods = [bert(suffix, load) for suffix, load in zip(SUFFIXES, loads, strict=False)]
    return record(spec(**metadata), snapshot(*pods))


def gone(given: TriggerSpec, demand: Demand | None = None, **more: Any) -> Record:
    """Return the record of a workload without pods."""
    return record(given, snapshot(bert("b", 1, ended=True)), demand=demand, **more)


def texts(found: WhyNot) -> list[str]:
    return [way.text for way in found.ways]


def asked(*metrics: MetricRecord) -> int | None:
    """Return what the HPA makes of all metrics."""
    step = rules.recommend(
        [
            rules.Metric(
                value=one.value, target=one.target, metric_type=rules.MetricType(one.metric_type)
            )
            for one in metrics
        ],
        rules.Scale.steady(metrics[0].replicas),
    )
    return None if step is None else max(1, step.replicas)


def applied(metric: MetricRecord, way: Way, short: float = 0.0) -> MetricRecord:
    """Return a metric after a change, or after one that is short of it."""
    if way.at_least is not None:
        bound = way.at_least - short
    else:
        assert way.at_most is not None
        bound = way.at_most + short
    return replace(metric, value=bound) if way.key is None else replace(metric, target=bound)


@given(
    st.integers(1, 40),
    st.sampled_from(list(rules.MetricType)),
    st.integers(100, 90_000).map(lambda milli: milli / 1000),
    st.integers(0, 4_000_000).map(lambda milli: milli / 1000),
    st.integers(1, 60),
)
def test_each_change_gives_what_is_wanted_and_a_smaller_one_does_not(
    replicas: int, kind: rules.MetricType, target: float, value: float, wanted: int
) -> None:
    shown = busy(50)
    metric = replace(
        shown.metrics[0], metric_type=kind, target=target, value=value, replicas=replicas
    )
    shown = replace(shown, metrics=(metric,), measured=replicas, unit="W")
    found = why_not(shown, wanted)
    assert found.is_so == (asked(metric) == wanted)
    assert found.is_so or found.ways or found.reasons
    for way in found.ways:
        assert asked(applied(metric, way)) == wanted, way
        # An average is a ratio to the HPA, which it rounds: the last thousandth can be either.
        assert asked(applied(metric, way, 0.002)) != wanted, way


@pytest.mark.parametrize(
    ("shown", "wanted", "ways"),
    [
        pytest.param(
            busy(60, 65),
            3,
            [
                "gpu-utilization at least 154.001 % (is 125 %): 77.0005 % for each replica",
                "threshold at most 56.818 % (is 70 %), if the value stays",
            ],
            id="more replicas",
        ),
        pytest.param(
            busy(50, 50, 50),
            2,
            [
                "gpu-utilization at most 140 % (is 150 %): 46.6667 % for each replica",
                "threshold at least 75 % (is 70 %), if the value stays",
            ],
            id="fewer replicas",
        ),
        pytest.param(
            busy(90, 60, aggregation="average"),
            1,
            ["gpu-utilization at most 35 % (is 75 %)"],
            id="an average, at a threshold that the trigger would refuse",
        ),
        pytest.param(
            record(
                demanding("sum(x)", threshold="", demandThreshold="5"),
                snapshot(bert("b", 90, status=said()), bert("c", 90, status=said(ready=NOW - 30))),
                demand=Demand(12.0),
            ),
            2,
            [
                "gpu-demand at most 11 (is 12): 5.5 for each replica",
                "demandThreshold at least 5.455 (is 5), if the value stays",
            ],
            id="a demand alone, while a pod is not measured yet",
        ),
    ],
)
def test_the_nearest_ways_are_told(shown: Record, wanted: int, ways: list[str]) -> None:
    found = why_not(shown, wanted)
    assert texts(found) == ways
    assert (found.is_so, found.reasons) == (False, ())
    already = why_not(shown, shown.metrics[0].desired or 0)
    assert (already.is_so, already.ways) == (True, ())
    assert already.reasons == (f"the trigger wants {shown.metrics[0].desired}",)


@pytest.mark.parametrize(
    ("metadata", "bound", "beyond"),
    [
        ({}, 3, 4),
        ({"aggregation": "average"}, 3, 4),
        ({"gpuAggregation": "sum"}, 4, 5),
        ({"signal": "power", "activationThreshold": "50"}, 4, 5),
    ],
)
def test_a_load_above_100_percent_is_no_way(
    metadata: dict[str, str], bound: int, beyond: int
) -> None:
    shown = busy(60, 65, **metadata)
    assert None in {way.key for way in why_not(shown, bound).ways}
    found = why_not(shown, beyond)
    is_share = bound == 3
    assert (None in {way.key for way in found.ways}) != is_share
    said = "no value of gpu-utilization gives 4: each replica would need a load above 100 %"
    assert (said in found.reasons) == is_share


def test_what_no_value_can_give_is_said() -> None:
    found = why_not(busy(*[70] * 10), 11)
    assert found.ways == ()
    assert found.reasons == (
        (
            "no value of gpu-utilization gives 11 at 10 replicas: within 10 % of its target "
            "nothing changes"
        ),
    )
    assert why_not(busy(90), 6).reasons[0] == (
        "without other policies the HPA goes from 1 to at most 4 in one step"
    )


def test_a_load_that_is_not_known_gives_no_number() -> None:
    pods = [
        bert("b", 90, status=said()),
        bert("c", 90, status=said(ready=NOW - 30)),
        unseen("d", said()),
    ]
    shown = record(spec(), snapshot(*pods))
    for wanted in (0, 5):
        found = why_not(shown, wanted)
        assert (found.ways, found.is_so) == ((), False)
        assert any(
            reason.startswith(f"pod {PODS}ccccc: its load is not") for reason in found.reasons
        )
        assert any(reason.startswith(f"pod {PODS}ddddd: no exporter") for reason in found.reasons)
    held = why_not(shown, 3)
    assert held.is_so
    assert held.reasons[0] == "gpu-utilization has no value, which holds the replicas"


def test_what_is_missing_is_named_and_of_many_pods_some() -> None:
    found = why_not(record(spec(), snapshot(*(unseen(one, said()) for one in "bcdfghjklmnp"))), 1)
    assert found.reasons[-1] == "and 2 more pods"
    lost = decided(spec(), snapshot(bert("b", 90)), NOW + HOUR)
    shown = record(spec(), None, decision=replace(lost, expected=2), trouble="no answer")
    for wanted in (0, 1):
        assert "no answer" in why_not(shown, wanted).reasons


def test_a_lower_bound_can_raise_and_not_lower() -> None:
    lost = bert("f", 100, last_seen=NOW - 200, history=900, status=said())
    shown = record(spec(threshold="50"), snapshot(*(bert(one, 100) for one in "bcd"), lost))
    assert (shown.state, shown.value) == ("partial", 300)
    lower = why_not(shown, 5)
    assert lower.ways == ()
    why = "only the load of 3 of 4 replicas is known, so the scaler does not go lower"
    assert why in lower.reasons
    assert any(f"pod {PODS}fffff" in reason for reason in lower.reasons)
    assert [way.at_least for way in why_not(shown, 7).ways if not way.key] == [300.001]


def test_a_demand_is_a_metric_too_and_the_hpa_takes_the_largest() -> None:
    given = demanding("sum(x)", demandThreshold="5")
    shown = record(given, snapshot(*(bert(one, 70) for one in "bcd")), demand=Demand(15.0))
    fewer = why_not(shown, 2)
    assert [(way.metric, way.at_most) for way in fewer.ways if not way.key] == [
        ("gpu-utilization", 140),
        (DEMAND_METRIC, 10),
    ]
    assert fewer.reasons == (
        "every metric that wants more must change: the HPA takes the largest number",
    )
    demand = replace(shown.metrics[1], value=5.0)
    one_asks = why_not(replace(shown, metrics=(shown.metrics[0], demand)), 2)
    assert {way.metric for way in one_asks.ways} == {"gpu-utilization"}
    more = why_not(shown, 4)
    assert more.reasons == ()
    assert texts(more)[2:] == [
        "gpu-demand at least 16.501 (is 15): 5.50033 for each replica",
        "demandThreshold at most 4.545 (is 5), if the value stays",
    ]


BUSIEST = (
    "gpus is active: the busiest GPU is above activationThreshold: it is 7 %, and active above 5 %"
)
NO_DEMAND = (
    "demand is idle: the demand is not above demandActivationThreshold: it is 3, and active above 5"
)
AT_FIVE = demanding("sum(x)", demandActivationThreshold="5")
STARTING = snapshot(bert("b", 0), unseen("c", said(never=True, created=NOW - 60)))
ZERO = {
    "a busy GPU": (busy(7, activationThreshold="5"), 0, False, [BUSIEST]),
    "at rest": (gone(AT_FIVE, Demand(8.0)), 0, True, ["it is inactive and has no replicas"]),
    "idle": (
        busy(0, 0),
        0,
        True,
        ["it is inactive: after its cooldownPeriod KEDA goes to zero in one step"],
    ),
    "idle, and more are wanted": (
        busy(0, 0),
        3,
        False,
        ["it is inactive: after its cooldownPeriod KEDA goes to zero in one step"],
    ),
    "nothing can wake it": (gone(spec()), 1, False, ["KEDA starts it", "gpus is idle: no GPU of"]),
    "a demand that could wake it": (
        gone(AT_FIVE, Demand(3.0)),
        4,
        False,
        ["KEDA starts it", "gpus is idle", NO_DEMAND],
    ),
    "a demand that is not known": (
        gone(demanding("sum(x)"), Demand(None, "no answer")),
        1,
        False,
        ["KEDA starts it", "gpus is idle", "demand is unknown: no answer"],
    ),
    "a pod that starts": (
        record(spec(), STARTING),
        0,
        False,
        [f"pod {PODS}ccccc: it was never Ready"],
    ),
}


@pytest.mark.parametrize(("shown", "wanted", "is_so", "reasons"), ZERO.values(), ids=ZERO)
def test_zero_and_the_way_back_from_it_are_what_the_signals_say(
    shown: Record,
    wanted: int,
    is_so: bool,
    reasons: list[str],
) -> None:
    found = why_not(shown, wanted)
    assert found.is_so is is_so
    assert len(found.reasons) == len(reasons), found.reasons
    for reason, begin in zip(found.reasons, reasons, strict=True):
        assert reason.startswith(begin)


def test_of_a_demand_that_is_held_after_a_gap_it_is_said_why() -> None:
    scales = demanding("sum(x)", demandThreshold="5")
    held = record(scales, snapshot(bert("b", 90)), demand=Demand(4.0, is_least=True))
    (reason, *_) = why_not(held, 3).reasons
    assert reason.startswith("gpu-demand gives no number of replicas: ")
    assert reason.endswith("; held: servers may be missing just after a gap")


def test_of_a_formula_it_is_said_that_it_decides() -> None:
    found = why_not(busy(90, forFormula="true"), 3)
    assert (found.is_so, found.ways) == (False, ())
    (reason,) = found.reasons
    assert reason.startswith(
        "gpu-utilization gives no number of replicas: the HPA gets the value of a formula"
    )


@pytest.mark.parametrize("wanted", [1, 2])
def test_a_workload_that_is_woken_gets_one_replica_first(wanted: int) -> None:
    given = demanding("sum(x)")
    view = snapshot(bert("b", 1, ended=True))
    active = replace(decided(given, view), active=True)
    assert why_not(gone(given, Demand(3.0), decision=active), wanted).is_so == (wanted == 1)
