"""Each rule finds what it is for, at the key that is at fault, and nothing beside it."""

import pytest

from keda_gpu_scaler.workbench.check import OF_SOURCES, RULES, parse, read_objects
from testbed.triggers import access
from tests.workbench.check.cases import (
    DEMAND,
    FAILS,
    FORMULA,
    FORMULATED,
    JOB,
    RECIPE,
    SLEEPS,
    STAYS,
    ZERO_COUNT,
    beside,
    changed,
    found,
    key,
    marked,
    report,
    spec,
    target,
)

ZERO = changed(STAYS, ("Count: 1", ZERO_COUNT))
QUERY = 'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}[5m]))'
FALLBACK = "fallback: {{failureThreshold: 3, replicas: {}}}"
HPA_FIELDS = "advanced: {{horizontalPodAutoscalerConfig: {{{}}}}}"
TOLERANCE = HPA_FIELDS.replace("{}", "behavior: {{scaleUp: {{tolerance: {}}}}}")
OTHER_SCALER = 'scalerAddress: scaler.other:6000\n        {}: "1"\n'


def rules_of(source: str) -> set[str]:
    return {place.rule for place in found(source)}


def other_trigger(kind: str, query: str = "none") -> str:
    return f"    - type: {kind}\n      metadata:\n        query: {query}\n"


def recipe(query: str) -> str:
    """Return the usual recipe with another query."""
    return changed(RECIPE, (QUERY, query))


def level(signal: str, threshold: float, idle: float) -> str:
    """Return a ScaledObject of another signal."""
    given = changed(STAYS, ('"70"', f'"{threshold:g}"'))
    return key(given, f"signal: {signal}", f"activationThreshold: '{idle}'")


def external(last_line: str) -> str:
    """Return a ScaledObject that asks another scaler."""
    return STAYS[: STAYS.index("scalerAddress")] + OTHER_SCALER.format(last_line)


def address(text: str) -> str:
    """Return a ScaledObject that asks the scaler at another address."""
    return changed(STAYS, ("keda-gpu-scaler.keda.svc:6000", f'"{text}"'))


def zero(query: str) -> str:
    """Return a ScaledObject that KEDA's own trigger scales as well."""
    return STAYS + other_trigger("prometheus", f"|\n          {query}")


VALUE, AVERAGE = FAILS["sum-with-value"], FAILS["average-without-value"]
FAR, SHORT = FAILS["threshold-out-of-reach"], FAILS["short-stabilization"]
SHARE = FAILS["fraction-for-percent"]
LOWER, MODIFIED = FAILS["fallback-scales-in"], FAILS["modifiers-with-demand"]
TARGET = "    name: bert\n"
NAMED = beside(STAYS, "name: gpu")
OF_AVERAGE = "advanced: {scalingModifiers: {formula: gpu, target: '70', metricType: Value}}"
BY_DEMAND = key(changed(NAMED, ("  threshold:", "  demandThreshold:")), DEMAND)
WAKING = "demandPreset: vllm-router-rate", "demandRouter: deployment/router", "demandModel: llama"
CLEAN = [
    STAYS,
    SLEEPS,
    f"{STAYS}---\nkind: ConfigMap\n---\n[a]\n",
    # Which objects and triggers are looked at.
    changed(JOB, ("type: external", "type: redis")),
    external("gpuThreshold"),
    changed(
        FAILS["unknown-key"], ("type: external", "type: cron"), ("scalerA", "a"), ("work", "b")
    ),
    # A patch of Kustomize is a part of an object: only what is there is looked at.
    ZERO[: ZERO.index("  triggers")],
    key(changed(STAYS, (f"  scaleTargetRef:\n{TARGET}", "")), "window: null"),
    changed(ZERO, (f"  scaleTargetRef:\n{TARGET}", "")),
    # A wrong name or namespace is no mistake of the trigger.
    changed(STAYS, ("name: bert\n", "name: Bert_\n")),
    # What comes from the environment or from settings is not known.
    changed(STAYS, ("        workload: bert\n", "")),
    key(STAYS, "demandQuery: SELECT last(x) FROM y WHERE time > now() - 1m"),
    key(STAYS, "namespace: training"),
    changed(STAYS, ('threshold: "70"', "thresholdFromEnv: T")),
    key(STAYS, "source: thanos"),
    # How many replicas.
    key(STAYS, "aggregation: max"),
    key(VALUE, "aggregation: average"),
    key(VALUE, "aggregationFromEnv: A"),
    *(spec(source, FORMULA) for source in (RECIPE, FAR, SHARE)),
    # With a formula its own metricType counts, and that of a trigger is ignored.
    spec(beside(VALUE, "name: gpu"), FORMULA),
    spec(key(NAMED, "aggregation: average"), OF_AVERAGE),
    spec(key(NAMED, "aggregation: average"), OF_AVERAGE.replace("gpu", "'gpu > 1 ? gpu : 0'")),
    spec(key(NAMED, "aggregationFromEnv: A"), OF_AVERAGE),
    *(
        changed(FORMULATED, ("formula: gpu", f"formula: '{text}'"), ("'70'", "'1'"))
        for text in (
            *("max(gpu / 70, queue / 5)", "gpu / 70 - -queue", "gpu ?? 0", "gpu // 2", "1 +"),
            *("floor(gpu)", "max(gpu, k=1)", "gpu / 0", "other", 'gpu + "x"', "max()"),
            *("gpu * 1e999", "+" * 2000),
        )
    ),
    changed(FORMULATED, ("target: '70'", "target: '70'\n      activationTarget: '69.9'")),
    changed(FORMULATED, ("Count: 0", "Count: 1"), ("formula: gpu", "formula: gpu - 70")),
    beside(RECIPE, "metricType: Value"),
    changed(RECIPE, ("maxReplicaCount: 8", "maxReplicaCount: 1")),
    recipe("avg(DCGM_FI_DEV_GPU_UTIL) * scalar(count(up))"),
    recipe("sum(avg by (pod) (DCGM_FI_DEV_GPU_UTIL))"),
    recipe("avg(rate(http_requests_total[1m]))"),
    changed(FAR, ('"1500"', '"1400"')),
    changed(FAR, ("Count: 8", "Count: 1")),
    changed(FAR, ("        gpuA", "        demandPreset: vllm-requests\n        gpuA")),
    level("power", 1300, 90),
    spec(STAYS, TOLERANCE.format("'0.2'")),
    spec(STAYS, TOLERANCE.format("100m")),
    key(SHORT, "window: 15s"),
    key(STAYS, "window: 5m"),
    changed(SHORT, ("Seconds: 15", "Seconds: 15, selectPolicy: Disabled")),
    changed(SHORT, ("minReplicaCount: 1", "minReplicaCount: 8")),
    changed(STAYS, ("workload: bert", "podPattern: engine-.*")),
    changed(STAYS, ("workload: bert", "podPattern: bert-[a-z0-9]+-[a-z0-9]+")),
    changed(STAYS, ("workload: bert", "podPattern: (bert|bart)-.*")),
    changed(
        STAYS,
        ("workload: bert", "podPattern: bert-.*"),
        (TARGET, f"{TARGET}    kind: Model\n    apiVersion: example.com/v1\n"),
    ),
    changed(STAYS, ("workload: bert", "workload: inferenceservice/bert")),
    # What it refers to.
    target("apiVersion: example.com/v1", "kind: Workspace"),
    address("dns://10.0.0.10:53/keda-gpu-scaler.keda.svc:6000"),
    address("unix:///run/gpu-scaler.sock"),
    address("10.0.0.1:30600"),
    address("gpu.example.com:8080"),
    key(address("gpu-scaler.example.com"), 'enableTLS: "true"'),
    beside(address("gpu-scaler.example.com"), "authenticationRef: {name: tls}"),
    # Unknown is not zero, and a demand that only wakes does not scale.
    key(STAYS, "demandQuery: count(x) or vector(0)"),
    zero("sum(x) or vector(1)"),
    zero("sum(x) or 0 * count(up == 1)"),
    zero('label_replace(x, "y", "or vector(0)", "z", "")'),
    zero('sum(x) or "vector(0)'),
    # GPUs beside a demand.
    key(STAYS, "demandPreset: vllm-queue"),
    key(STAYS, "demandPreset: triton-queue"),
    key(STAYS, "demandPreset: knative-requests"),
    level("power", 0.9, 0.1),
    key(STAYS, *WAKING),
    changed(key(STAYS, "demandPreset: vllm-requests"), ('        threshold: "70"\n', "")),
    # To zero and back.
    spec(changed(SLEEPS, ("Count: 0", "Count: 2")), "idleReplicaCount: 0"),
    key(ZERO, "demandQuery: x"),
    key(ZERO, "activationWorkload: front"),
    key(ZERO, "demandQueryFromEnv: D"),
    key(ZERO, "demandPreset: llm-d-epp-queue", "demandRouter: deployment/epp"),
    ZERO + other_trigger("prometheus", "sum(requests)"),
    ZERO + other_trigger("cron"),
    key(SLEEPS, "signal: sm-activity", 'activationThreshold: "1"'),
    key(SLEEPS, "query: x", 'activationThreshold: "0"'),
    key(STAYS, "activationWindow: 10s"),
    spec(STAYS, "cooldownPeriod: 10"),
    key(FORMULATED, "demandActivationThreshold: '3'"),
    # KEDA's other fields.
    changed(MODIFIED, ("  threshold:", "  demandThreshold:")),
    beside(STAYS, "useCachedMetrics: false"),
    key(spec(STAYS, FALLBACK.format(0)), "onUnknown: zero"),
    key(spec(STAYS, FALLBACK.format(8)), "onUnknown: error"),
    changed(LOWER, ("replicas: 4", "replicas: 4, behavior: currentReplicasIfHigher")),
]
BART = ("workload: bert", "workload: bart")
DEPLOYMENT = """---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: bart
  namespace: {}
"""
NOT_CLEAN = [
    ("gpus-beside-requests", key(STAYS, *WAKING, 'demandThreshold: "9"')),
    ("unknown-key", changed(FAILS["unknown-key"], (f"  scaleTargetRef:\n{TARGET}", ""))),
    ("unknown-key", key(STAYS, "tresholdFromEnv: W")),
    ("wrong-value", key(STAYS, "windowFromEnv: W", 'maxAge: "5"')),
    ("wrong-value", key(STAYS, "thresholdFromEnv: W")),
    ("sum-with-value", key(VALUE, "aggregation: max")),
    ("average-recipe", recipe("max by (pod) (DCGM_FI_DEV_GPU_UTIL)")),
    ("average-recipe", recipe("100 * avg without (gpu) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)")),
    ("threshold-out-of-reach", level("temperature", 120, 50)),
    ("threshold-out-of-reach", level("memory-used", 9e6, 900)),
    ("threshold-out-of-reach", spec(STAYS, TOLERANCE.format("'0.5'"))),
    ("threshold-out-of-reach", spec(STAYS, TOLERANCE.format("500m"))),
    ("short-stabilization", key(SHORT, "window: 16s")),
    ("short-stabilization", key(STAYS, "window: 301s")),
    ("other-workload", changed(STAYS, (TARGET, f"{TARGET}    kind: StatefulSet\n"))),
    ("other-workload", changed(SLEEPS, BART) + DEPLOYMENT.format("inference")),
    ("missing-workload", changed(SLEEPS, BART) + DEPLOYMENT.format("other")),
    (
        "missing-workload",
        changed(SLEEPS, BART, ("inference", "a")) + "---\nkind: Job\nmetadata:\n  name: A b\n",
    ),
    (
        "missing-workload",
        spec(changed(SLEEPS, BART, ("Count: 0", "Count: 1")), "idleReplicaCount: 0"),
    ),
    ("nothing-wakes", key(ZERO, "demandPreset: vllm-queue")),
    ("nothing-wakes", spec(key(ZERO, 'forFormula: "true"'), FORMULA)),
    ("formula-without-key", spec(changed(BY_DEMAND, ("Count: 1", ZERO_COUNT)), FORMULA)),
    (
        "formula-without-key",
        spec(changed(BY_DEMAND, ("Count: 1", ZERO_COUNT)), FORMULA, "idleReplicaCount: 0").replace(
            "minReplicaCount: 0", "minReplicaCount: 2"
        ),
    ),
    ("formula-inactive", changed(FORMULATED, ("formula: gpu", "formula: gpu * queue"))),
    ("formula-inactive", changed(FORMULATED, ("formula: gpu", "formula: min(gpu, queue)"))),
    ("short-cooldown", spec(FORMULATED, "cooldownPeriod: 9")),
    ("never-idle", key(FORMULATED, 'activationThreshold: "1"')),
    ("average-without-value", spec(key(NAMED, "aggregation: average"), FORMULA)),
    (
        "average-without-value",
        spec(key(NAMED, "aggregation: average"), FORMULA.replace("gpu", "gpu / 70")),
    ),
    (
        "average-without-value",
        spec(key(beside(NAMED, "metricType: Value"), "aggregation: average"), FORMULA),
    ),
    ("sum-with-value", spec(NAMED, OF_AVERAGE)),
    (
        "sum-with-value",
        spec(key(NAMED, "aggregation: p95"), OF_AVERAGE.replace("gpu", "'max(gpu, 7)'")),
    ),
    (
        "formula-metric-type",
        spec(key(NAMED, "aggregation: average"), FORMULA.replace("gpu", "gpu + queue")),
    ),
    ("new-object", changed(SLEEPS, ("Period: 900", "Period: 0"))),
    ("new-object", changed(SLEEPS, (ZERO_COUNT, "Count: 3\n  idleReplicaCount: 0"))),
    (
        "nothing-wakes",
        key(ZERO, "gpuAggregation: sum", "demandPreset: llm-d-epp-running", "demandRouter: epp"),
    ),
    ("nothing-wakes", ZERO + other_trigger("cpu")),
    ("nothing-wakes", ZERO + other_trigger("prometheus", "sum(DCGM_FI_DEV_GPU_UTIL)")),
    ("modifiers-with-demand", changed(MODIFIED, ("demandQuery: sum", "demandQueryFromEnv: sum"))),
    ("unused-fallback", key(spec(STAYS, FALLBACK.format(4)), "onUnknown: hold")),
    ("fallback-to-zero", key(spec(STAYS, FALLBACK.format(0)), "onUnknown: error")),
    ("fallback-to-zero", key(spec(STAYS, FALLBACK.format(0)), "onUnknownFromEnv: U")),
    (
        "fallback-to-zero",
        spec(STAYS, "idleReplicaCount: 0", "initialCooldownPeriod: 9", FALLBACK.format(0))
        + other_trigger("cron"),
    ),
]
"""Each with the only rule that finds something in it."""


def test_each_rule_has_a_text_that_fails() -> None:
    assert FAILS.keys() == RULES.keys() - {rule.name for rule in OF_SOURCES}


@pytest.mark.parametrize("rule", FAILS)
def test_a_failing_text_has_exactly_what_its_comments_say(rule: str) -> None:
    wanted = marked(FAILS[rule])
    assert rule in {place.rule for place in wanted}
    assert sorted(found(FAILS[rule])) == sorted(wanted)


@pytest.mark.parametrize(("rule", "source"), [*(("", source) for source in CLEAN), *NOT_CLEAN])
def test_a_variant_has_what_its_rule_finds(rule: str, source: str) -> None:
    assert rules_of(source) == ({rule} if rule else set())


BASE = changed(
    target("apiVersion: apps/v1", "kind: Deployment"),
    ("workload: bert", "podPattern: bert-[a-z0-9]+-[a-z0-9]+"),
)
ADDRESS = "keda-gpu-scaler.keda.svc:6000"
KIND = "apiVersion: apps/v1\n    kind: Deployment"
PODS = "podPattern: bert-[a-z0-9]+-[a-z0-9]+"
PERCENT = '"70"'
MOST = "maxReplicaCount: 8"
MISTAKES = [
    ("wrong-type", PERCENT, "70", 'only a string here. Put it in quotes: "70".'),
    (
        "wrong-type",
        PERCENT,
        f"{PERCENT}\n        window: [1m]",
        "a list, and the API server accepts",
    ),
    (
        "wrong-type",
        PERCENT,
        "7e1",
        "is a number (7e1), and the API server accepts only a string here. Put",
    ),
    ("wrong-type", PERCENT, f"{PERCENT}\n        enableTLS: y", 'Put it in quotes: "y".'),
    ("wrong-type", PERCENT, f"{PERCENT}\n        window:", "refuses it in a server-side apply"),
    ("wrong-address", ADDRESS, f"http://{ADDRESS}", "with http://, which is not a scheme of gRPC"),
    ("wrong-address", ADDRESS, "keda-gpu-scaler.keda.svc", "gRPC then uses 443"),
    ("wrong-address", ADDRESS, "dns:///keda-gpu-scaler.keda.svc", f"its gRPC port: {ADDRESS}."),
    ("wrong-address", ADDRESS, "keda-gpu-scaler.keda.svc:8080", "the scaler's HTTP port"),
    ("wrong-address", ADDRESS, "keda-gpu-scaler-http.keda:6000", "the scaler's HTTP port"),
    ("wrong-target", KIND, "kind: InferenceService", "Scale its Deployment, bert-predictor."),
    ("wrong-target", KIND, "apiVersion: kaito.sh/v1\n    kind: Workspace", "Scale an Inference"),
    ("wrong-target", KIND, "apiVersion: apps/v1\n    kind: DynamoGraphDeployment", "has no scale"),
    ("wrong-target", KIND, "kind: DaemonSet", "one pod on each node"),
    ("wrong-target", KIND, "kind: NIMService", "Scale its Deployment bert."),
    ("wrong-target", KIND, "kind: Deploymnet", "Did you mean Deployment?"),
    ("wrong-target", KIND, "apiVersion: apps/v1\n    kind: deployment", "Did you mean Deployment?"),
    ("wrong-target", KIND, "kind: LeaderWorkerSet", "Write LeaderWorkerSet's apiVersion."),
    ("wrong-target", KIND, "apiVersion: batch/v1\n    kind: Job", "Scale a Deployment"),
    (
        "nothing-wakes",
        f"  {MOST}",
        f"  initialCooldownPeriod: 9\n  {MOST}\n  idleReplicaCount: 0",
        "there is no GPU load. Remove idleReplic",
    ),
    (
        "fraction-for-percent",
        f"threshold: {PERCENT}",
        "activationThreshold: '0.1'\n        threshold: '0.7'",
        "at 0.7 a GPU at 100 % needs 143 replicas. Write a percentage, such as 70.",
    ),
    (
        "gpus-beside-requests",
        f"threshold: {PERCENT}",
        "demandPreset: vllm-requests\n        threshold: '70'",
        "with threshold 70 they need more replicas than vllm-requests does",
    ),
    ("wrong-value", PERCENT, "\u201c70\u201d", "Write plain quotes and spaces: curly"),
    ("unknown-key", PERCENT, f"{PERCENT}\n        window\xa0: 1m", "Write plain quotes"),
    ("wrong-address", ADDRESS, f"\u201c{ADDRESS}\u201d", "a curly quote or a no-break space"),
    ("yaml-syntax", PERCENT, f"{PERCENT}\n        window:\xa01m\n", "there is a no-break space in"),
    ("pod-pattern", PODS, "podPattern: bert-*", "neither a prefix nor a glob: no pod has"),
    (
        "pod-pattern",
        PODS,
        "podPattern: bert-??",
        "Write workload: bert, or a pattern such as bert-[",
    ),
    ("pod-pattern", PODS, "podPattern: bert", "the whole name"),
    ("pod-pattern", PODS, "podPattern: ^bert-", "the whole name"),
    (
        "wide-pod-pattern",
        PODS,
        "podPattern: .*bert.*",
        "also matches the pods of a Deployment bert-c",
    ),
    *(
        ("zero-for-unknown", PERCENT, f"{PERCENT}\n{more} {query}", said)
        for query in (
            "sum by (namespace, pod) (x) or vector(0)",
            '"(sum by (namespace, pod) (x) / 2) OR ( vector (0.0) )"',
        )
        for more, said in (
            ("        demandThreshold: '5'\n        demandQuery:", "Remove it; if no"),
            ("        activationThreshold: '1'\n        query:", "turns missing data into 0"),
            (
                "    - type: prometheus\n      metadata:\n        query:",
                'Remove it and write ignoreNullValues: "false"; if no series means 0',
            ),
        )
    ),
]


@pytest.mark.parametrize(("rule", "before", "after", "said"), MISTAKES)
def test_a_mistake_is_named_in_its_line_with_what_to_write(
    rule: str, before: str, after: str, said: str
) -> None:
    source = changed(BASE, (before, f"{after}  # finds {rule}"))
    (one,) = report(source).findings
    assert [(one.position.line, one.rule.name)] == marked(source)
    assert said in f"{one.why}. {one.fix}"


def test_a_formula_that_nothing_wakes_is_told_the_key_with_which_a_demand_does() -> None:
    source = spec(key(ZERO, 'forFormula: "true"'), FORMULA)
    (one,) = report(source).findings
    assert one.fix.endswith('a demand into a trigger of the formula that has forFormula: "true".')
    assert rules_of(key(source, DEMAND)) == set()


def test_a_preset_that_cannot_wake_is_named_with_those_that_can() -> None:
    (one,) = report(key(ZERO, "demandPreset: vllm-queue")).findings
    assert "this demandPreset shows no request" in one.why
    assert "a router's demandPreset (llm-d-epp-queue, llm-d-epp-requests, " in one.fix


@pytest.mark.parametrize(
    ("window", "fix"),
    [
        ("5m", "Remove it: 300 s is Kubernetes' default."),
        ("10m", "Write stabilizationWindowSeconds: 600 or more."),
    ],
)
def test_a_scale_in_that_is_too_early_gets_a_fix_that_is_enough(window: str, fix: str) -> None:
    (one,) = report(key(SHORT, f"window: {window}")).findings
    assert one.fix == fix


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
    assert not {"missing-key", "wrong-value"}.isdisjoint(rules_of(external(name)))


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


def test_the_triggers_of_a_formula_are_decided_as_such_also_without_the_key() -> None:
    """None of them says by itself how many replicas the HPA asks for."""
    for source, is_formula in ((STAYS, False), (spec(NAMED, FORMULA), True)):
        (manifest,), _ = read_objects({"one.yaml": source}, "default")
        (parsed,), _ = parse(manifest.ours, access())
        assert parsed.spec.for_formula is is_formula


@pytest.mark.parametrize(
    "keys",
    [
        ['profile: "vllm-inference"'],
        ['targetMemoryUtilization: "80"', 'activationThreshold: "5"'],
        ['gpuIndex: "0"', "metricType: gpu_utilization", 'targetValue: "85"', "aggregation: max"],
    ],
)
def test_a_trigger_of_the_other_project_has_one_finding_with_the_page_that_moves_it(
    keys: list[str],
) -> None:
    asleep = changed(STAYS, ("Count: 1", "Count: 0"), ("  maxReplicaCount: 8\n", ""))
    (one,) = report(key(asleep[: asleep.index("        workload")], *keys)).findings
    assert (one.rule.name, one.position.line) == ("other-project", 14)
    assert one.why.startswith(keys[0].partition(":")[0])
    assert "docs/migrate/exporters.md#pmadykeda-gpu-scaler" in one.fix


@pytest.mark.parametrize(
    ("rule", "line"),
    [("wrong-value", 'profile: "vllm-inference"'), ("unknown-key", "gpuIndex: '0'")],
)
def test_a_key_of_the_other_project_beside_this_ones_is_a_mistake_like_any(
    rule: str, line: str
) -> None:
    assert rules_of(key(STAYS, line)) == {rule}
