"""Claims about the record of one decision."""

from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from keda_gpu_scaler import trigger
from keda_gpu_scaler.record.build import HIDDEN, PODS_LISTED
from keda_gpu_scaler.record.record import Record, Says, SettingOrigin
from keda_gpu_scaler.snapshot.evidence import EvidenceSource, NamespaceEvidence, Unschedulable
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, NamespaceSnapshot, Pod
from keda_gpu_scaler.spec.spec import Demand, TriggerSpec
from testbed.triggers import BERT, access, demanding, spec
from tests.support.records import HOUR, decided, record
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, STEP, bert, pod, said, snapshot, unseen


def _states(shown: Record) -> dict[str, str]:
    return {pod.name.removeprefix("bert-7b6667bd9-")[0]: pod.state for pod in shown.pods}


def test_every_pod_says_why_it_counts_or_does_not() -> None:
    pods = (
        bert("b", 90, status=said()),
        bert("c", 90, status=said(ready=NOW - 30)),
        bert("d", 90, last_seen=NOW - 600, history=900, status=said(is_ready=True)),
        unseen("f", said(never=True, created=NOW - 60)),
        unseen("g", said(never=True)),
        bert("h", 90, ended=True),
        unseen("j", said(asks_gpu=False)),
    )
    shown = record(spec(), snapshot(*pods))
    assert _states(shown) == {
        "b": "measured",
        "c": "warming",
        "d": "silent",
        "f": "starting",
        "g": "stalled",
        "h": "ended",
        "j": "not counted",
    }
    assert len({pod.reason for pod in shown.pods}) == len(pods)
    without = (bert("b", 90, status=said(asks_gpu=False)), unseen("c", said(asks_gpu=False)))
    assert _states(record(spec(), snapshot(*without))) == {"b": "measured", "c": "ignored"}
    assert [pod.load for pod in shown.pods if not pod.counts] == [None] * 6
    (starting,) = [pod for pod in shown.pods if pod.state == "starting"]
    assert (starting.ready_since, starting.first_seen) == (None, None)
    new = record(spec(), snapshot(unseen("k", said(ready=NOW - 300))))
    assert [(pod.state, pod.reason) for pod in new.pods] == [
        ("missing", "no exporter has shown it yet")
    ]


def test_while_the_source_is_away_no_pod_is_said_to_be_lost_by_its_exporter() -> None:
    pods = bert("b", 90), bert("c", 90, status=said(is_ready=True)), bert("d", 90, ended=True)
    view = snapshot(*pods)
    late = NOW + spec().max_age_seconds + 1
    assert _states(record(spec(), view, now=late))["b"] == "missing"
    away = record(spec(), view, now=late, trouble="no answer")
    assert _states(away) == {"b": "outdated", "c": "outdated", "d": "ended"}
    assert "exporter" not in away.pods[0].reason
    early = record(spec(), view, trouble="no answer")
    assert _states(early)["b"] == "measured"


def test_no_number_of_replicas_is_shown_for_one_trigger_of_a_formula() -> None:
    """The HPA gets the formula's value, with the metricType of scalingModifiers."""
    shown = record(spec(forFormula="true", aggregation="average"), snapshot(bert("b", 90)))
    (metric,) = shown.metrics
    assert (shown.value, shown.recommended, metric.desired) == (90, None, None)
    assert metric.reason == "the HPA gets the value of a formula, which is not known here"


def test_what_is_unschedulable_is_shown_for_the_trigger_and_for_each_pod() -> None:
    waiting = Unschedulable(NOW - 150, "no room")
    pods = (
        bert("b", 90, status=said()),
        unseen("c", said(never=True, created=NOW - 180, unschedulable=waiting)),
        unseen("d", said(never=True, ended=True, unschedulable=waiting)),
    )
    gone = replace(pods[2], ended=True)
    shown = record(spec(), snapshot(*pods[:2], gone))
    assert (shown.unschedulable, shown.unschedulable_since) == (1, NOW - 150)
    assert [pod.reason.rpartition("; ")[2] for pod in shown.pods] == [
        "its load is in the value",
        'unschedulable for 2m ("no room")',
        "it has ended",
    ]


def test_a_gpu_whose_newest_number_is_refused_shows_none() -> None:
    busy = bert("b", 90)
    broken = replace(busy, gpus=tuple(replace(gpu, refused=(NOW + 1,)) for gpu in busy.gpus))
    (pod,) = record(spec(), snapshot(broken)).pods
    assert [(gpu.value, gpu.refused, gpu.sampled_at) for gpu in pod.gpus] == [(None, 1, NOW + 1)]


def test_a_pod_of_which_only_refused_numbers_are_shown_is_not_said_to_be_shown_no_more() -> None:
    blank = GpuSamples("GPU-x", (), (), refused=(NOW - STEP, NOW))
    for status, state in ((said(is_ready=True), "silent"), (None, "missing")):
        of_blank = replace(bert("b", 90, status=status), gpus=(blank,))
        (shown,) = record(spec(), snapshot(of_blank)).pods
        assert (shown.state, shown.reason) == (
            state,
            "its exporter shows a number that no GPU can have, and it is refused",
        )


def test_defaults_are_shown_and_told_from_what_was_written() -> None:
    shown = record(spec(window="5m"), snapshot(bert("b", 90)))
    found = {one.key: (one.value, one.origin) for one in shown.settings}
    assert found["window"] == ("5m", SettingOrigin.TRIGGER)
    assert found["maxAge"] == ("3m", SettingOrigin.DEFAULT)
    assert found["activationThreshold"] == ("2", SettingOrigin.DEFAULT)
    assert found["metricName"] == ("gpu-utilization", SettingOrigin.DEFAULT)
    usual = {one.key: one.value for one in record(spec(), snapshot()).settings}
    assert usual["window"].startswith("2m; 1m where")


def test_every_key_is_shown_where_it_has_a_value() -> None:
    full = spec(
        activationWorkload="other",
        demandPreset="vllm-router-rate",
        demandRouter="router",
        demandRouterNamespace="ml",
        demandModel="llama",
        demandThreshold="5",
    )
    keys = {one.key for one in record(full, snapshot()).settings}
    assert set(trigger.KEYS) - keys == {"podPattern", "query", "demandQuery"}


@pytest.mark.parametrize(
    ("given", "queries"),
    [
        ({"demandQueryFromEnv": "sum(secret)"}, ["value", "busiest GPU"]),
        (
            {
                "demandPreset": "vllm-router-rate",
                "demandRouter": "router",
                "demandModelFromEnv": "secret",
            },
            ["value", "busiest GPU"],
        ),
        ({"queryFromEnv": 'max by (pod) (secret{namespace="ml"})', "activationThreshold": "3"}, []),
    ],
)
def test_the_environment_is_not_shown(given: dict[str, str], queries: list[str]) -> None:
    metadata = {"workload": "bert", "threshold": "70", **given}
    shown = record(trigger.parse(BERT, metadata, access()), snapshot())
    (setting,) = (one for one in shown.settings if one.origin is SettingOrigin.ENVIRONMENT)
    assert setting.value == HIDDEN
    assert [one.name for one in shown.queries] == queries
    assert b"secret" not in msgspec.json.encode(shown)


def test_placeholders_are_shown_as_they_are_sent_and_the_key_as_it_was_written() -> None:
    given = spec(demandQuery='sum(requests{service="{workload}"})')
    shown = record(given, snapshot(bert("b", 90)))
    (text,) = (one.text for one in shown.queries if one.name == "demand")
    assert 'service="bert"' in text
    (written,) = (one.value for one in shown.settings if one.key == "demandQuery")
    assert 'service="{workload}"' in written


def test_a_source_without_promql_has_no_queries_to_paste() -> None:
    assert record(spec(), snapshot(), speaks_promql=False).queries == ()
    assert [one.name for one in record(demanding("sum(x)"), snapshot()).queries] == [
        "value",
        "busiest GPU",
        "demand",
    ]


IDLE = snapshot(bert("b", 0))
BUSY = snapshot(bert("b", 90))
YOUNG = snapshot(bert("b", 0, first_seen=NOW - HOUR, history=2 * STEP))
BESIDE = spec(activationWorkload="other")
ALL = demanding("sum(x)", activationWorkload="other")
AT_REST = decided(spec(workload="other"), snapshot())
IN_DOUBT = decided(spec(), snapshot(complete=False, absence_known=False))
SATURATION = spec(demandPreset="llm-d-epp-saturation", demandRouter="epp")


@pytest.mark.parametrize(
    ("given", "view", "answered", "says"),
    [
        # None is asked after the first that says active.
        (
            ALL,
            BUSY,
            {"takes_alerts": True},
            {
                "gpus": Says.ACTIVE,
                "activationWorkload": Says.NOT_ASKED,
                "alert": Says.NOT_ASKED,
                "demand": Says.NOT_ASKED,
            },
        ),
        (
            ALL,
            IDLE,
            {"neighbour": AT_REST, "takes_alerts": True, "demand": Demand(0.0)},
            dict.fromkeys(("gpus", "activationWorkload", "alert", "demand"), Says.IDLE),
        ),
        (spec(), YOUNG, {}, {"gpus": Says.UNKNOWN}),
        (spec(), snapshot(unseen("b", said())), {}, {"gpus": Says.UNKNOWN}),
        (spec(), IDLE, {"alert": "Queued", "takes_alerts": True}, {"alert": Says.ACTIVE}),
        (BESIDE, IDLE, {"neighbour": decided(spec(), BUSY)}, {"activationWorkload": Says.ACTIVE}),
        (BESIDE, IDLE, {"neighbour": IN_DOUBT}, {"activationWorkload": Says.UNKNOWN}),
        (demanding("sum(x)"), IDLE, {"demand": Demand(3.0)}, {"demand": Says.ACTIVE}),
        (demanding("sum(x)"), IDLE, {"demand": Demand(None, "no")}, {"demand": Says.UNKNOWN}),
        (demanding("sum(x)"), IDLE, {"demand": None}, {"demand": Says.NOT_ASKED}),
        (SATURATION, IDLE, {"demand": Demand(2.4)}, {"demand": Says.NOT_SET}),
    ],
)
def test_what_each_signal_says(
    given: TriggerSpec, view: NamespaceSnapshot, answered: dict[str, Any], says: dict[str, Says]
) -> None:
    shown = record(given, view, **answered)
    found = {one.signal: one.says for one in shown.activation}
    assert {signal: found[signal] for signal in says} == says
    if len(says) > 1:
        assert list(found) == list(says)


def test_numbers_of_signals_are_shown_beside_their_thresholds() -> None:
    idle = record(ALL, IDLE, neighbour=AT_REST, demand=Demand(0.0))
    shown = [(one.value, one.threshold) for one in idle.activation]
    assert shown == [(0, 2), (None, None), (None, None), (0, 0)]


def test_the_hpas_arithmetic_is_shown_for_the_replicas_that_the_owner_asks_for() -> None:
    wanted = NamespaceEvidence(
        NOW,
        absence_known=True,
        evidence_source=EvidenceSource.KUBE_STATE_METRICS,
        wanted={BERT_DEPLOYMENT: 3},
    )
    pods = [bert(letter, 90, status=said()) for letter in "bcd"]
    (metric,) = record(spec(), snapshot(*pods, evidence=wanted)).metrics
    assert (metric.metric_type, metric.value, metric.target) == ("AverageValue", 270, 70)
    assert (metric.replicas, metric.desired) == (3, 4)
    assert metric.reason == "270 / 70 per replica = 4 replicas"


def test_an_average_is_a_value_and_a_demand_that_scales_is_a_metric_of_its_own() -> None:
    both = snapshot(bert("b", 90), bert("c", 120))
    (gpus,) = record(spec(aggregation="average"), both).metrics
    assert (gpus.metric_type, gpus.value, gpus.desired) == ("Value", 105, 3)
    _, demand = record(demanding("sum(x)", demandThreshold="5"), both).metrics
    assert (demand.name, demand.value, demand.desired) == ("gpu-demand", None, None)


def test_a_demand_that_is_held_just_after_a_gap_shows_its_arithmetic_and_why() -> None:
    both, scales = snapshot(bert("b", 90), bert("c", 120)), demanding("sum(x)", demandThreshold="5")
    _, held = record(scales, both, demand=Demand(4.0, is_least=True)).metrics
    assert (held.value, held.desired) == (4, None)
    assert held.reason.endswith("; held: servers may be missing just after a gap")
    _, raises = record(scales, both, demand=Demand(12.0, is_least=True)).metrics
    assert (raises.value, raises.desired) == (12, 3)


def test_without_threshold_the_record_says_what_the_gpus_are_for() -> None:
    given = demanding("sum(x)", threshold="", demandThreshold="5")
    shown = record(given, snapshot(bert("b", 90)), demand=Demand(12.0))
    (metric,) = shown.metrics
    assert (metric.name, metric.value, metric.desired) == ("gpu-demand", 12, 3)
    assert (shown.unit, shown.gpu_unit, shown.threshold) == ("", "%", 5)
    settings = {setting.key: setting.value for setting in shown.settings}
    assert settings["threshold"].endswith("the GPUs show whether they still work")
    assert settings["metricName"] == "gpu-demand"
    assert not {"aggregation", "gpuAggregation", "window"} & settings.keys()
    assert [query.name for query in shown.queries] == ["busiest GPU", "demand"]


def test_without_a_snapshot_there_is_a_record_of_what_was_answered() -> None:
    late = decided(spec(), snapshot(bert("b", 90)), NOW + HOUR)
    shown = record(spec(), None, decision=late, trouble="no answer")
    assert (shown.pods, shown.source.snapshot_at, shown.source.age_seconds) == ((), None, None)
    assert (shown.source.trouble, shown.source.evidence) == ("no answer", None)
    assert shown.activation[0].says is Says.UNKNOWN


def _many(number: int, load: float = 50.0, **how: Any) -> list[Pod]:
    letters = "bcdfghjklmnpqrstvwxz2456789"
    ends = (f"{letters[n // 729]}{letters[n // 27 % 27]}{letters[n % 27]}" for n in range(number))
    first = letters[int(load) % 27]
    return [pod(f"bert-7b6667bd9-{first}b{end}", load, **how) for end in ends]


def test_of_very_many_pods_those_that_matter_are_listed_and_all_are_counted() -> None:
    idle, busy = _many(300, 10, status=said()), _many(900, 90, status=said())
    missing = _many(400, 33, last_seen=NOW - 600, history=900, status=said())
    ended = _many(300, 44, ended=True)
    shown = record(spec(), snapshot(*idle, *busy, *missing, *ended))
    assert len(shown.pods) == PODS_LISTED
    assert shown.pods_left_out == 1900 - PODS_LISTED
    assert {one.state: one.pods for one in shown.pod_counts} == {
        "measured": 1200,
        "missing": 400,
        "ended": 300,
    }
    listed = Counter(one.state for one in shown.pods)
    assert listed == {"missing": PODS_LISTED // 2, "measured": PODS_LISTED // 2}
    assert {one.load for one in shown.pods if one.counts} == {10}
    assert [one.counts for one in shown.pods] == [True] * 250 + [False] * 250
    assert len(msgspec.json.encode(shown)) < 2**19


def test_the_gpus_of_a_pod_are_bounded_in_number_and_in_their_names() -> None:
    many = bert("b", *[float(number % 100) for number in range(100)])
    long = replace(many, gpus=tuple(replace(gpu, gpu=500 * "x") for gpu in many.gpus))
    (found,) = record(spec(), snapshot(long)).pods
    assert (len(found.gpus), found.gpus_left_out) == (64, 36)
    assert {len(gpu.gpu) for gpu in found.gpus} == {200}


def test_a_workload_that_the_cluster_does_not_list_is_a_warning() -> None:
    owners = {"Deployment": frozenset({"berta"})}
    listed = NamespaceEvidence(NOW - 10, absence_known=True, owners=owners)
    (warning,) = record(spec(), snapshot(evidence=listed)).warnings
    assert warning.startswith("there is no deployment/bert (did you mean berta?)")
