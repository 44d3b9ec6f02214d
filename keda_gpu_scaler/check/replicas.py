"""Rules about how many replicas there will be: the HPA's arithmetic with what is asked. Pure."""

import math
import re
from collections.abc import Iterator

from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.objects import Manifest, Trigger, shown
from keda_gpu_scaler.check.workloads import World, target
from keda_gpu_scaler.decision import load
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec import durations, kinds
from keda_gpu_scaler.spec.kinds import Kind
from keda_gpu_scaler.spec.spec import Aggregation, GpuAggregation, Signal, TriggerSpec
from keda_gpu_scaler.spec.workload import Workload

_MOST_OF_A_GPU = {Signal.MEMORY_USED: 300 * 1024, Signal.POWER: 1500, Signal.TEMPERATURE: 110}
"""More than any GPU of 2026 has, draws or survives; MiB, watts and degrees."""
_MOST_GPUS = 16
"""Of one pod, where its workload is not in the texts: the largest nodes have 16."""
_NAMED_ALIKE = frozenset(
    {
        Kind.DEPLOYMENT,
        Kind.STATEFUL_SET,
        Kind.REPLICA_SET,
        Kind.ROLLOUT,
        Kind.LEADER_WORKER_SET,
    }
)
"""Kinds of which one never owns another's pods under another name on purpose."""
_ADDRESS = "keda-gpu-scaler.keda.svc:6000"
_QUOTED = re.compile(
    r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|\'(?:[^\'\\]|\\.?)*+(?:\'|\Z)|`[^`]*+(?:`|\Z)', re.DOTALL
)
"""What is not closed goes on to the end, so that each quote that begins one matches: no text is
looked at twice."""
_WORD = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_AGGREGATION = re.compile(
    r"\b(avg|sum|max|min|count|quantile|topk|bottomk)\b\s*(?:by\b|without\b|\()"
)
_OVER_TIME = re.compile(r"\bavg_over_time\s*\(.{0,2000}\[([0-9]+[smh])[:\]]", re.DOTALL)
_QUOTIENT = re.compile(r"/\s*(?:scalar\s*\(\s*)?count\b")
_PRODUCT = re.compile(r"\*\s*(?:scalar\s*\(\s*)?count\b")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_SHORTEST_USUAL_WINDOW_SECONDS = 60.0
"""Where the exporter's number is an average itself; else it is 2 minutes."""
_QUERY_LIMIT = 20_000


def check(of: Manifest, world: World) -> Iterator[Finding]:
    """Yield what is wrong with the replicas that a ScaledObject will have."""
    if not of.node.has("spec", "maxReplicaCount") and of.ours:
        why = "maxReplicaCount is not given, and KEDA's default is 100 replicas, each with its GPUs"
        fix = "Write the most replicas that there are GPUs for."
        yield of.find("no-maximum", of.node.place("spec"), why, fix)
    for one in of.ours:
        yield from _metric_type(one)
        if one.spec is not None:
            yield from _reach(one, one.spec, world)
            yield from _other_workload(one, one.spec)
    yield from _stabilization(of)
    for one in of.triggers:
        yield from _recipe(one)


def _metric_type(one: Trigger) -> Iterator[Finding]:
    if one.node.text("metricType") == "Utilization":
        why = "metricType Utilization is for KEDA's cpu and memory triggers: KEDA refuses it here"
        fix = "Remove metricType: AverageValue is the default, and right for the sum."
        yield one.of.find("wrong-type", one.node.place("metricType"), why, fix)
        return
    # With a formula, KEDA uses the metricType of scalingModifiers, for what the formula gives.
    if one.of.formula or "aggregationFromEnv" in one.metadata:
        return
    aggregation = one.metadata.get("aggregation", "sum").strip()
    is_average = aggregation == Aggregation.AVERAGE
    if not is_average and not one.average:
        is_sum = aggregation == Aggregation.SUM
        already = "is their sum already" if is_sum else "counts all of them already"
        why = (
            "metricType Value multiplies the answer by the replicas, and the answer "
            f"{already}: 2 busy replicas become 6, and 5 become 33"
        )
        fix = "Remove metricType, or write aggregation: average beside it."
        yield one.of.find("sum-with-value", one.node.place("metricType"), why, fix)
    if is_average and one.average:
        why = (
            "the HPA divides the average by the replicas once more: at any load it asks for two "
            "replicas at most, and scales five busy ones down to two"
        )
        fix = "Remove aggregation, or write metricType: Value beside the trigger's metadata."
        yield one.of.find("average-without-value", one.place("aggregation"), why, fix)


def _reach(one: Trigger, spec: TriggerSpec, world: World) -> Iterator[Finding]:
    """Compare the threshold with the most that one replica can show."""
    most = 100.0 if spec.signal.is_percentage else _MOST_OF_A_GPU.get(spec.signal)
    # One replica needs no reach, with a formula KEDA compares that with its own target, and beside
    # a demand that scales, GPUs that never call for a replica are the way to let it decide alone.
    by_demand = spec.demand is not None and spec.demand.threshold is not None
    if most is None or one.of.maximum == 1 or one.of.formula or by_demand:
        return
    gpus = world.gpus(one.of)
    if spec.gpu_aggregation is GpuAggregation.SUM:
        most *= _MOST_GPUS if gpus is None else gpus
    tolerance = _tolerance(one.of)
    if most / spec.threshold <= 1 + tolerance:
        why = (
            f"threshold {spec.threshold:g}: a replica shows {most:g} {spec.signal.unit} at most, "
            f"and the HPA ignores deviations up to {tolerance:.0%}, so that full replicas never "
            "call for another"
        )
        fix = f"Write less than {most / (1 + tolerance):.0f}, such as {0.7 * most:.0f}."
        yield one.of.find("threshold-out-of-reach", one.place("threshold"), why, fix)


def _tolerance(of: Manifest) -> float:
    path = ("advanced", "horizontalPodAutoscalerConfig", "behavior", "scaleUp", "tolerance")
    text = of.node.text("spec", *path)
    return float(text) if _NUMBER.fullmatch(text) else load.TOLERANCE


def _stabilization(of: Manifest) -> Iterator[Finding]:
    """Compare the HPA's pause before a scale-in with the time that the load is a mean of."""
    path = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior", "scaleDown")
    given = of.node.integer(*path, "stabilizationWindowSeconds")
    specs = [one.spec for one in of.ours if one.spec is not None]
    if given is None or not specs or of.minimum == of.maximum:
        return
    longest = max(
        _SHORTEST_USUAL_WINDOW_SECONDS if one.window_seconds is None else one.window_seconds
        for one in specs
    )
    if given < longest:
        why = (
            f"stabilizationWindowSeconds {given} is shorter than window "
            f"({durations.text(longest)}): replicas go with each lull of the load, "
            "and come back, with a start, when it ends"
        )
        place = of.node.place(*path, "stabilizationWindowSeconds")
        fix = "Remove it: 300 s is Kubernetes' default."
        yield of.find("short-stabilization", place, why, fix)


def _other_workload(one: Trigger, spec: TriggerSpec) -> Iterator[Finding]:
    scaled = target(one.of)
    measured = spec.pods
    if not isinstance(measured, Workload) or scaled.namespace != measured.namespace:
        return
    try:
        kind = kinds.parse(scaled.kind)
    except ValueError:
        return
    is_another = (kind, scaled.name) != (measured.kind, measured.name)
    if is_another and {kind, measured.kind} <= _NAMED_ALIKE:
        name = shown(scaled.name)
        why = f"the pods of {spec.workload} are measured, and {kind}/{name} is scaled"
        right = name if kind is Kind.DEPLOYMENT else f"{kind}/{name}"
        yield one.of.find("other-workload", one.place("workload"), why, f"Write workload: {right}.")


def _recipe(one: Trigger) -> Iterator[Finding]:
    """Find the average of GPU metrics over pods that KEDA's own trigger divides once more."""
    query = one.metadata.get("query", "")
    if one.type != "prometheus" or not one.average or one.of.formula or one.of.maximum == 1:
        return
    aggregation = aggregation_of_gpus(query)
    if not aggregation:
        return
    percent = _percent(one, query)
    stuck = "a number of replicas that does not depend on the load"
    if percent is not None and percent > 1:
        most = math.ceil(100 / percent)
        stuck = f"{most} replica{'s' if most > 1 else ''} at the most, with every GPU at 100 %"
    why = (
        f"the HPA divides this {aggregation} over the pods by the replicas once more, which gives "
        f"{stuck}, and without data it scales in, as KEDA takes no data for 0"
    )
    fix = "Take the sum over exactly the workload's pods: this scaler's trigger in its place."
    instead = "" if percent is None else _rewritten(one, query, percent)
    yield one.of.find("average-recipe", one.node.position, why, fix, instead)


def aggregation_of_gpus(query: str) -> str:
    """Return how PromQL makes one number of GPU metrics of several pods, unless it adds them up.

    Returns:
        `average` or the name of an aggregation such as `max`; empty for sums and other queries.
    """
    if not shows_gpus(query):
        return ""
    text = without_strings(query[:_QUERY_LIMIT])
    outermost = _AGGREGATION.search(text)
    if outermost is None or _PRODUCT.search(text):
        return ""
    if outermost[1] in ("sum", "count"):
        return "average" if _QUOTIENT.search(text) else ""
    return "average" if outermost[1] == "avg" else outermost[1]


def without_strings(promql: str) -> str:
    """Return PromQL without its strings, in which words mean nothing; the work is linear."""
    return _QUOTED.sub("", promql)


def shows_gpus(query: str) -> bool:
    """Tell whether PromQL reads the metrics of a GPU exporter, which end with the last pod."""
    text = query[:_QUERY_LIMIT]
    return any(word in profiles.KNOWN_METRICS for word in _WORD.findall(text))


def _percent(one: Trigger, query: str) -> float | None:
    """Return the threshold in percent, where the query is of utilization and the number is one."""
    words = set(_WORD.findall(query[:_QUERY_LIMIT])) & profiles.KNOWN_METRICS
    threshold = one.metadata.get("threshold", "").strip()
    if not words <= profiles.UTILIZATION_METRICS or not _NUMBER.fullmatch(threshold):
        return None
    number = float(threshold)
    # The engine's own metrics are ratios.
    return number * 100 if number <= 1 else number


def _rewritten(one: Trigger, query: str, percent: float) -> str:
    """Return the scaler's trigger for the recipe; empty where the scaler would refuse it."""
    scaled = target(one.of)
    name = scaled.name if scaled.kind == "Deployment" else f"{scaled.kind.lower()}/{scaled.name}"
    window = _OVER_TIME.search(without_strings(query[:_QUERY_LIMIT]))
    metadata = {"workload": name, "threshold": f"{min(percent, 90):g}"}
    if window is not None:
        metadata["window"] = window[1]
    if one.refuses(metadata):
        return ""
    lines = ["type: external", "metadata:", f"  scalerAddress: {_ADDRESS}"]
    lines += [f'  {key}: "{value}"' for key, value in metadata.items()]
    return f"\n{' ' * (one.node.position.column - 1)}".join(lines)
