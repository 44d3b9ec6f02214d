"""Each rule finds what it is for, at the key that is at fault, and nothing beside it."""

import pytest

from keda_gpu_scaler.check import OF_SOURCES, RULES
from tests.check.cases import (
    FAILS,
    FORMULA,
    JOB,
    RECIPE,
    SLEEPS,
    STAYS,
    beside,
    changed,
    found,
    key,
    marked,
    report,
    spec,
)

ZERO = changed(STAYS, ("Count: 1", "Count: 0"))
QUERY = 'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}[5m]))'
FALLBACK = "fallback: {{failureThreshold: 3, replicas: {}}}"
HPA_FIELDS = "advanced: {{horizontalPodAutoscalerConfig: {{{}}}}}"
TOLERANCE = HPA_FIELDS.replace("{}", "behavior: {{scaleUp: {{tolerance: {}}}}}")
METADATA = "spec.triggers[0].metadata"
OTHER_SCALER = 'scalerAddress: scaler.other:6000\n        {}: "1"\n'


def rules_of(source: str) -> set[str]:
    return {place.rule for place in found(source)}


def other_trigger(kind: str, query: str = "none") -> str:
    return f"    - type: {kind}\n      metadata:\n        query: {query}\n"


def external(last_line: str) -> str:
    """Return a ScaledObject that asks another scaler."""
    return STAYS[: STAYS.index("scalerAddress")] + OTHER_SCALER.format(last_line)


VARIANTS = [
    *((source, "") for source in (STAYS, SLEEPS, f"{STAYS}---\nkind: ConfigMap\n---\n[a]\n")),
    # Which objects and triggers are looked at.
    (changed(JOB, ("type: external", "type: redis")), ""),
    (external("gpuThreshold"), ""),
    (changed(FAILS["unknown-key"], ("type: external", "type: cron")), ""),
    # A patch of Kustomize is a part of an object: only what is there is looked at.
    (ZERO[: ZERO.index("  triggers")], ""),
    (changed(ZERO, ("  scaleTargetRef:\n    name: bert\n", "")), ""),
    (changed(FAILS["unknown-key"], ("  scaleTargetRef:\n    name: bert\n", "")), "unknown-key"),
    # A wrong name or namespace is no mistake of the trigger.
    (changed(STAYS, ("name: bert\n", "name: Bert_\n")), ""),
    (changed(STAYS, ("namespace: inference", "namespace: In_")), ""),
    # What comes from the environment or from settings is not known.
    (changed(STAYS, ('threshold: "70"', "thresholdFromEnv: T")), ""),
    (key(STAYS, "windowFromEnv: W", 'maxAge: "5"'), "wrong-value"),
    (key(STAYS, "tresholdFromEnv: W"), "unknown-key"),
    (key(STAYS, "thresholdFromEnv: W"), "wrong-value"),
    (key(STAYS, "source: thanos"), ""),
    (changed(STAYS, ("        workload: bert\n", "")), "needs-setting"),
    (key(STAYS, "demandQuery: SELECT last(x) FROM y WHERE time > now() - 1m"), "needs-setting"),
    # How many replicas.
    *((key(STAYS, f"aggregation: {total}"), "") for total in ("max", "p95")),
    *(
        (key(FAILS["sum-with-value"], f"aggregation: {total}"), "sum-with-value")
        for total in ("max", "p95")
    ),
    (key(FAILS["sum-with-value"], "aggregation: average"), ""),
    (key(FAILS["sum-with-value"], "aggregationFromEnv: A"), ""),
    (spec(FAILS["sum-with-value"], FORMULA), ""),
    (spec(FAILS["average-without-value"], FORMULA), ""),
    (spec(RECIPE, FORMULA), ""),
    (beside(RECIPE, "metricType: Value"), ""),
    (changed(RECIPE, ("maxReplicaCount: 8", "maxReplicaCount: 1")), ""),
    *(
        (changed(RECIPE, (QUERY, query)), "average-recipe")
        for query in (
            "max by (pod) (DCGM_FI_DEV_GPU_UTIL)",
            "100 * avg without (gpu) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)",
            "quantile(0.9, DCGM_FI_DEV_GPU_UTIL)",
        )
    ),
    *(
        (changed(RECIPE, (QUERY, query)), "")
        for query in (
            "avg(DCGM_FI_DEV_GPU_UTIL) * scalar(count(up))",
            "sum(avg by (pod) (DCGM_FI_DEV_GPU_UTIL))",
            "count(DCGM_FI_DEV_GPU_UTIL > 80)",
            "DCGM_FI_DEV_GPU_UTIL",
            "avg(rate(http_requests_total[1m]))",
            '"avg("',
        )
    ),
    (changed(FAILS["threshold-out-of-reach"], ('"1500"', '"1400"')), ""),
    (changed(FAILS["threshold-out-of-reach"], ("Count: 8", "Count: 1")), ""),
    (spec(FAILS["threshold-out-of-reach"], FORMULA), ""),
    (
        changed(
            FAILS["threshold-out-of-reach"],
            ("        gpuA", "        demandPreset: vllm-requests\n        gpuA"),
        ),
        "",
    ),
    *(
        (
            key(
                changed(STAYS, ('"70"', f'"{threshold}"')),
                f"signal: {signal}",
                f"activationThreshold: '{idle}'",
            ),
            name,
        )
        for threshold, signal, idle, name in (
            ("120", "temperature", 50, "threshold-out-of-reach"),
            ("75", "temperature", 50, ""),
            ("1300", "power", 90, ""),
            ("9e6", "memory-used", 900, "threshold-out-of-reach"),
        )
    ),
    (spec(STAYS, TOLERANCE.format(0.5)), "threshold-out-of-reach"),
    (spec(STAYS, TOLERANCE.format("0.2")), ""),
    (spec(STAYS, TOLERANCE.format("100m")), ""),
    (key(FAILS["short-stabilization"], "window: 15s"), ""),
    (key(FAILS["short-stabilization"], "window: 16s"), "short-stabilization"),
    (changed(FAILS["short-stabilization"], ("minReplicaCount: 1", "minReplicaCount: 8")), ""),
    (changed(STAYS, ("workload: bert", "podPattern: engine-.*")), ""),
    (changed(STAYS, ("workload: bert", "workload: inferenceservice/bert")), ""),
    (changed(STAYS, ("    name: bert\n", "    name: bert\n    kind: Engine\n")), ""),
    (
        changed(STAYS, ("    name: bert\n", "    name: bert\n    kind: StatefulSet\n")),
        "other-workload",
    ),
    # To zero and back.
    (spec(changed(SLEEPS, ("Count: 0", "Count: 2")), "idleReplicaCount: 0"), ""),
    (spec(STAYS, "idleReplicaCount: 0"), "nothing-wakes"),
    *(
        (key(ZERO, line), "")
        for line in (
            "demandQuery: x",
            "activationWorkload: front",
            "demandQueryFromEnv: D",
            "demandPresetFromEnv: D",
            "demandPreset: llm-d-epp-queue\n        demandRouter: deployment/epp",
        )
    ),
    (key(ZERO, "demandPreset: vllm-queue"), "nothing-wakes"),
    (
        key(ZERO, "demandPreset: llm-d-epp-running", "demandRouter: deployment/epp"),
        "nothing-wakes",
    ),
    (ZERO + other_trigger("prometheus", "sum(requests)"), ""),
    (ZERO + other_trigger("cron"), ""),
    (ZERO + other_trigger("cpu"), "nothing-wakes"),
    (ZERO + other_trigger("memory"), "nothing-wakes"),
    (ZERO + other_trigger("prometheus", "sum(DCGM_FI_DEV_GPU_UTIL)"), "nothing-wakes"),
    (key(SLEEPS, "signal: sm-activity", 'activationThreshold: "1"'), ""),
    (key(SLEEPS, "query: x", 'activationThreshold: "0"'), ""),
    (key(STAYS, "activationWindow: 10s"), ""),
    (spec(STAYS, "cooldownPeriod: 10"), ""),
    # KEDA's other fields.
    (beside(STAYS, "useCachedMetrics: false"), ""),
    *(
        (changed(FAILS["modifiers-with-demand"], ("demandQuery: sum", f"{demand}: sum")), name)
        for demand, name in (
            ("demandQueryFromEnv", "modifiers-with-demand"),
            ("demandPresetFromEnv", "modifiers-with-demand"),
        )
    ),
    (key(spec(STAYS, FALLBACK.format(0)), "onUnknown: zero"), ""),
    (key(spec(STAYS, FALLBACK.format(0)), "onUnknown: error"), "fallback-to-zero"),
    (key(spec(STAYS, FALLBACK.format(0)), "onUnknownFromEnv: U"), "fallback-to-zero"),
    (
        spec(STAYS, "idleReplicaCount: 0", FALLBACK.format(0)) + other_trigger("cron"),
        "fallback-to-zero",
    ),
    (key(spec(STAYS, FALLBACK.format(8)), "onUnknown: error"), ""),
    (key(spec(STAYS, FALLBACK.format(4)), "onUnknown: hold"), ""),
    (
        changed(
            FAILS["fallback-scales-in"],
            ("replicas: 4", "replicas: 4, behavior: currentReplicasIfHigher"),
        ),
        "",
    ),
]
"""Texts, each with the only rule that finds something in it, if one does."""


def test_each_rule_has_a_text_that_fails() -> None:
    assert FAILS.keys() == RULES.keys() - {rule.name for rule in OF_SOURCES}


@pytest.mark.parametrize("rule", FAILS)
def test_a_failing_text_has_exactly_what_its_comments_say(rule: str) -> None:
    wanted = marked(FAILS[rule])
    assert rule in {place.rule for place in wanted}
    assert sorted(found(FAILS[rule])) == sorted(wanted)


@pytest.mark.parametrize(("source", "name"), VARIANTS)
def test_a_variant_has_what_its_rule_finds(source: str, name: str) -> None:
    assert rules_of(source) == ({name} if name else set())


@pytest.mark.parametrize(
    ("before", "after", "why", "fix"),
    [
        (
            '"70"',
            "70",
            f"{METADATA}.threshold is a number, and the API server accepts only a string here",
            'Put it in quotes: "70".',
        ),
        (
            '"70"',
            '"70"\n        window: [1m]',
            f"{METADATA}.window is a list, and the API server accepts only a string here",
            "Write a string.",
        ),
        (
            "threshold:",
            "treshold:",
            'The scaler refuses "treshold": unknown key',
            "Did you mean threshold?",
        ),
    ],
)
def test_a_finding_says_what_to_write(before: str, after: str, why: str, fix: str) -> None:
    findings = report(changed(STAYS, (before, after))).findings
    assert (why, fix) in {(one.why, one.fix) for one in findings}


def test_a_preset_that_cannot_wake_is_named_with_those_that_can() -> None:
    (one,) = report(key(ZERO, "demandPreset: vllm-queue")).findings
    assert "this demandPreset shows no request" in one.why
    assert "a router's demandPreset (llm-d-epp-queue, llm-d-epp-requests, " in one.fix


def test_the_objects_of_a_list_are_looked_at_one_by_one() -> None:
    items = "".join(
        "  - " + one.replace("\n", "\n    ").rstrip(" ") for one in (FAILS["unknown-key"], JOB)
    )
    for kind in ("List", "ScaledObjectList"):
        listed = report(f"apiVersion: v1\nkind: {kind}\nitems:\n{items}")
        assert len(listed.objects) == 2
        assert [one.rule.name for one in listed.findings] == ["unknown-key", "scaled-job"]


@pytest.mark.parametrize(
    "name", ["workload", "podPattern", "demandQuery", "demandPreset", "activationWorkload"]
)
def test_a_key_of_ours_makes_a_trigger_ours_wherever_it_asks(name: str) -> None:
    assert "missing-key" in rules_of(external(name))


def test_what_is_shown_of_a_name_is_short_and_in_ascii() -> None:
    source = changed(FAILS["unknown-key"], ("name: bert\n", f'name: "é\\n{"x" * 200}"\n'))
    subjects = {one.subject for one in report(source).findings}
    assert subjects == {f"ScaledObject inference/\\xe9\\n{'x' * 75}..."}


def test_a_comment_leaves_out_rules_of_its_line_or_of_the_next_that_is_none() -> None:
    wrong = changed(STAYS, ("threshold", "treshold"))
    comment = "# keda-gpu-scaler: ignore unknown-key , no-maximum: for a test"
    line = next(line for line in wrong.splitlines() if "treshold" in line)
    metadata = "      metadata:"
    assert rules_of(wrong) == {"missing-key", "unknown-key"}
    assert rules_of(changed(wrong, (line, f"{line} {comment}"))) == {"missing-key"}
    assert rules_of(changed(wrong, (line, f"{comment}\n\n# more\n{line}"))) == {"missing-key"}
    elsewhere = changed(wrong, (line, f"{comment}\n        window: 1m\n{line}"))
    assert rules_of(elsewhere) == rules_of(wrong)
    missing = comment.replace("unknown-key", "missing-key")
    assert rules_of(changed(wrong, (metadata, f"{metadata} {missing}"))) == {"unknown-key"}
