"""How many replicas there will be: averages, sums, reach, and whose pods are measured."""

import pytest

from keda_gpu_scaler.check.replicas import averages_gpus
from tests.check.cases import STAYS, changed, found, report, text

TYPE = "    - type: external\n"
RECIPE = text("average-recipe", "fail")
QUERY = 'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}[5m]))  # finds average-recipe'


def rules(source: str) -> set[str]:
    return {place.rule for place in found(source)}


def test_utilization_is_no_type_for_an_external_metric() -> None:
    assert rules(changed(STAYS, (TYPE, f"{TYPE}      metricType: Utilization\n"))) == {"wrong-type"}


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
    ("query", "is_average"),
    [
        ("avg(DCGM_FI_DEV_GPU_UTIL)", True),
        ("max by (pod) (DCGM_FI_DEV_GPU_UTIL)", True),
        ("100 * avg without (gpu) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)", True),
        ("sum(DCGM_FI_DEV_GPU_UTIL) / count(DCGM_FI_DEV_GPU_UTIL)", True),
        ("sum(DCGM_FI_DEV_GPU_UTIL) / scalar(count(up))", True),
        ("quantile(0.9, DCGM_FI_DEV_GPU_UTIL)", True),
        ("sum(DCGM_FI_DEV_GPU_UTIL)", False),
        ("sum(avg by (pod) (DCGM_FI_DEV_GPU_UTIL))", False),
        ("count(DCGM_FI_DEV_GPU_UTIL > 80)", False),
        ("DCGM_FI_DEV_GPU_UTIL", False),
        ('avg(http_requests{metric="DCGM_FI_DEV_GPU_UTIL_"})', False),
        ("avg(rate(http_requests_total[1m]))", False),
        ("", False),
    ],
)
def test_an_average_of_gpus_is_told_from_other_queries(query: str, *, is_average: bool) -> None:
    assert averages_gpus(query) == is_average


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
        before, _, _ = source.partition("    - type: prometheus")
        lines = replacement(*changes).splitlines()
        assert rules(before + "".join(f"    {line}\n" for line in lines)) <= {"doubtful-value"}


def test_it_keeps_what_was_meant() -> None:
    assert 'threshold: "70"' in replacement()
    assert "window: 5m" in replacement()
    assert "window" not in replacement((QUERY, "avg(DCGM_FI_DEV_GPU_UTIL)"))
    ratio = replacement((QUERY, "avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE)"), ('"70"', '"0.65"'))
    assert 'threshold: "65"' in ratio


def test_nothing_is_offered_where_the_numbers_mean_something_else() -> None:
    assert replacement((QUERY, "avg(DCGM_FI_DEV_FB_USED)")) == ""
    assert replacement(('"70"', '"many"')) == ""


def test_the_recipe_with_metric_type_value_or_in_a_formula_is_right() -> None:
    prometheus = "    - type: prometheus\n"
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
