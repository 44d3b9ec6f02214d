"""Every rule of `check`, by its name. Pure data; the documentation's table is compared with it."""

from collections.abc import Mapping

from keda_gpu_scaler.check.findings import Rule, Severity

_ERROR, _WARNING, _NOTE = Severity

RULES: Mapping[str, Rule] = {
    name: Rule(name, severity, meaning)
    for name, severity, meaning in (
        # The text.
        ("yaml-syntax", _ERROR, "a document that is no YAML"),
        ("too-large", _ERROR, "a text beyond what is read: bytes, documents, depth, aliases"),
        ("duplicate-key", _ERROR, "a key that is there twice in one mapping"),
        ("unknown-rule", _WARNING, "an `ignore` comment that names no rule"),
        # The objects, as KEDA's definitions have them.
        ("unknown-field", _ERROR, "a field, or a kind, that KEDA does not know"),
        ("missing-field", _ERROR, "a field that KEDA requires and that is missing"),
        ("wrong-type", _ERROR, "a value of another type, or outside of what KEDA takes"),
        ("replica-bounds", _ERROR, "idle, min and max replica counts that contradict each other"),
        ("name-too-long", _ERROR, "a name with which the HPA's would be too long"),
        # The trigger, as the scaler reads it.
        ("unknown-key", _ERROR, "a key of the trigger that the scaler does not know"),
        ("missing-key", _ERROR, "a key that the trigger needs"),
        ("wrong-value", _ERROR, "a value of the trigger that the scaler refuses"),
        ("needs-setting", _NOTE, "what the scaler takes only with a setting of its operator"),
        ("doubtful-value", _WARNING, "what the scaler takes with a warning in its log"),
        # How many replicas.
        ("sum-with-value", _ERROR, "`aggregation: sum`, `max` or `p95` beside `metricType: Value`"),
        ("average-without-value", _ERROR, "`aggregation: average` without `metricType: Value`"),
        ("average-recipe", _ERROR, "KEDA's own trigger on an average of GPU metrics"),
        ("threshold-out-of-reach", _ERROR, "a threshold that no load exceeds"),
        ("short-stabilization", _WARNING, "a scale-in that waits for less than `window`"),
        ("no-maximum", _NOTE, "no `maxReplicaCount`, which means 100"),
        ("other-workload", _WARNING, "a `workload` that is not what the ScaledObject scales"),
        ("shared-workload", _ERROR, "a workload that two scale"),
        # To and from zero.
        ("nothing-wakes", _ERROR, "zero replicas and nothing that wakes the workload"),
        ("push-without-signal", _NOTE, "`external-push` that only an alert can wake"),
        ("never-idle", _WARNING, "an `activationThreshold` that an idle GPU is above"),
        ("short-cooldown", _WARNING, "a `cooldownPeriod` shorter than idleness takes to show"),
        ("short-activation-window", _WARNING, "an `activationWindow` between two looks"),
        # KEDA's other fields.
        ("polling-without-effect", _NOTE, "a `pollingInterval` that KEDA 2.21 does not use"),
        ("cached-metrics", _WARNING, "`useCachedMetrics` on a trigger of the scaler's"),
        ("unused-fallback", _WARNING, "a `fallback` for which KEDA counts no error"),
        ("fallback-to-zero", _ERROR, "a `fallback` of 0 replicas"),
        ("fallback-scales-in", _WARNING, "a `fallback` that removes busy replicas"),
        ("modifiers-with-demand", _ERROR, "`scalingModifiers` beside a demand in the trigger"),
        ("scaled-job", _ERROR, "a ScaledJob with a trigger of the scaler's"),
        # What a scale-in cuts off.
        ("short-grace", _WARNING, "a grace period shorter than the longest request"),
        ("no-pre-stop", _WARNING, "a container that serves, and is stopped without a pause"),
        # The way from KEDA to the scaler.
        ("cluster-ip-address", _WARNING, "a `scalerAddress` that leads to one replica only"),
        ("tls-in-metadata", _WARNING, "certificates in the metadata, where KEDA does not look"),
        ("half-client-certificate", _ERROR, "a certificate without its key, or the reverse"),
        ("unused-authentication", _WARNING, "parameters that KEDA's external trigger has not"),
        # What the source and the cluster show, with --live.
        ("no-answer", _ERROR, "a source that gives nothing"),
        ("no-series", _ERROR, "no series of the signal"),
        ("no-pod-labels", _ERROR, "series of GPUs that name no pod"),
        ("no-pods", _ERROR, "no GPU of the workload's pods, and whose there are"),
        ("late-samples", _WARNING, "samples that arrive late, or have ended"),
        ("slow-scrape", _WARNING, "samples that come less often than a window is long"),
        ("no-readiness", _WARNING, "nothing that says which pods there are and are Ready"),
        ("demand-unknown", _ERROR, "a demand that gives nothing, or an error"),
        ("gateway-forgets", _ERROR, "a gateway that answers 404 at zero replicas"),
    )
}
LIVE = frozenset(
    {
        "no-answer",
        "no-series",
        "no-pod-labels",
        "no-pods",
        "late-samples",
        "slow-scrape",
        "no-readiness",
        "demand-unknown",
        "gateway-forgets",
    }
)
"""Rules that need more than the text."""
