"""Rules about how many replicas there will be, and about the way to zero and back. Pure."""

import math
import re
from collections.abc import Iterator

from keda_gpu_scaler.autoscaling.api_objects import quantity
from keda_gpu_scaler.decision import load
from keda_gpu_scaler.demand.presets import PRESETS
from keda_gpu_scaler.promql import tree
from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.spec.spec import (
    AVERAGED_WINDOW_SECONDS,
    Aggregation,
    GpuAggregation,
    Signal,
    TriggerSpec,
)
from keda_gpu_scaler.spec.workload import Kind, Workload
from keda_gpu_scaler.trigger.keys import FROM_ENV
from keda_gpu_scaler.trigger.metadata import IDLE_PERCENT
from keda_gpu_scaler.workbench.check import demands, formulas, readings
from keda_gpu_scaler.workbench.check.documents import shown
from keda_gpu_scaler.workbench.check.findings import Wrong
from keda_gpu_scaler.workbench.check.manifests import BEHAVIOR, MODIFIERS, Manifest, Trigger

_MOST_OF_A_GPU = {Signal.MEMORY_USED: 300 * 1024, Signal.POWER: 1500, Signal.TEMPERATURE: 110}
"""More than any GPU of 2026 has, draws or survives; MiB, watts and degrees."""
_MOST_GPUS = 16
"""Of one pod: the largest nodes have 16."""
_NAMED_ALIKE = frozenset(
    {
        Kind.DEPLOYMENT,
        Kind.STATEFUL_SET,
        Kind.REPLICA_SET,
        Kind.ROLLOUT,
        Kind.LEADER_WORKER_SET,
        Kind.MODEL_SERVING,
    }
)
"""Kinds of which one never owns another's pods under another name on purpose."""
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_ZERO = tree.Call("vector", (tree.Number(0),), tree.Type.VECTOR)
SCRAPE_SECONDS = 60
"""Prometheus' default; the interval of the source is not known here."""
_POLLING_SECONDS = 30
_COOLDOWN_SECONDS = 300
_STABILIZATION_SECONDS = 300
_WAKING = [preset.name for preset in PRESETS.values() if preset.wakes]
_SIGNALS = f"a demandQuery or a router's demandPreset ({', '.join(_WAKING)})"
_NEVER_WAKES = frozenset({"cpu", "memory"})
"""KEDA's own triggers on what pods use: with no pod they are inactive."""
_IDLE = {
    Signal.UTILIZATION: IDLE_PERCENT,
    Signal.MEMORY: 1.0,
    Signal.MEMORY_USED: 100.0,
    Signal.POWER: 15.0,
    Signal.TEMPERATURE: 25.0,
}
"""What a GPU shows that does nothing, and for the last four without a model; each at the least."""


def no_maximum(manifest: Manifest) -> Iterator[Wrong]:
    if manifest.ours and not manifest.node.has("spec", "maxReplicaCount"):
        why = "maxReplicaCount is missing: KEDA's default is 100 replicas, each with its GPUs"
        yield Wrong(manifest.node.place("spec"), why, "Write how many replicas you have GPUs for.")


def sum_with_value(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in _of_known_type(manifest):
        aggregation = trigger.aggregation
        if aggregation in (None, Aggregation.AVERAGE) or trigger.average:
            continue
        is_by_demand = trigger.spec is not None and trigger.spec.is_by_demand
        demand = demands.reading_of(trigger, "demandQuery")
        if is_by_demand and demand is not None and demand.unlike_sum:
            continue  # it is no sum, and another rule's
        is_sum = aggregation == Aggregation.SUM
        already = "their sum" if is_sum else "for all of them"
        why = (
            "with metricType Value the HPA multiplies the answer by the replicas, but it is "
            f"already {already}: 2 busy replicas become 6, and 5 become 33"
        )
        other = "" if is_by_demand else ", or write aggregation: average beside it"
        yield Wrong(trigger.metric_type_place, why, f"Remove metricType{other}.")


def average_without_value(manifest: Manifest) -> Iterator[Wrong]:
    beside = "into scalingModifiers" if manifest.formula else "beside the trigger's metadata"
    for trigger in _of_known_type(manifest):
        if trigger.aggregation == Aggregation.AVERAGE and trigger.average:
            why = (
                "the HPA divides the average by the replicas once more, so at a threshold of 70 it "
                "never goes above two replicas, and scales five busy ones in to two"
            )
            fix = f"Remove aggregation, or write metricType: Value {beside}."
            yield Wrong(trigger.place("aggregation"), why, fix)


def _of_known_type(manifest: Manifest) -> tuple[Trigger, ...]:
    """Return the triggers of which it is known how the HPA reads their number."""
    return manifest.ours if not manifest.formula or manifest.is_formula_of_ours else ()


def formula_metric_type(manifest: Manifest) -> Iterator[Wrong]:
    if not manifest.formula or manifest.is_formula_of_ours:
        return
    for trigger in manifest.ours:
        aggregation = trigger.aggregation
        if aggregation is not None and trigger.average is (aggregation == Aggregation.AVERAGE):
            kind = "AverageValue" if trigger.average else "Value"
            why = (
                f"scalingModifiers have metricType {kind}, which fits aggregation {aggregation} "
                "only if the formula turns this trigger's number from an average into a sum, or "
                "the reverse"
            )
            fix = "Use AverageValue, the default, with a sum, and Value with an average."
            yield Wrong(trigger.metric_type_place, why, fix)


def formula_without_key(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours if manifest.formula and manifest.goes_to_zero else ():
        if not trigger.for_formula:
            why = (
                "with a formula KEDA ignores whether this trigger is active, and while the load is "
                "unknown the formula has no value: KEDA then removes all replicas"
            )
            fix = 'Write forFormula: "true", or minReplicaCount: 1 without idleReplicaCount.'
            yield Wrong(trigger.place("forFormula"), why, fix)


def formula_inactive(manifest: Manifest) -> Iterator[Wrong]:
    formula, written = manifest.formula, manifest.node.text(*MODIFIERS, "activationTarget")
    target = float(written) if _NUMBER.fullmatch(written) else 0.0
    idle = dict.fromkeys(formulas.names(formula), 0.0)
    for trigger, spec in manifest.accepted if formula and manifest.goes_to_zero else ():
        if not spec.for_formula or trigger.name not in idle:
            continue
        value = formulas.value(formula, idle | {trigger.name: spec.threshold})
        if value is not None and round(value, 3) <= target:  # KEDA counts in thousandths
            why = (
                f"with one full replica of this trigger and nothing else the formula is {value:g}, "
                f"not above activationTarget {target:g}: KEDA takes that for inactive and removes "
                "busy replicas"
            )
            fix = "Write a smaller activationTarget, or none, and add the triggers' numbers."
            key = "activationTarget" if written else "formula"
            yield Wrong(manifest.node.place(*MODIFIERS, key), why, fix)


def cached_number_for_formula(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.ours if manifest.formula else ():
        if trigger.for_formula and trigger.node.text("useCachedMetrics").lower() == "true":
            why = (
                "with useCachedMetrics KEDA gives the HPA what polls get, and with forFormula that "
                "only tells whether the workload is active"
            )
            yield Wrong(trigger.node.place("useCachedMetrics"), why, "Remove useCachedMetrics.")


def new_object(manifest: Manifest) -> Iterator[Wrong]:
    written = manifest.node.integer("spec", "initialCooldownPeriod")
    if manifest.ours and manifest.goes_to_zero and not written:
        why = (
            "initialCooldownPeriod is missing or 0: KEDA may remove a pod that loads its model "
            "about a second after this object is created"
        )
        fix = "Write initialCooldownPeriod, longer than a start, such as cooldownPeriod."
        key = "initialCooldownPeriod" if written is not None else "minReplicaCount"
        yield Wrong(manifest.node.place("spec", key), why, fix)


def threshold_out_of_reach(manifest: Manifest) -> Iterator[Wrong]:
    # One replica needs no reach, and with a formula KEDA compares that with its own target.
    if manifest.maximum == 1 or manifest.formula:
        return
    own = quantity(manifest.node.text(*BEHAVIOR, "scaleUp", "tolerance"))
    tolerance = load.TOLERANCE if own is None else own
    for trigger, spec in manifest.accepted:
        # Beside a demand that scales, GPUs that never call for a replica let it decide alone.
        if spec.demand is not None and spec.demand.threshold is not None:
            continue
        usual = 100.0 if spec.signal.is_percentage else math.inf
        most = _MOST_OF_A_GPU.get(spec.signal, usual)
        if spec.gpu_aggregation is GpuAggregation.SUM:
            most *= _MOST_GPUS
        if most / spec.threshold <= 1 + tolerance:
            why = (
                f"threshold {spec.threshold:g}: a replica shows {most:g} {spec.signal.unit} at "
                f"most, and the HPA ignores deviations up to {tolerance:.0%}, so full replicas "
                "never need another"
            )
            fix = f"Write less than {most / (1 + tolerance):.0f}, such as {0.7 * most:.0f}."
            yield Wrong(trigger.place("threshold"), why, fix)


def zero_for_unknown(manifest: Manifest) -> Iterator[Wrong]:
    for trigger in manifest.triggers:
        keys = ["query"] if trigger.is_ours or trigger.type == "prometheus" else []
        if trigger.is_ours and "demandThreshold" in trigger.metadata:
            keys.append("demandQuery")
        for key in keys:
            operations = [
                node
                for node in readings.nodes(trigger.metadata.get(key, ""))
                if isinstance(node, tree.Operation) and node.sign == "or"
            ]
            if any(operation.right == _ZERO for operation in operations):
                why = (
                    "or vector(0) turns missing data into 0, also after an outage or a typo, and "
                    "the HPA then removes busy replicas"
                )
                error = "" if trigger.is_ours else ' and write ignoreNullValues: "false"'
                zero = 'or 0 * count(up{job="router"} == 1)'
                fix = f"Remove it{error}; if no series means 0, write {zero} instead."
                yield Wrong(trigger.place(key), why, fix)


def short_stabilization(manifest: Manifest) -> Iterator[Wrong]:
    scale_down = manifest.node.block(*BEHAVIOR, "scaleDown")
    stabilization = scale_down.integer("stabilizationWindowSeconds")
    if stabilization is None:
        stabilization = _STABILIZATION_SECONDS
    windows = [spec.window_seconds for _, spec in manifest.accepted if not spec.is_by_demand]
    never = manifest.minimum == manifest.maximum or scale_down.text("selectPolicy") == "Disabled"
    if not windows or never:
        return
    longest = max(AVERAGED_WINDOW_SECONDS if window is None else window for window in windows)
    if stabilization < longest:
        why = (
            f"stabilizationWindowSeconds {stabilization} is shorter than window "
            f"({durations.text(longest)}): the HPA removes replicas in each dip of the load, "
            "and starts them again after it"
        )
        fix = f"Remove it: {_STABILIZATION_SECONDS} s is Kubernetes' default."
        if longest > _STABILIZATION_SECONDS:
            fix = f"Write stabilizationWindowSeconds: {math.ceil(longest)} or more."
        yield Wrong(scale_down.place("stabilizationWindowSeconds"), why, fix)


def other_workload(manifest: Manifest) -> Iterator[Wrong]:
    for measured, wrong in _other_workloads(manifest):
        if not manifest.goes_to_zero or measured in manifest.workloads:
            yield wrong


def missing_workload(manifest: Manifest) -> Iterator[Wrong]:
    for measured, wrong in _other_workloads(manifest):
        if manifest.goes_to_zero and measured not in manifest.workloads:
            why = (
                f"{wrong.why}: the files have no {measured}, and if there is none, nothing is "
                "measured, and KEDA may remove busy pods"
            )
            yield wrong._replace(why=why)


def _other_workloads(manifest: Manifest) -> Iterator[tuple[Workload, Wrong]]:
    scaled = manifest.node.block("spec", "scaleTargetRef")
    name = scaled.text("name")
    try:
        kind = workload.parse_kind(scaled.text("kind") or "Deployment")
    except ValueError:
        return
    for trigger, spec in manifest.accepted:
        measured = spec.pods
        if not isinstance(measured, Workload) or manifest.namespace != measured.namespace:
            continue
        is_another = (kind, name) != (measured.kind, measured.name)
        if is_another and {kind, measured.kind} <= _NAMED_ALIKE:
            why = (
                f"the scaler measures the pods of {measured.kind}/{measured.name}, and KEDA scales "
                f"{kind}/{shown(name)}"
            )
            right = name if kind is Kind.DEPLOYMENT else f"{kind}/{name}"
            fix = f"Write workload: {shown(right)}."
            yield measured, Wrong(trigger.place("workload"), why, fix)


def nothing_wakes(manifest: Manifest) -> Iterator[Wrong]:
    if not _sleeps_for_good(manifest):
        return
    demanding = [trigger for trigger in manifest.ours if _demands(trigger)]
    if not demanding and any(trigger.type == "external-push" for trigger in manifest.ours):
        return  # it may be for alerts
    why = (
        "KEDA goes to zero, and nothing but an alert to the scaler's webhook can wake the "
        "workload: without pods there is no GPU load"
    )
    if demanding:
        why += f", and this {_demands(demanding[0])} shows no request then"
    elif len(manifest.triggers) > len(manifest.ours):
        why += ", and the other triggers read what the pods show"
    key, fix = "minReplicaCount", "Write minReplicaCount: 1, or"
    if manifest.minimum > 0:
        key, fix = "idleReplicaCount", "Remove idleReplicaCount, or write"
    other = f"type external-push with {_SIGNALS}. For alerts, external-push is enough."
    if manifest.formula:
        other = 'a demand into a trigger of the formula that has forFormula: "true".'
    yield Wrong(manifest.node.place("spec", key), why, f"{fix} {other}")


def push_without_signal(manifest: Manifest) -> Iterator[Wrong]:
    pushing = [trigger for trigger in manifest.ours if trigger.type == "external-push"]
    if pushing and _sleeps_for_good(manifest) and not any(map(_demands, manifest.ours)):
        why = (
            "only an alert to the scaler's webhook can wake this workload: its external-push "
            "trigger has no other activation"
        )
        fix = f"Add {_SIGNALS}, or an activationWorkload, unless alerts wake it."
        yield Wrong(pushing[0].node.place("type"), why, fix)


def _demands(trigger: Trigger) -> str:
    """Return the key of a trigger's demand; empty: it has none."""
    keys = {key.removesuffix(FROM_ENV) for key in trigger.metadata}
    return next((key for key in demands.DEMANDS if key in keys), "")


def _sleeps_for_good(manifest: Manifest) -> bool:
    return manifest.goes_to_zero and bool(manifest.ours) and not any(map(_wakes, manifest.triggers))


def _wakes(trigger: Trigger) -> bool:
    if not trigger.is_ours:
        query = trigger.metadata.get("query", "")
        return trigger.type not in _NEVER_WAKES and demands.wakes(trigger, query)
    spec = trigger.spec
    is_ignored = trigger.of.formula and not trigger.for_formula
    if is_ignored and trigger.type == "external" and spec and not spec.is_by_demand:
        return False  # with a formula KEDA ignores whether it is active
    if any(key.removesuffix(FROM_ENV) == "activationWorkload" for key in trigger.metadata):
        return True
    key = _demands(trigger)
    preset = PRESETS.get(trigger.metadata.get(key, "").strip())
    if key == "demandPreset":
        return preset is None or preset.wakes
    return bool(key) and demands.wakes(trigger, trigger.metadata.get(key, ""))


def never_idle(manifest: Manifest) -> Iterator[Wrong]:
    for trigger, spec in _sleeping(manifest):
        least = _IDLE.get(spec.signal, 0.0) if spec.query is None else 0.0
        if spec.activation_threshold < least:
            why = (
                f"activationThreshold {spec.activation_threshold:g} is below what an idle GPU "
                f"shows ({least:g} {spec.signal.unit} and more): the workload rarely goes to zero"
            )
            fix = "Write a number a little above what your GPUs show while they are idle."
            yield Wrong(trigger.place("activationThreshold"), why, fix)


def short_activation_window(manifest: Manifest) -> Iterator[Wrong]:
    polling = manifest.node.integer("spec", "pollingInterval") or _POLLING_SECONDS
    for trigger, spec in _sleeping(manifest):
        window, needed = spec.activation_window_seconds, polling + SCRAPE_SECONDS
        if window < needed:
            why = (
                f"activationWindow {durations.text(window)} is shorter than a poll and a scrape of "
                f"{SCRAPE_SECONDS} s together ({durations.text(needed)}): the scaler misses work "
                "between two polls"
            )
            fix = f"Write {durations.text(needed)} or more."
            yield Wrong(trigger.place("activationWindow"), why, fix)


def short_cooldown(manifest: Manifest) -> Iterator[Wrong]:
    cooldown = manifest.node.integer("spec", "cooldownPeriod")
    if cooldown is None:
        cooldown = _COOLDOWN_SECONDS
    windows = [spec.activation_window_seconds for _, spec in _sleeping(manifest)]
    needed = max(windows, default=-math.inf) + SCRAPE_SECONDS
    if cooldown < needed:
        why = (
            f"cooldownPeriod {cooldown} s is shorter than activationWindow and a scrape of "
            f"{SCRAPE_SECONDS} s ({durations.text(needed)}): the workload can go to zero "
            "between two requests"
        )
        fix = f"Write {math.ceil(needed)} or more, and more than the start of a pod takes."
        yield Wrong(manifest.node.place("spec", "cooldownPeriod"), why, fix)


def _sleeping(manifest: Manifest) -> Iterator[tuple[Trigger, TriggerSpec]]:
    for trigger, spec in manifest.accepted if manifest.goes_to_zero else ():
        # With a formula KEDA ignores whether a trigger is active, unless its number says so.
        if trigger.for_formula or not manifest.formula:
            yield trigger, spec
