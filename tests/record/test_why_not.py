"""What would give another number of replicas: each change is applied, and gives it."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keda_gpu_scaler import trigger
from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision.decision import Context, Decision, decide
from keda_gpu_scaler.decision.pod_state import FULL
from keda_gpu_scaler.record.build import Answered, record
from keda_gpu_scaler.record.record import Metric, Record, Says
from keda_gpu_scaler.record.why_not import Need, WhyNot, why_not
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.demand import METRIC_NAME, Demand
from keda_gpu_scaler.spec.spec import TriggerSpec
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, STEP, bert, said, snapshot, unseen
from tests.support.triggers import BERT, access, demanding, spec

HOUR = 3600.0
SUFFIXES = "bcdfghjklm"
PODS = "bert-7b6667bd9-"


def decided(
    given: TriggerSpec,
    view: NamespaceSnapshot | None,
    demand: Demand | None = None,
    decision: Decision | None = None,
    **more: Any,  # noqa: ANN401 - fields of Answered
) -> Record:
    """Return the record of a trigger on a snapshot."""
    if decision is None:
        assert view is not None
        decision = decide(given, view, Context(NOW, HOUR))
    answered = Answered(
        scaled_object=BERT,
        spec=given,
        decision=decision,
        now=NOW,
        view=view,
        demand=demand,
        **more,
    )
    return record(answered)


def busy(*loads: float, **metadata: str) -> Record:
    """Return the record of pods with these loads."""
    pods = [bert(suffix, load) for suffix, load in zip(SUFFIXES, loads, strict=False)]
    return decided(spec(**metadata), snapshot(*pods))


def asked(metrics: tuple[Metric, ...]) -> int | None:
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


def applied(one: Metric, change: Need, nudge: int) -> Metric:
    """Return a metric after a change, or after one that is short of it by so many thousandths."""
    if change.of != one.name:
        return one
    if change.above is not None:
        bound = change.above + (1 - nudge) / 1000
    elif change.at_least is not None:
        bound = change.at_least - nudge / 1000
    else:
        assert change.at_most is not None
        bound = change.at_most + nudge / 1000
    return replace(one, value=bound) if change.key is None else replace(one, target=bound)


metrics_of_any_kind = st.tuples(
    st.integers(1, 40),
    st.sampled_from(list(rules.MetricType)),
    st.integers(1, 90_000).map(lambda milli: milli / 1000),
    st.integers(0, 4_000_000).map(lambda milli: milli / 1000),
    st.none() | st.tuples(st.integers(1, 9_000), st.integers(0, 300_000)),
)


@given(metrics_of_any_kind, st.integers(1, 60))
def test_each_way_gives_what_is_wanted_and_a_smaller_change_does_not(
    drawn: tuple[int, rules.MetricType, float, float, tuple[int, int] | None], wanted: int
) -> None:
    replicas, kind, target, value, demand = drawn
    load = value / replicas if kind is rules.MetricType.AVERAGE_VALUE else value
    shown = busy(50)
    pod = shown.pods[0]
    metrics = [
        replace(shown.metrics[0], metric_type=kind, target=target, value=value, replicas=replicas)
    ]
    if demand is not None:
        metrics.append(
            replace(
                metrics[0],
                name=METRIC_NAME,
                metric_type=rules.MetricType.AVERAGE_VALUE,
                target=demand[0] / 1000,
                value=demand[1] / 1000,
            )
        )
    pods = tuple(replace(pod, replica=str(number), load=load) for number in range(replicas))
    shown = replace(shown, metrics=tuple(metrics), pods=pods, unit="W")
    found = why_not(shown, wanted)
    assert found.is_so == (asked(shown.metrics) == wanted)
    for way in found.ways:
        for nudge, is_enough in ((0, True), (1, False)):
            after = shown.metrics
            for change in way:
                after = tuple(applied(one, change, nudge) for one in after)
            assert (asked(after) == wanted) == is_enough, way
    assert found.is_so or found.ways or found.reasons


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=6),
    st.integers(20, 90),
    st.sampled_from(["sum", "average", "max", "p95"]),
    st.integers(1, 9),
)
def test_a_change_of_the_pods_or_of_the_trigger_gives_what_is_wanted(
    loads: list[int], threshold: int, aggregation: str, wanted: int
) -> None:
    """By the whole way from the samples, and not only by the HPA's arithmetic."""
    metadata = {"aggregation": aggregation, "activationThreshold": "0"}
    shown = busy(*loads, threshold=str(threshold), **metadata)
    for way in why_not(shown, wanted).ways:
        (change,) = way
        if change.key is not None:
            (level,) = (one for one in (change.at_least, change.at_most) if one is not None)
            after = busy(*loads, threshold=f"{level:.3f}", **metadata)
        else:
            value = change.at_most if change.above is None else change.above + 0.001
            assert value is not None
            each = value if aggregation == "average" else value / len(loads)
            assume(each < FULL)  # full ones ask for more than they show
            after = busy(*[each] * len(loads), threshold=str(threshold), **metadata)
        assert max(1, after.metrics[0].desired or 0) == wanted


@given(st.integers(1, 1000), st.integers(0, 1000))
def test_idle_is_what_keeps_to_the_level(busiest: int, level: int) -> None:
    assume(busiest > level)
    shown = busy(busiest / 10, activationThreshold=str(level / 10), threshold="90")
    assert shown.active
    by_load, by_level = why_not(shown, 0).ways
    assert (by_load[0].at_most, by_level[0].at_least) == (level / 10, busiest / 10)
    assert by_level[0].key == "activationThreshold"
    quiet = busy(level / 10, activationThreshold=str(level / 10), threshold="90")
    higher = busy(busiest / 10, activationThreshold=str(busiest / 10), threshold="90")
    lower = busy(busiest / 10, activationThreshold=f"{busiest / 10 - 0.001:.3f}", threshold="90")
    assert (quiet.active, higher.active, lower.active) == (False, False, True)
    assert why_not(quiet, 0).is_so


def texts(found: WhyNot) -> list[str]:
    return [" and ".join(change.text for change in way) for way in found.ways]


def test_more_replicas_are_told_by_load_and_threshold() -> None:
    found = why_not(busy(60, 65), 3)
    assert texts(found) == [
        (
            "the load of all replicas has to be above 154 % (is 125 %): on average above 77 % each "
            "(is 62.5 %)"
        ),
        "threshold at most 56.818 % (is 70 %)",
    ]
    assert (found.is_so, found.replicas, found.reasons) == (False, 2, ())


def test_fewer_replicas_are_told_the_same_way() -> None:
    assert texts(why_not(busy(50, 50, 50), 2)) == [
        (
            "the load of all replicas has to be at most 140 % (is 150 %): on average at most "
            "46.6667 % each (is 50 %)"
        ),
        "threshold at least 75 % (is 70 %)",
    ]
    average = busy(90, 60, aggregation="average")
    assert texts(why_not(average, 1)) == ["the average load has to be at most 35 % (is 75 %)"]


def test_by_max_it_is_told_of_the_load_that_each_replica_counts_as() -> None:
    assert texts(why_not(busy(90, 30, 30, aggregation="max"), 5)) == [
        (
            "the load of all replicas by max has to be above 280 % (is 270 %): above 93.3333 % "
            "each (is 90 %)"
        ),
        "threshold at most 67.499 % (is 70 %)",
    ]
    assert texts(why_not(busy(60, 10, aggregation="p95"), 1)) == [
        (
            "the load of all replicas by p95 has to be at most 70 % (is 115 %): at most 35 % each "
            "(is 57.5 %)"
        ),
    ]


def test_a_value_of_replicas_that_are_beyond_those_asked_for_is_not_multiplied_by_them() -> None:
    listed = NamespaceEvidence(NOW - 10, absence_known=True, wanted={BERT_DEPLOYMENT: 2})
    pods = [
        bert(suffix, load, status=said()) for suffix, load in zip("bcd", (60, 10, 10), strict=True)
    ]
    shown = decided(spec(aggregation="max"), snapshot(*pods, evidence=listed))
    assert (shown.value, shown.metrics[0].replicas) == (120, 2)
    assert texts(why_not(shown, 3))[0].endswith("above 77 % each (is 60 %)")


def test_what_no_load_can_give_is_said() -> None:
    steps = why_not(busy(*[70] * 10), 11)
    assert steps.ways == ()
    assert steps.reasons == (
        (
            "no value of gpu-utilization asks for 11 at 10 replicas: within 10 % of its target "
            "nothing changes, and beyond that it asks for 12"
        ),
    )
    shown = busy(*[70] * 10)
    pods = tuple(replace(pod, replica=f"{pod.name}-{n}") for pod in shown.pods for n in range(2))
    twenty = replace(shown.metrics[0], replicas=20, value=1400.0)
    down = why_not(replace(shown, metrics=(twenty,), pods=pods), 19)
    assert down.ways == ()
    assert down.reasons[0].endswith("and beyond that it asks for 18")
    many = why_not(busy(90), 3)
    assert many.reasons[0].startswith("no load of the pods that there are is enough: the load of")
    assert texts(many) == ["threshold at most 44.999 % (is 70 %)"]
    summed = why_not(busy(90, gpuAggregation="sum"), 3)
    assert len(summed.ways) == 2
    assert why_not(busy(90), 6).reasons[0] == (
        "without other policies the HPA goes from 1 to at most 4 at once"
    )


def test_a_threshold_that_the_trigger_would_refuse_is_no_way() -> None:
    assert len(why_not(busy(94, 94), 1).ways) == 1
    assert len(why_not(busy(94, 94, gpuAggregation="sum"), 1).ways) == 2


def test_what_it_asks_for_already_is_said() -> None:
    found = why_not(busy(60, 80), 2)
    assert (found.is_so, found.reasons) == (True, ("the metrics ask for it, at 2 replicas",))


def test_a_load_that_is_not_known_gives_no_number() -> None:
    pods = [
        bert("b", 90, status=said()),
        bert("c", 90, status=said(ready=NOW - 30)),
        unseen("d", said()),
    ]
    shown = decided(spec(), snapshot(*pods))
    for wanted in (0, 1, 5):
        found = why_not(shown, wanted)
        assert (found.ways, found.is_so) == ((), False)
        assert any(
            reason.startswith(f"pod {PODS}ccccc: its load is not") for reason in found.reasons
        )
        assert any(reason.startswith(f"pod {PODS}ddddd: no exporter") for reason in found.reasons)
    held = why_not(shown, 3)
    assert (held.is_so, held.reasons) == (
        True,
        ("a metric without a value holds the replicas, at 3 replicas",),
    )


def test_of_many_pods_that_are_missing_some_are_named() -> None:
    found = why_not(decided(spec(), snapshot(*(unseen(one, said()) for one in "bcdfghjklmnp"))), 1)
    assert found.reasons[-1] == "and 2 more pods"


def test_pods_that_are_not_listed_count_as_well() -> None:
    shown = busy(*[50] * 3)
    few = replace(shown, pods=shown.pods[:1], pods_left_out=2)
    assert texts(why_not(few, 2))[0].startswith("the load of all replicas has to be at most 140 %")
    group = replace(few, pods=(replace(few.pods[0], replica="bert-0"),))
    assert "the load of 1 of 3 replicas is known" in why_not(group, 2).reasons[0]


def test_a_source_that_is_down_is_what_is_missing() -> None:
    view = snapshot(bert("b", 90))
    lost = decide(spec(), view, Context(NOW + HOUR, HOUR))
    shown = decided(spec(), None, decision=replace(lost, expected=2), trouble="no answer")
    assert "no answer" in why_not(shown, 0).reasons
    assert "no answer" in why_not(shown, 1).reasons


def test_a_lower_bound_can_raise_and_not_lower() -> None:
    lost = bert("f", 100, last_seen=NOW - 200, history=900, status=said())
    shown = decided(spec(threshold="50"), snapshot(*(bert(one, 100) for one in "bcd"), lost))
    assert (shown.state, shown.value) == ("partial", 300)
    lower = why_not(replace(shown, metrics=(replace(shown.metrics[0], replicas=3),)), 5)
    assert lower.reasons[0].startswith("it is partial: ")
    lower = why_not(shown, 5)
    assert lower.ways == ()
    assert any(f"pod {PODS}fffff" in reason for reason in lower.reasons)
    assert [change.above for (change,) in why_not(shown, 7).ways] == [300]


def test_replicas_whose_load_is_not_counted_are_counted_in_the_reason() -> None:
    shown = busy(90, 90)
    three = replace(shown, metrics=(replace(shown.metrics[0], replicas=3, value=280.0),))
    assert (
        "the load of 2 of 3 replicas is known: fewer are not asked for" in why_not(three, 2).reasons
    )


def test_where_a_value_rests_on_targets_no_threshold_is_told() -> None:
    shown = busy(90, 90)
    more = replace(shown, metrics=(replace(shown.metrics[0], value=130.0),))
    ((change,),) = why_not(more, 3).ways
    assert (change.key, change.above) == (None, 154)


def test_a_demand_is_a_metric_and_a_signal() -> None:
    given = demanding("sum(x)", demandThreshold="5", demandActivationThreshold="1")
    pods = snapshot(bert("b", 0), bert("c", 0))
    active = replace(decide(given, pods, Context(NOW, HOUR)), active=True, activated=True)
    shown = decided(given, pods, Demand(8.0), active)
    assert texts(why_not(shown, 4)) == [
        "the demand has to be above 15 (is 8)",
        "demandThreshold at most 2.666 (is 5)",
    ]
    assert texts(why_not(shown, 0)) == [
        "the demand has to be at most 1 (is 8)",
        "demandActivationThreshold at least 8 (is 1)",
    ]


def test_all_metrics_have_to_fall() -> None:
    given = demanding("sum(x)", demandThreshold="5")
    shown = decided(given, snapshot(*(bert(one, 70) for one in "bcd")), Demand(15.0))
    found = why_not(shown, 2)
    assert texts(found)[0] == (
        "the load of all replicas has to be at most 140 % (is 210 %): on average at most "
        "46.6667 % each (is 70 %) and the demand has to be at most 10 (is 15)"
    )


def test_after_a_pod_has_ended_a_lower_value_is_held() -> None:
    shown = decided(spec(), snapshot(*(bert(one, 50) for one in "bcd"), bert("f", 50, ended=True)))
    assert shown.value is not None
    assert "a lower value is held for a while after a pod has ended" in why_not(shown, 2).reasons


def test_when_a_gpu_was_busy_last_and_when_it_is_idle_is_told() -> None:
    pods = snapshot(bert("b", [0, 7, 0, 0, 0, 0, 0]), bert("c", 90, ended=True))
    shown = decided(spec(activationThreshold="5", activationWindow="2m"), pods)
    assert texts(why_not(shown, 0)) == [
        (
            "no GPU above activationThreshold 5 % for activationWindow 2m: the busiest showed 7 %, "
            "and one was above it 1m15s ago; without another it is idle in 45s"
        ),
        "activationThreshold at least 7 % (is 5 %)",
    ]
    assert texts(why_not(replace(shown, at=math.inf), 0))[0].endswith("the busiest showed 7 %")
    by_env = {"workload": "bert", "threshold": "70", "activationWindowFromEnv": "2m"}
    hidden = decided(trigger.parse(BERT, by_env, access()), pods)
    assert texts(why_not(hidden, 0))[0].endswith("and one was above it 1m15s ago")


def test_signals_without_a_number_have_to_be_idle() -> None:
    idle = snapshot(bert("b", 0))
    active = replace(decide(spec(), idle, Context(NOW, HOUR)), active=True, activated=True)
    given = demanding("sum(x)")
    shown = decided(given, idle, None, active, alert="Queued", takes_alerts=True)
    found = why_not(shown, 0)
    assert texts(found) == ["alert has to be idle: alert Queued fires"]
    assert found.reasons == ("demand would then be asked as well",)


def test_a_signal_or_a_window_that_is_not_known_is_said() -> None:
    young = bert("b", 0, first_seen=NOW - HOUR, history=2 * STEP)
    shown = decided(spec(), snapshot(young))
    (reason,) = why_not(replace(shown, state="measured"), 0).reasons
    assert reason.startswith("gpus is not known: samples do not cover")
    given = demanding("sum(x)")
    idle = snapshot(bert("b", 0))
    active = replace(decide(given, idle, Context(NOW, HOUR)), active=True)
    shown = decided(given, idle, Demand(None, "no answer"), active)
    assert why_not(shown, 0).reasons == ("demand is not known: no answer",)
    busy_too = replace(
        shown, activation=(replace(shown.activation[0], says=Says.ACTIVE), *shown.activation[1:])
    )
    assert why_not(busy_too, 0).reasons[1].startswith("no GPU above activationThreshold")


def test_a_pod_that_starts_keeps_it_active() -> None:
    pods = [bert("b", 0), unseen("c", said(never=True, created=NOW - 60))]
    shown = decided(spec(), snapshot(*pods))
    assert (shown.state, shown.active) == ("measured", True)
    (reason,) = why_not(shown, 0).reasons
    assert reason.startswith(f"pod {PODS}ccccc: it was never Ready")


def gone(given: TriggerSpec, demand: Demand | None = None, **more: Any) -> Record:  # noqa: ANN401 - as above
    """Return the record of a workload without pods."""
    view = snapshot(bert("b", 1, ended=True))
    return decided(given, view, demand, **more)


def test_from_zero_only_other_signals_wake() -> None:
    nothing = why_not(gone(spec()), 1)
    assert (nothing.replicas, nothing.ways) == (0, ())
    assert nothing.reasons == (
        "its own GPUs cannot wake it: there is no pod to show any",
        "nothing else can: set demandQuery or demandPreset, activationWorkload or alerts",
    )
    given = demanding("sum(x)", demandActivationThreshold="5")
    found = why_not(gone(given, Demand(3.0), takes_alerts=True), 4)
    assert texts(found) == [
        "alert has to say active: no alert fires for it",
        "the demand has to be above 5 (is 3)",
        "demandActivationThreshold below 3 (is 5)",
    ]
    assert found.reasons[-1].startswith("how many more than that")
    assert len(why_not(gone(given, Demand(0.0)), 1).ways) == 1
    assert why_not(gone(given, Demand(None, "none")), 1).reasons[-1] == "demand is not known: none"


def test_at_zero_and_woken_are_said() -> None:
    at_rest = why_not(gone(spec()), 0)
    assert (at_rest.is_so, at_rest.reasons) == (True, ("it is inactive and has no replicas",))
    given = demanding("sum(x)")
    decision = replace(
        decide(given, snapshot(bert("b", 1, ended=True)), Context(NOW, HOUR)), active=True
    )
    woken = gone(given, Demand(3.0), decision=decision)
    assert why_not(woken, 1).is_so
    assert not why_not(woken, 2).is_so
    assert texts(why_not(woken, 0))[0] == "the demand has to be at most 0 (is 3)"


def test_an_idle_workload_with_replicas_is_keda_s_to_take() -> None:
    shown = busy(0, 0)
    assert why_not(shown, 0).is_so
    assert why_not(shown, 3).reasons[0].startswith("it is inactive: KEDA takes the last replica")


@pytest.mark.slow
@given(st.from_type(Record), st.integers(0, 10_000))
def test_whatever_a_record_holds_there_is_an_answer(shown: Record, wanted: int) -> None:
    """It may come from anything that answers on the scaler's port."""
    found = why_not(shown, wanted)
    assert all(change.text for way in found.ways for change in way)
    assert found.wanted == wanted


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": 0.0},
        {"target": 1e300},
        {"value": 1e300},
        {"value": -1.0},
        {"tolerance": 2.0},
        {"metric_type": "Utilization"},
        {"target": 1e-9},
    ],
)
def test_numbers_that_the_hpa_cannot_have_are_no_value(wrong: dict[str, float]) -> None:
    shown = busy(90)
    found = why_not(replace(shown, metrics=(replace(shown.metrics[0], **wrong),)), 3)  # type: ignore[arg-type]
    assert found.ways == ()
    assert found.reasons[0] == "gpu-utilization has no value, which holds the replicas"
    assert why_not(replace(shown, metrics=()), 3).replicas == 0
