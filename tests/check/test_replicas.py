"""How many replicas there will be: averages, sums, reach, and whose pods are measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.check.replicas import aggregation_of_gpus, without_strings
from tests.check.cases import STAYS, changed, found, report, text

TYPE = "    - type: external\n"
RECIPE = text("average-recipe", "fail")
QUERY = 'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}[5m]))'


WORKLOAD = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: bert
  namespace: inference
spec:
  template:
    spec:
      containers:
        - resources: {limits: {nvidia.com/gpu: 1}}
"""


def rules(source: str) -> set[str]:
    return {place.rule for place in found(source)}


def test_utilization_is_no_type_for_an_external_metric() -> None:
    assert rules(changed(STAYS, (TYPE, f"{TYPE}      metricType: Utilization\n"))) == {"wrong-type"}


@pytest.mark.parametrize(
    ("aggregation", "words"),
    [
        ("sum", "the answer is their sum already: 2 busy replicas become 6"),
        ("max", "the answer counts all of them already: 2 busy replicas become 6"),
        ("p95", "the answer counts all of them already: 2 busy replicas become 6"),
    ],
)
def test_max_and_p95_are_for_the_type_that_the_sum_is_for(aggregation: str, words: str) -> None:
    keyed = f"{STAYS}        aggregation: {aggregation}\n"
    assert rules(keyed) == set()
    (finding,) = report(changed(keyed, (TYPE, f"{TYPE}      metricType: Value\n"))).findings
    assert finding.rule.name == "sum-with-value"
    assert words in finding.why


def test_a_type_that_the_environment_decides_is_not_judged() -> None:
    value = changed(STAYS, (TYPE, f"{TYPE}      metricType: Value\n"))
    assert rules(value + "        aggregationFromEnv: AGGREGATION\n") == set()


@pytest.mark.parametrize(
    ("threshold", "keys", "found_rules"),
    [
        ("120", {"signal": "temperature", "activationThreshold": "50"}, {"threshold-out-of-reach"}),
        ("75", {"signal": "temperature", "activationThreshold": "50"}, set()),
        ("1400", {"gpuAggregation": "sum"}, set()),
        ("1500", {"gpuAggregation": "sum"}, {"threshold-out-of-reach"}),
        ("1400", {"signal": "power", "activationThreshold": "90"}, set()),
        (
            "9e6",
            {"signal": "memory-used", "activationThreshold": "900"},
            {"threshold-out-of-reach"},
        ),
        ("9e9", {"query": "x", "activationThreshold": "1"}, set()),
    ],
)
def test_a_threshold_is_compared_with_the_most_that_gpus_can_show(
    threshold: str, keys: dict[str, str], found_rules: set[str]
) -> None:
    more = "".join(f'        {key}: "{value}"\n' for key, value in keys.items())
    assert rules(changed(STAYS, ('"70"', f'"{threshold}"')) + more) == found_rules


def test_a_threshold_is_not_judged_where_it_decides_nothing() -> None:
    source = changed(STAYS, ('"70"', '"1500"')) + "        gpuAggregation: sum\n"
    assert rules(changed(source, ("maxReplicaCount: 8", "maxReplicaCount: 1"))) == set()
    formula = "  advanced: {scalingModifiers: {formula: a, target: '1'}}\n  triggers:\n"
    assert rules(changed(source, ("  triggers:\n", formula))) == set()


def test_gpus_may_leave_it_to_a_demand_that_scales() -> None:
    source = changed(STAYS, ('"70"', '"800"')) + "        gpuAggregation: sum\n"
    source += "---\n" + WORKLOAD
    assert rules(source) == {"threshold-out-of-reach"}
    preset = "        gpuAggregation: sum\n        demandPreset: "
    whole = changed(source, ("        gpuAggregation: sum\n", f"{preset}vllm-requests\n"))
    assert rules(whole) == set()
    only_wakes = "        gpuAggregation: sum\n        demandQuery: sum(x)\n"
    waking = changed(source, ("        gpuAggregation: sum\n", only_wakes))
    assert rules(waking) == {"threshold-out-of-reach"}


def test_a_tolerance_of_the_hpa_counts() -> None:
    behavior = (
        "  advanced:\n    horizontalPodAutoscalerConfig:\n      behavior:\n        scaleUp:\n"
        "          tolerance: {}\n  triggers:\n"
    )
    assert rules(changed(STAYS, ("  triggers:\n", behavior.format("0.5")))) == {
        "threshold-out-of-reach"
    }
    for tolerance in ("0.2", "100m", '"0.2"'):
        assert rules(changed(STAYS, ("  triggers:\n", behavior.format(tolerance)))) == set()


def test_pods_of_a_kind_that_names_them_otherwise_are_not_compared() -> None:
    kind = "  scaleTargetRef:\n    kind: {}\n"
    assert rules(changed(STAYS, ("  scaleTargetRef:\n", kind.format("Engine")))) == set()
    assert rules(changed(STAYS, ("  scaleTargetRef:\n", kind.format("StatefulSet")))) == {
        "other-workload"
    }
    pattern = changed(STAYS, ("workload: bert", "podPattern: engine-.*"))
    assert rules(pattern) == set()


@pytest.mark.parametrize(
    ("query", "aggregation"),
    [
        ("avg(DCGM_FI_DEV_GPU_UTIL)", "average"),
        ("max by (pod) (DCGM_FI_DEV_GPU_UTIL)", "max"),
        ("100 * avg without (gpu) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)", "average"),
        ("sum(DCGM_FI_DEV_GPU_UTIL) / count(DCGM_FI_DEV_GPU_UTIL)", "average"),
        ("sum(DCGM_FI_DEV_GPU_UTIL) / scalar(count(up))", "average"),
        ("quantile(0.9, DCGM_FI_DEV_GPU_UTIL)", "quantile"),
        ("avg(DCGM_FI_DEV_GPU_UTIL) * count(DCGM_FI_DEV_GPU_UTIL)", ""),
        ("avg(DCGM_FI_DEV_GPU_UTIL) * scalar(count(up))", ""),
        ("sum(DCGM_FI_DEV_GPU_UTIL)", ""),
        ("sum(avg by (pod) (DCGM_FI_DEV_GPU_UTIL))", ""),
        ("count(DCGM_FI_DEV_GPU_UTIL > 80)", ""),
        ("DCGM_FI_DEV_GPU_UTIL", ""),
        ('avg(http_requests{metric="DCGM_FI_DEV_GPU_UTIL_"})', ""),
        ("avg(rate(http_requests_total[1m]))", ""),
        ("", ""),
        ('DCGM_FI_DEV_GPU_UTIL or "avg(', ""),
    ],
)
def test_an_average_of_gpus_is_told_from_other_queries(query: str, aggregation: str) -> None:
    assert aggregation_of_gpus(query) == aggregation


@given(st.text("\"'`\\ax\n"))
def test_what_is_left_of_promql_has_no_quote_so_that_none_is_looked_at_twice(promql: str) -> None:
    assert set(without_strings(promql)).isdisjoint("\"'`")


@pytest.mark.parametrize(
    ("promql", "left"),
    [(r'a"\"b"c', "ac"), ("a'\"'c", "ac"), (r"a`\`c", "ac"), ('a"b', "a"), ('a"b\\', "a")],
)
def test_strings_end_where_they_do(promql: str, left: str) -> None:
    assert without_strings(promql) == left


def replacement(*changes: tuple[str, str]) -> str:
    (one,) = report(changed(RECIPE, *changes)).findings
    assert one.rule.name == "average-recipe"
    return one.replacement


def test_the_trigger_that_is_offered_is_clean_in_its_place() -> None:
    for changes in (
        (),
        (("  scaleTargetRef:\n", "  scaleTargetRef:\n    kind: StatefulSet\n"),),
        ((QUERY, "avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE)"), ('"70"', '"0.7"')),
        (('"70"', '"95"'),),
    ):
        source = changed(RECIPE, *changes)
        before, trigger, _ = source.partition("    - type: prometheus")
        (one,) = report(source).findings
        assert one.position == (before.count("\n") + 1, trigger.index("type") + 1)
        assert rules(f"{before}    - {one.replacement}\n") <= {"doubtful-value"}


def test_it_keeps_what_was_meant() -> None:
    assert 'threshold: "70"' in replacement()
    assert 'window: "5m"' in replacement()
    assert "window" not in replacement((QUERY, "avg(DCGM_FI_DEV_GPU_UTIL)"))
    ratio = replacement((QUERY, "avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE)"), ('"70"', '"0.65"'))
    assert 'threshold: "65"' in ratio


def test_nothing_is_offered_where_the_numbers_mean_something_else() -> None:
    assert replacement((QUERY, "avg(DCGM_FI_DEV_FB_USED)")) == ""
    assert replacement(('"70"', '"many"')) == ""


def test_nothing_is_offered_that_the_scaler_would_refuse() -> None:
    assert replacement(("[5m]", "[24h]")) == ""
    assert replacement(("    name: bert\n", "    name: Bert_\n")) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ((), "this average over the pods by the replicas once more, which gives 2 replicas at "),
        ((("avg(avg", "max(avg"),), "divides this max over"),
        ((('"70"', '"100"'),), "gives 1 replica at the most"),
        (
            ((QUERY, "avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE)"), ('"70"', '"0.4"')),
            "gives 3 replicas at the most",
        ),
        (
            ((QUERY, "avg(DCGM_FI_DEV_FB_USED)"), ('"70"', '"20000"')),
            "gives a number of replicas that does not depend on the load",
        ),
    ],
)
def test_what_the_recipe_gives_is_said_in_numbers_only_where_they_are_known(
    changes: tuple[tuple[str, str], ...], says: str
) -> None:
    (one,) = report(changed(RECIPE, *changes)).findings
    assert says in one.why


def test_one_replica_is_never_divided() -> None:
    assert rules(changed(RECIPE, ("maxReplicaCount: 8", "maxReplicaCount: 1"))) == set()


def test_the_recipe_with_metric_type_value_or_in_a_formula_is_right() -> None:
    prometheus = "    - type: prometheus  # finds average-recipe\n"
    value = changed(RECIPE, (prometheus, f"{prometheus}      metricType: Value\n"))
    assert rules(value) == set()
    formula = "  advanced: {scalingModifiers: {formula: a, target: '1'}}\n  triggers:\n"
    assert rules(changed(RECIPE, ("  triggers:\n", formula))) == set()


def test_a_short_window_needs_no_longer_stabilization() -> None:
    source = changed(text("short-stabilization", "fail"), ("  # finds short-stabilization", ""))
    assert rules(source) == {"short-stabilization"}
    assert rules(source + "        window: 15s\n") == set()
    assert rules(source + "        window: 16s\n") == {"short-stabilization"}
    assert rules(changed(source, ("minReplicaCount: 1", "minReplicaCount: 8"))) == set()
