"""Every rule of `check`, in one table. The documentation's table is compared with it."""

from collections.abc import Mapping

from keda_gpu_scaler.check import fields, replicas, zero
from keda_gpu_scaler.check.findings import Check, Rule, Severity

_ERROR, _WARNING, _NOTE = Severity


def _rule(severity: Severity, check: Check, meaning: str) -> Rule:
    """Return the rule of a function, which has its name."""
    return Rule(check.__name__.replace("_", "-"), severity, meaning, check)


OF_TEXTS = (
    Rule("yaml-syntax", _ERROR, "a document that is not YAML"),
    Rule("too-large", _ERROR, "a text beyond a limit: bytes, values, depth"),
    Rule("duplicate-key", _ERROR, "a key that occurs twice in one mapping"),
)
OF_TRIGGERS = (
    _rule(_ERROR, fields.wrong_type, "a value of a trigger that is no string"),
    # The scaler's own parser finds these.
    Rule("unknown-key", _ERROR, "a key of the trigger that the scaler does not know"),
    Rule("missing-key", _ERROR, "a key that the trigger needs"),
    Rule("wrong-value", _ERROR, "a value of the trigger that the scaler refuses"),
    _rule(_NOTE, fields.needs_setting, "what the scaler accepts only with a setting"),
    _rule(_WARNING, fields.doubtful_value, "what the scaler accepts with a warning in its log"),
)
OF_SCALING = (
    # How many replicas.
    _rule(_ERROR, replicas.sum_with_value, "a sum, `max` or `p95` beside `metricType: Value`"),
    _rule(_ERROR, replicas.average_without_value, "an average without `metricType: Value`"),
    _rule(_ERROR, replicas.average_recipe, "KEDA's own trigger on an average of GPU metrics"),
    _rule(_ERROR, replicas.threshold_out_of_reach, "a threshold that no load exceeds"),
    _rule(_WARNING, replicas.short_stabilization, "a scale-in that waits for less than `window`"),
    _rule(_NOTE, replicas.no_maximum, "no `maxReplicaCount`, which means 100"),
    _rule(_WARNING, replicas.other_workload, "a `workload` that the ScaledObject does not scale"),
    # To and from zero.
    _rule(_ERROR, zero.nothing_wakes, "zero replicas and nothing that wakes the workload"),
    _rule(_NOTE, zero.push_without_signal, "`external-push` that only an alert can wake"),
    _rule(_WARNING, zero.never_idle, "an `activationThreshold` that an idle GPU is above"),
    _rule(_WARNING, zero.short_cooldown, "a `cooldownPeriod` too short for idleness to show"),
    _rule(_WARNING, zero.short_activation_window, "an `activationWindow` between two looks"),
    # KEDA's other fields.
    _rule(_WARNING, fields.cached_metrics, "`useCachedMetrics` beside the scaler's trigger"),
    _rule(_ERROR, fields.fallback_to_zero, "a `fallback` of 0 replicas"),
    _rule(_WARNING, fields.fallback_scales_in, "a `fallback` that removes busy replicas"),
    _rule(_ERROR, fields.modifiers_with_demand, "`scalingModifiers` beside a demand"),
)
OF_JOBS = (_rule(_ERROR, fields.scaled_job, "a ScaledJob with the scaler's trigger"),)
"""Of ScaledJobs; the others are of ScaledObjects."""
OF_SOURCES = (
    Rule("no-answer", _ERROR, "a source that does not answer"),
    Rule("no-series", _ERROR, "no series of the signal"),
    Rule("no-pod-labels", _ERROR, "series of GPUs that name no pod"),
    Rule("no-pods", _ERROR, "no GPU of the workload's pods, but others"),
    Rule("late-samples", _WARNING, "samples that arrive late, or have ended"),
    Rule("slow-scrape", _WARNING, "samples that come less often than a window is long"),
    Rule("no-readiness", _WARNING, "no evidence which pods exist and are Ready"),
    Rule("demand-unknown", _ERROR, "a demand query without a number"),
)
"""What the source and the cluster show, with --live."""
RULES: Mapping[str, Rule] = {
    rule.name: rule for rule in (*OF_TEXTS, *OF_TRIGGERS, *OF_SCALING, *OF_JOBS, *OF_SOURCES)
}
