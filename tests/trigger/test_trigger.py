"""Triggers: what each key means, with its default and its limits."""

import itertools
from typing import Any

import pytest

from keda_gpu_scaler import promql, trigger
from keda_gpu_scaler.demand.presets import NAMES, PRESETS
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.query import profiles, promql_texts
from keda_gpu_scaler.spec.spec import (
    Aggregation,
    DemandSpec,
    GpuAggregation,
    OnEmpty,
    OnUnknown,
    Signal,
    TriggerSpec,
)
from keda_gpu_scaler.spec.workload import Kind, PodPattern, ScaleTarget, Workload
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Namespaces
from testbed.triggers import BERT, access
from tests.trigger.cases import Given, mistakes, parse

SHOWN = [signal for signal in Signal if signal is not Signal.NUMBER]
ROUTER = Workload(Kind.DEPLOYMENT, "ml", "router")
PATTERN: Given = {"workload": None, "podPattern": "b.+"}
RATE = "sum(rate(router_requests_total[1m]))"
QUERY: Given = {"workload": None, "query": "cache_usage", "activationThreshold": "5"}
ROUTED: Given = {"demandRouter": "llama-epp", "demandModel": "llama"}
MEAN = 'SELECT mean("gauge") FROM "DCGM_FI_DEV_GPU_UTIL" WHERE time > now() - 1m'


def wanted(given: Given, **terms: Any) -> DemandSpec:
    found = parse(given, **terms).demand
    assert found is not None
    return found


def test_workload_and_threshold_are_enough() -> None:
    assert parse({}) == TriggerSpec(
        pods=Workload(Kind.DEPLOYMENT, "ml", "bert"),
        workload="deployment/bert",
        signal=Signal.UTILIZATION,
        profile="auto",
        threshold=70,
        aggregation=Aggregation.SUM,
        gpu_aggregation=GpuAggregation.AVERAGE,
        window_seconds=None,
        activation_threshold=2,
        activation_window_seconds=120,
        warmup_seconds=120,
        start_timeout_seconds=1800,
        on_unknown=OnUnknown.HOLD,
        max_age_seconds=180,
        source="default",
        metric_name="gpu-utilization",
        warnings=(),
    )


def test_what_keda_reads_itself_and_white_space_are_skipped() -> None:
    own: Given = dict.fromkeys(trigger.KEDA_KEYS, "x") | {"tlsClientKeyFromEnv": "x"}
    assert parse({**own, "workload": " bert\n", "threshold": "\t70 "}) == parse({})


def test_a_value_may_come_from_the_environment() -> None:
    resolved = {"workloadFromEnv": "bert\n", "thresholdFromEnv": "60"}
    assert trigger.parse(BERT, resolved, access()).threshold == 60


def test_a_default_written_out_changes_nothing(subtests: pytest.Subtests) -> None:
    for key, row in trigger.KEYS.items():
        demand = {"demandQuery": "vector(1)"} if key.startswith("demand") else {}
        if row.default:
            with subtests.test(key):
                assert parse({**demand, key: row.default}) == parse(demand)


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"signal": "power", "activationThreshold": "9"}, "signal", Signal.POWER),
        ({"profile": "dcgm"}, "profile", "dcgm"),
        ({"aggregation": "average"}, "aggregation", Aggregation.AVERAGE),
        ({"gpuAggregation": "max"}, "gpu_aggregation", GpuAggregation.MAX),
        ({"window": "90s"}, "window_seconds", 90),
        ({"activationThreshold": "1.5"}, "activation_threshold", 1.5),
        ({"activationWindow": "5m"}, "activation_window_seconds", 300),
        ({"activationWorkload": "router"}, "neighbour", ROUTER),
        ({"warmup": "0s"}, "warmup_seconds", 0),
        ({"startTimeout": "1d"}, "start_timeout_seconds", 86_400),
        ({"onUnknown": "error"}, "on_unknown", OnUnknown.ERROR),
        ({"forFormula": "true"}, "for_formula", True),
        ({"forFormula": "true", "demandQuery": "sum(x)"}, "for_formula", True),
        ({}, "for_formula", False),
        ({"maxAge": "1m"}, "max_age_seconds", 60),
        ({"source": "thanos"}, "source", "thanos"),
        ({"metricName": "bert_power.W-1"}, "metric_name", "bert_power.W-1"),
        ({"activationThreshold": "0", "threshold": "0.001"}, "threshold", 0.001),
        *(
            ({"threshold": text}, "threshold", number)
            for text, number in (("1e1", 10), ("+5", 5), (".5e1", 5), ("7.", 7), ("90.0", 90))
        ),
        # Neither the sum of a pod's GPUs nor another unit ends at 100.
        ({"threshold": "560", "gpuAggregation": "sum"}, "threshold", 560),
        ({"threshold": "560", "signal": "power", "activationThreshold": "9"}, "threshold", 560),
        ({**QUERY, "threshold": "1000"}, "threshold", 1000),
        ({**QUERY, "signal": "number"}, "signal", Signal.NUMBER),
        ({"signal": "memory", "activationThreshold": "0"}, "activation_threshold", 0),
        ({"window": "1s"}, "window_seconds", 1),
        ({"window": "1h"}, "window_seconds", 3600),
        ({"startTimeout": "1s"}, "start_timeout_seconds", 1),
        ({"warmup": "1h"}, "warmup_seconds", 3600),
        *(
            ({"metricName": name}, "metric_name", name)
            for name in ("s-gpu", "s0", "sx0-gpu", "GPU_load.1", "a", "a" * 200, "gpu-demand-2")
        ),
        ({"podPattern": "b.+"}, "workload", "deployment/bert"),
        ({"podPattern": "a" * 4096}, "pods", PodPattern("ml", "a" * 4096)),
        (
            {"activationWorkload": "sts/bert"},
            "neighbour",
            Workload(Kind.STATEFUL_SET, "ml", "bert"),
        ),
        # A pattern says which pods: a workload of that name can be another.
        (
            {"podPattern": "bert-overflow-.*", "activationWorkload": "bert"},
            "neighbour",
            Workload(Kind.DEPLOYMENT, "ml", "bert"),
        ),
        ({}, "neighbour", None),
        ({}, "demand", None),
    ],
)
def test_a_value_is_read_up_to_its_limits(given: Given, field: str, value: object) -> None:
    assert getattr(parse(given), field) == value


@pytest.mark.parametrize(
    ("given", "pods", "name", "only_shown"),
    [
        (PATTERN, PodPattern("ml", "b.+"), "b.+", False),
        (
            {**QUERY, "workload": "sts/bert"},
            Workload(Kind.STATEFUL_SET, "ml", "bert"),
            "statefulset/bert",
            False,
        ),
        ({**QUERY, "podPattern": ".*"}, PodPattern("ml", ".*"), ".*", False),
        (QUERY, PodPattern("ml", ".*"), "every pod of the query", True),
    ],
)
def test_the_pods_are_those_that_the_trigger_names(
    given: Given,
    pods: Workload | PodPattern,
    name: str,
    only_shown: bool,
) -> None:
    spec = parse(given)
    assert (spec.pods, spec.workload, spec.only_shown) == (pods, name, only_shown)


def test_where_targets_are_known_the_workload_is_the_scale_target() -> None:
    unnamed: Given = {"workload": None, "activationWorkload": "router"}
    spec = parse(unnamed, knows_targets=True)
    assert (spec.pods, spec.workload) == (ScaleTarget("ml"), "the scale target")
    assert spec.neighbour == ROUTER
    given: Given = {"workload": "sts/bert"}
    assert parse(given, knows_targets=True) == parse(given)


@pytest.mark.parametrize("allowed", [Namespaces(frozenset({"a", "other"})), EVERY_NAMESPACE])
def test_the_pods_are_those_of_another_namespace_where_that_is_allowed(
    allowed: Namespaces,
) -> None:
    other = {"namespace": "other", "activationWorkload": "router"}
    for given in (other, {**other, **PATTERN}):
        spec = parse(given, others=allowed)
        assert spec.pods.namespace == "other"
        assert spec.neighbour == Workload(Kind.DEPLOYMENT, "other", "router")


TOKENS = {
    "demandQuery": None,
    "demandPreset": "llm-d-epp-tokens",
    "demandRouter": "epp",
    "demandThreshold": "9000",
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"threshold": "80"}, ""),
        (
            {"threshold": "81"},
            "threshold 81 leaves little room: a replica at 100 % counts as only 1.23 replicas, ",
        ),
        ({"threshold": "160", "gpuAggregation": "sum"}, ""),
        ({"activationThreshold": "69"}, ""),
        ({"activationThreshold": "70"}, "activationThreshold 70 is not below threshold 70: "),
        ({"demandThreshold": "2", "demandActivationThreshold": "1.9"}, ""),
        ({"demandActivationThreshold": "1000"}, ""),
        (
            {"demandThreshold": "2", "demandActivationThreshold": "2"},
            "demandActivationThreshold 2 is not below demandThreshold 2: ",
        ),
        (TOKENS | {"threshold": "70"}, ""),
        (TOKENS | {"threshold": None}, "demandPreset llm-d-epp-tokens leaves out answers whose "),
    ],
)
def test_what_is_likely_a_mistake_is_warned_of(given: Given, words: str) -> None:
    warnings = parse({"demandQuery": RATE, **given}).warnings
    assert len(warnings) == (1 if words else 0)
    assert "".join(warnings).startswith(words)


@pytest.mark.parametrize("signal", SHOWN)
def test_the_gpus_of_a_pod_are_added_up_only_for_amounts(signal: Signal) -> None:
    spec = parse({"signal": signal, "activationThreshold": "1"})
    added_up = signal in {Signal.MEMORY_USED, Signal.POWER}
    assert spec.gpu_aggregation is (GpuAggregation.SUM if added_up else GpuAggregation.AVERAGE)
    assert spec.metric_name == f"gpu-{signal}"


def test_a_profile_is_accepted_for_the_signals_it_shows(subtests: pytest.Subtests) -> None:
    for name, signal in itertools.product(profiles.NAMES, SHOWN):
        given = {"profile": name, "signal": signal, "activationThreshold": "5"}
        refused = f'- profile: "{name}"; '
        with subtests.test(f"{name} {signal}"):
            if signal in profiles.signals(name):
                assert parse(given).profile == name
            elif profiles.signals(name):
                (line,) = mistakes(given)
                assert f"{refused}it does not show {signal}; expected one" in line
            else:
                (line,) = mistakes(given)
                assert f"{refused}this exporter names no pod" in line


# A query


def test_a_query_and_what_its_numbers_mean_are_enough() -> None:
    spec = parse(QUERY)
    assert spec.query is not None
    assert spec.query == promql.own("cache_usage", Policy.NAMESPACED, "ml")
    assert (spec.signal, spec.shared_signal) == (Signal.NUMBER, Signal.NUMBER)
    assert (spec.metric_name, spec.profile) == ("gpu-number", spec.query.name)
    assert spec.gpu_aggregation is GpuAggregation.AVERAGE


def test_a_signal_gives_the_numbers_of_a_query_a_unit_and_its_rules() -> None:
    spec = parse({**QUERY, "signal": "utilization", "activationThreshold": None})
    assert (spec.signal, spec.shared_signal) == (Signal.UTILIZATION, Signal.NUMBER)
    assert spec.activation_threshold == 2
    assert parse({**QUERY, "signal": "power"}).gpu_aggregation is GpuAggregation.SUM


FILLED = 'load{namespace="{namespace}",pod=~"{podPattern}",service="{workload}"}'


LLAMA = Workload(Kind.STATEFUL_SET, "ml", "llama-3.1")
BY_HAND = f'load{{namespace="ml",pod=~{promql_texts.quoted(LLAMA.regex)},service="llama-3.1"}}'


@pytest.mark.parametrize(
    ("given", "sent", "namespace"),
    [
        ({"namespace": "other"}, "cache_usage", "other"),
        ({"namespace": "other", "query": 'load{a="{namespace}"}'}, 'load{a="other"}', "other"),
        ({"query": FILLED, "workload": str(LLAMA)}, BY_HAND, "ml"),
        (
            {"query": FILLED, "workload": "sts/bert", "podPattern": "b.+"},
            'load{namespace="ml",pod=~"b.+",service="bert"}',
            "ml",
        ),
    ],
)
def test_a_query_is_sent_confined_to_the_namespace_of_the_pods_with_their_names_filled_in(
    given: Given, sent: str, namespace: str
) -> None:
    spec = parse({**QUERY, **given}, others=EVERY_NAMESPACE)
    assert spec.query == promql.own(sent, Policy.NAMESPACED, namespace)


def test_promql_is_sent_as_written_where_it_is_allowed() -> None:
    query = parse(QUERY, own_promql=Policy.ALLOW).query
    assert query is not None
    assert query.text == "cache_usage"
    demand = wanted({"demandQuery": "sum(info(load))"}, own_promql=Policy.ALLOW)
    assert demand.text == "sum(info(load))"


# A demand


def test_any_demand_wakes_and_it_changes_nothing_about_the_load() -> None:
    plain, demanding = parse({}), parse({"demandQuery": RATE})
    assert demanding.demand == DemandSpec(
        text=promql.number(RATE, Policy.NAMESPACED, "ml"),
        activation_threshold=0,
        threshold=None,
        on_empty=OnEmpty.ERROR,
    )
    assert (demanding.metric_name, demanding.on_unknown) == (plain.metric_name, plain.on_unknown)
    said = {"demandThreshold": "20", "demandActivationThreshold": "1.5"}
    told = wanted({"demandQuery": RATE, "demandOnEmpty": "inactive", **said})
    assert (told.threshold, told.activation_threshold) == (20, 1.5)
    assert told.on_empty is OnEmpty.INACTIVE


QUEUE = 'sum(queue{namespace="{namespace}"})'


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        # Whatever the pods' namespace is, a demand stays in the ScaledObject's own.
        ({"demandQuery": "sum(a) or vector(0)", "namespace": "other"}, "sum(a) or vector(0)"),
        ({"demandQuery": QUEUE, "namespace": "other"}, 'sum(queue{namespace="other"})'),
        ({"demandQuery": QUEUE, "workload": None}, 'sum(queue{namespace="ml"})'),
        (
            {"demandQuery": 'sum(x{a="{workload}",pod!~"{podPattern}"})', "podPattern": "b.+"},
            'sum(x{a="bert",pod!~"b.+"})',
        ),
        ({"demandQuery": RATE, "source": "thanos"}, RATE),
    ],
)
def test_a_demand_is_sent_confined_to_the_own_namespace_with_names_filled_in(
    given: Given, sent: str
) -> None:
    # The scale target of another namespace is nobody's to know.
    demand = wanted(given, others=EVERY_NAMESPACE, knows_targets=True)
    assert demand.text == promql.number(sent, Policy.NAMESPACED, "ml")


@pytest.mark.parametrize("text", [MEAN, f"{MEAN} AND pod =~ /a{{2}}{{id}}/"])
def test_a_demand_of_an_influxdb_is_influxql_and_is_sent_as_it_was_written(text: str) -> None:
    given = {"source": "old", "demandQuery": text}
    assert wanted(given, own_promql=Policy.ALLOW).text == text


# A preset


@pytest.mark.parametrize("name", NAMES)
def test_one_line_gives_a_query_a_target_and_what_an_unknown_demand_means(name: str) -> None:
    preset = PRESETS[name]
    given = {"demandPreset": name}
    if preset.is_of_router:
        given["demandRouter"] = "llama-epp"
    if preset.needs_model:
        given["demandModel"] = "llama"
    if preset.needs_threshold:
        given["demandThreshold"] = "5"
    demand = wanted(given)
    assert demand.preset == name
    assert demand.threshold == (5 if preset.needs_threshold else preset.threshold)
    assert demand.activation_threshold == 0
    assert (demand.wakes, demand.activates) == (preset.wakes, preset.activates)
    assert demand.on_empty is (OnEmpty.ERROR if demand.wakes else OnEmpty.INACTIVE)
    assert demand.name.startswith("demand-")
    # Its PromQL is ours: users need not be allowed any.
    assert wanted(given, own_promql=Policy.DENY) == demand


POD_PRESET: Given = {"demandPreset": "vllm-queue"}
ROUTER_PRESET: Given = {"demandPreset": "llm-d-epp-queue", "demandRouter": "sts/router"}
SATURATED: Given = {"demandPreset": "llm-d-epp-saturation", "demandRouter": "router"}
MODEL_PRESET: Given = {**ROUTED, "demandPreset": "vllm-router-rate", "demandModel": "m" * 256}


@pytest.mark.parametrize(
    ("given", "within", "without"),
    [
        (POD_PRESET, '"bert-[4-9bcdf]', "router"),
        ({**POD_PRESET, **PATTERN}, '"b.+"', "bert"),
        (ROUTER_PRESET, '"router-(?:0|[1-9]', "bert"),
        (MODEL_PRESET, f'="{"m" * 256}"', "bert"),
        ({**QUERY, **ROUTER_PRESET}, '"router-', "bert"),
        ({**POD_PRESET, "namespace": "other"}, '="other"', '="ml"'),
        ({**ROUTER_PRESET, "namespace": "other"}, '="other"', '="ml"'),
        ({**ROUTER_PRESET, "demandRouterNamespace": "other"}, '="other"', '="ml"'),
        ({**SATURATED, "demandRouterNamespace": "other"}, '=~"(?:bert-[4-9bcdf]', '="ml"'),
    ],
)
def test_a_preset_reads_the_workloads_pods_or_the_routers(
    given: Given, within: str, without: str
) -> None:
    text = wanted(given, others=EVERY_NAMESPACE).text
    assert within in text
    assert without not in text
