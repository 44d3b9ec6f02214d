"""Texts for the tests of `check`: two in which nothing is found, and one that fails for each rule.

A comment `# finds RULE` says what is found in its line.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from keda_gpu_scaler.workbench.check import Report, check

_FINDS = re.compile(r"# finds ([a-z-]+)")

STAYS = """apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: bert
  namespace: inference
spec:
  scaleTargetRef:
    name: bert
  minReplicaCount: 1
  maxReplicaCount: 8
  triggers:
    - type: external
      metadata:
        scalerAddress: keda-gpu-scaler.keda.svc:6000
        workload: bert
        threshold: "70"
"""
"""A ScaledObject with one replica at the least, in which nothing is found."""
DEMAND = 'demandQuery: sum(gateway_requests_in_progress{service="bert"})'
ZERO_COUNT = "Count: 0\n  initialCooldownPeriod: 900"
SLEEPS = (
    STAYS.replace("scaleTargetRef:\n    name: bert", "scaleTargetRef: {name: bert}")
    .replace("Count: 1", ZERO_COUNT)
    .replace("external", "external-push")
    + f"        {DEMAND}\n"
)
"""One that a demand wakes from zero, in which nothing is found."""
JOB = """apiVersion: keda.sh/v1alpha1
kind: ScaledJob
metadata:
  name: training
  namespace: inference
spec:
  jobTargetRef: {}
  triggers:
    - type: external  # finds scaled-job
      metadata:
        scalerAddress: keda-gpu-scaler.keda.svc:6000
"""
RECIPE = (
    STAYS[: STAYS.index("    - type")]
    + """    - type: prometheus
      metadata:
        serverAddress: http://prometheus.monitoring.svc:9090
        query: avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod=~"bert-.*"}[5m]))
        threshold: "70"
"""
)
"""The recipe that this scaler replaces."""


class Place(NamedTuple):
    """A line, and the rule that finds something in it."""

    line: int
    rule: str


def marked(text: str) -> list[Place]:
    """Return what the comments of a text say is found in it."""
    return [
        Place(number, rule)
        for number, line in enumerate(text.splitlines(), 1)
        for rule in _FINDS.findall(line)
    ]


def found(text: str) -> list[Place]:
    """Return what is found in a text."""
    return [Place(one.position.line, one.rule.name) for one in report(text).findings]


def report(text: str) -> Report:
    """Return the report about one text."""
    return check({"one.yaml": text}, "default")


def changed(source: str, *changes: tuple[str, str]) -> str:
    """Return a text with some pieces replaced, each of which has to be there."""
    for before, after in changes:
        assert before in source, before
        source = source.replace(before, after, 1)
    return source


def spec(source: str, *lines: str) -> str:
    """Return a ScaledObject with more lines in its spec."""
    return changed(
        source, ("  triggers:\n", "".join(f"  {line}\n" for line in lines) + "  triggers:\n")
    )


def key(source: str, *lines: str) -> str:
    """Return a ScaledObject with more keys in its last trigger."""
    return source + "".join(f"        {line}\n" for line in lines)


def beside(source: str, line: str) -> str:
    """Return a ScaledObject with a line beside its trigger's metadata."""
    return changed(source, ("      metadata:\n", f"      {line}\n      metadata:\n"))


def target(*lines: str) -> str:
    """Return a ScaledObject with more keys in its scaleTargetRef."""
    added = "".join(f"    {line}\n" for line in lines)
    return changed(STAYS, ("  scaleTargetRef:\n", f"  scaleTargetRef:\n{added}"))


BY_DEMAND = STAYS.replace('        threshold: "70"\n', "")
"""One without what scales it."""
FORMULA = "advanced: {scalingModifiers: {formula: gpu, target: '70'}}"
FORMULATED = key(
    beside(
        spec(
            SLEEPS,
            "advanced:",
            "  scalingModifiers:",
            "    formula: gpu",
            "    target: '70'",
        ),
        "name: gpu",
    ),
    'forFormula: "true"',
)
"""One in which a formula has one trigger's number, and nothing is found."""
_SCALE_DOWN = (
    "advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleDown: "
    "{stabilizationWindowSeconds: 15}}}}"
)
FAILS: Mapping[str, str] = {
    "yaml-syntax": f"{STAYS}---\nkind: ConfigMap\n\tdata: a tab  # finds yaml-syntax\n---\n{STAYS}",
    "too-large": f"{STAYS}---\na: {'[' * 65}1{']' * 65}  # finds too-large\n",
    "duplicate-key": key(STAYS, 'threshold: "80"  # finds duplicate-key'),
    "wrong-type": changed(STAYS, ('"70"', "70  # finds wrong-type")),
    "unknown-field": changed(
        STAYS, ("minReplicaCount: 1", "minReplicas: 1  # finds unknown-field")
    ),
    "unknown-value": changed(STAYS, ("external\n", "externalpush  # finds unknown-value\n")),
    "refused-value": spec(STAYS, "pollingInterval: 0  # finds refused-value"),
    "other-type": changed(STAYS, ("external\n", "prometheus  # finds other-type\n")),
    "refused-by-keda": changed(STAYS, ("Count: 1", "Count: 12  # finds refused-by-keda")),
    "unknown-key": key(STAYS, 'tresholdd: "70"  # finds unknown-key'),
    "missing-key": changed(
        STAYS,
        ("      metadata:\n", "      metadata:  # finds missing-key\n"),
        ('        threshold: "70"\n', ""),
    ),
    "wrong-value": key(STAYS, 'window: "30"  # finds wrong-value'),
    "doubtful-value": changed(STAYS, ('"70"', '"85"  # finds doubtful-value')),
    "wrong-address": changed(STAYS, (".svc:6000", ".svc  # finds wrong-address")),
    "zero-for-unknown": key(
        STAYS, 'demandThreshold: "5"', "demandQuery: sum(x) or vector(0)  # finds zero-for-unknown"
    ),
    "wrong-target": target("kind: DaemonSet  # finds wrong-target"),
    "sum-with-value": beside(STAYS, "metricType: Value  # finds sum-with-value"),
    "average-without-value": key(STAYS, "aggregation: average  # finds average-without-value"),
    "average-recipe": changed(RECIPE, ("prometheus\n", "prometheus  # finds average-recipe\n")),
    "threshold-out-of-reach": key(
        changed(STAYS, ('"70"', '"1500"  # finds threshold-out-of-reach')), "gpuAggregation: sum"
    ),
    "fraction-for-percent": key(
        changed(STAYS, ('"70"', '"0.7"  # finds fraction-for-percent')),
        'activationThreshold: "0.1"',
    ),
    "percent-for-fraction": key(
        BY_DEMAND,
        "demandPreset: vllm-kv-cache",
        'demandThreshold: "80"  # finds percent-for-fraction',
    ),
    "demand-not-a-sum": key(
        BY_DEMAND,
        "demandQuery: avg(vllm:num_requests_running)  # finds demand-not-a-sum",
        'demandThreshold: "8"',
    ),
    "several-elements": key(
        BY_DEMAND,
        "demandQuery: vllm:num_requests_running  # finds several-elements",
        'demandThreshold: "8"',
    ),
    "queue-alone": key(
        BY_DEMAND,
        "demandQuery: sum(vllm:num_requests_waiting)  # finds queue-alone",
        'demandThreshold: "5"',
    ),
    "query-without-pods": key(
        STAYS,
        "query: avg(DCGM_FI_DEV_GPU_UTIL)  # finds query-without-pods",
        'activationThreshold: "2"',
    ),
    "other-namespace": key(
        STAYS, 'demandQuery: sum(requests{namespace="gateway"})  # finds other-namespace'
    ),
    "other-project": changed(
        STAYS,
        ("        workload: bert\n", "        targetGpuUtilization: '80'  # finds other-project\n"),
        ('        threshold: "70"\n', ""),
    ),
    "pod-pattern": changed(STAYS, ("workload: bert", "podPattern: bert-  # finds pod-pattern")),
    "wide-pod-pattern": changed(
        STAYS, ("workload: bert", "podPattern: bert-.*  # finds wide-pod-pattern")
    ),
    "idle-replicas": changed(
        STAYS, ("Count: 1", "Count: 2\n  idleReplicaCount: 1  # finds idle-replicas")
    ),
    "unused-fallback": spec(
        STAYS, "fallback: {failureThreshold: 3, replicas: 4}  # finds unused-fallback"
    ),
    "gpus-beside-requests": key(
        changed(STAYS, ('"70"', '"70"  # finds gpus-beside-requests')),
        "demandPreset: vllm-requests",
    ),
    "short-stabilization": spec(STAYS, f"{_SCALE_DOWN}  # finds short-stabilization"),
    "no-maximum": changed(
        STAYS, ("spec:\n", "spec:  # finds no-maximum\n"), ("  maxReplicaCount: 8\n", "")
    ),
    "other-workload": changed(STAYS, ("workload: bert", "workload: bart  # finds other-workload")),
    "missing-workload": changed(
        SLEEPS, ("workload: bert", "workload: bart  # finds missing-workload")
    ),
    "nothing-wakes": changed(
        STAYS, ("Count: 1", "Count: 0  # finds nothing-wakes\n  initialCooldownPeriod: 900")
    ),
    "push-without-signal": changed(
        SLEEPS, (f"        {DEMAND}\n", ""), ("push\n", "push  # finds push-without-signal\n")
    ),
    "never-idle": key(SLEEPS, 'activationThreshold: "1"  # finds never-idle'),
    "short-cooldown": spec(SLEEPS, "cooldownPeriod: 60  # finds short-cooldown"),
    "short-activation-window": key(
        SLEEPS, "activationWindow: 30s  # finds short-activation-window"
    ),
    "cached-metrics": beside(STAYS, "useCachedMetrics: true  # finds cached-metrics"),
    "fallback-to-zero": spec(
        SLEEPS, "fallback:", "  failureThreshold: 3", "  replicas: 0  # finds fallback-to-zero"
    ),
    "fallback-scales-in": key(
        spec(STAYS, "fallback: {failureThreshold: 3, replicas: 4}  # finds fallback-scales-in"),
        "onUnknown: error",
    ),
    "modifiers-with-demand": changed(
        spec(key(STAYS, DEMAND), FORMULA), (DEMAND, f"{DEMAND}  # finds modifiers-with-demand")
    ),
    "formula-without-key": changed(
        FORMULATED,
        ("metadata:\n        scaler", "metadata:  # finds formula-without-key\n        scaler"),
        ('        forFormula: "true"\n', ""),
        (f"        {DEMAND}\n", ""),
    )
    + "    - {type: redis, name: queue, metadata: {}}\n",
    "formula-inactive": changed(
        FORMULATED,
        ("target: '70'", "target: '70'\n      activationTarget: '70'  # finds formula-inactive"),
    ),
    "formula-metric-type": changed(
        FORMULATED,
        ("formula: gpu", "formula: 'gpu > 5 ? gpu * 2 : 0'"),
        ("target: '70'", "target: '70'\n      metricType: Value  # finds formula-metric-type"),
    ),
    "cached-number-for-formula": beside(
        FORMULATED, "useCachedMetrics: true  # finds cached-number-for-formula"
    ),
    "new-object": changed(SLEEPS, (ZERO_COUNT, "Count: 0  # finds new-object")),
    "scaled-job": JOB,
}
"""For each rule of texts, a text in which it finds something, and no other rule does."""
