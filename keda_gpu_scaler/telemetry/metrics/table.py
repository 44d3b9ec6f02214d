"""The table of the scaler's own metrics; what is not in it is not exposed.

Names follow Prometheus' conventions: base units, `_total` for counters. Labels are bounded: sources
and methods are few, triggers end when no call asks for them.
"""

from typing import NamedTuple


class Metric(NamedTuple):
    """One metric as people read about it."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    labels: tuple[str, ...]
    meaning: str


_TRIGGER = ("namespace", "scaled_object", "metric")
_SNAPSHOT = ("source", "signal", "profile")

BUILD_INFO = Metric(
    "keda_gpu_scaler_build_info", "gauge", ("version",), "1, for the version that runs."
)
RPCS = Metric(
    "keda_gpu_scaler_rpcs_total", "counter", ("method", "code"), "Calls from KEDA that ended."
)
RPC_SECONDS = Metric(
    "keda_gpu_scaler_rpc_duration_seconds", "histogram", ("method",), "How long calls took."
)
QUERIES = Metric(
    "keda_gpu_scaler_source_queries_total",
    "counter",
    ("source", "query", "outcome"),
    "Requests to a source, by whether it answered: ok, or error, also where its answer took too "
    "long and was given up.",
)
QUERY_SECONDS = Metric(
    "keda_gpu_scaler_source_query_duration_seconds",
    "histogram",
    ("source", "query"),
    "How long requests to a source took.",
)
SOURCE_UP = Metric(
    "keda_gpu_scaler_source_up", "gauge", ("source",), "1 while a source answers, 0 while not."
)
SOURCE_LAG = Metric(
    "keda_gpu_scaler_source_lag_seconds",
    "gauge",
    ("source",),
    "How late all samples of a source arrive, where that is more than a minute; absent where they "
    "never were.",
)
EVIDENCE = Metric(
    "keda_gpu_scaler_source_evidence",
    "gauge",
    ("source", "evidence"),
    "1 for what says which pods there are, 0 for what does not: kubernetes, kube-state-metrics or "
    "exporters.",
)
WATCH_UP = Metric(
    "keda_gpu_scaler_kubernetes_watch_up",
    "gauge",
    ("resource",),
    "1 while a resource of the Kubernetes API can be followed, 0 while not.",
)
SNAPSHOT_AGE = Metric(
    "keda_gpu_scaler_snapshot_age_seconds",
    "gauge",
    _SNAPSHOT,
    "Age of the data that triggers are decided from.",
)
SNAPSHOT_PODS = Metric(
    "keda_gpu_scaler_snapshot_pods", "gauge", _SNAPSHOT, "Pods with a GPU in the newest snapshot."
)
REFUSED_SAMPLES = Metric(
    "keda_gpu_scaler_snapshot_refused_samples",
    "gauge",
    _SNAPSHOT,
    "Samples that the newest snapshot left out because no GPU can have such a load.",
)
NOTIFICATIONS = Metric(
    "keda_gpu_scaler_webhook_notifications_total",
    "counter",
    ("sender", "code"),
    "Messages to the webhook, by the HTTP status of the answer and by who sent them: alertmanager, "
    "grafana, grafana-dashboard, or unknown for what was not read.",
)
ALERTS = Metric(
    "keda_gpu_scaler_alerts_firing",
    "gauge",
    ("namespace", "scaled_object"),
    "Alerts that fire for a ScaledObject; absent where there are none.",
)
PEERS = Metric(
    "keda_gpu_scaler_peers",
    "gauge",
    ("state",),
    "Addresses of replicas of the scaler, its own among them, when they were last told of alerts "
    "or asked for theirs: reachable or unreachable.",
)
CERTIFICATE_EXPIRY = Metric(
    "keda_gpu_scaler_certificate_expiry_timestamp_seconds",
    "gauge",
    ("server", "kind"),
    "When the certificate that new clients are shown expires (server), or the first CA of those "
    "that they have to show (client_ca), in Unix seconds: of the grpc or of the http port; absent "
    "where a port has none.",
)
VALUE = Metric(
    "keda_gpu_scaler_trigger_value",
    "gauge",
    _TRIGGER,
    "What GetMetrics returns; absent while the number of replicas is held.",
)
AVERAGE = Metric(
    "keda_gpu_scaler_trigger_average",
    "gauge",
    _TRIGGER,
    "Load per replica, in the signal's unit; absent while it is unknown.",
)
THRESHOLD = Metric(
    "keda_gpu_scaler_trigger_threshold", "gauge", _TRIGGER, "The target per replica."
)
DEMAND = Metric(
    "keda_gpu_scaler_trigger_demand",
    "gauge",
    _TRIGGER,
    "What demandQuery gave when it was last asked; absent while it is unknown.",
)
ACTIVE = Metric(
    "keda_gpu_scaler_trigger_active",
    "gauge",
    _TRIGGER,
    "1 while IsActive says active, 0 while not; absent while it fails.",
)
RECOMMENDED = Metric(
    "keda_gpu_scaler_recommended_replicas",
    "gauge",
    _TRIGGER,
    "Replicas that the last answer asks for at those that there are, before minimum, maximum, "
    "stabilization and policies: 0 while the trigger is inactive; absent while the load is "
    "unknown or the replicas are held.",
)
DECISION_AGE = Metric(
    "keda_gpu_scaler_trigger_decision_age_seconds",
    "gauge",
    _TRIGGER,
    "Time since this replica was last asked about the trigger.",
)
STATE = Metric(
    "keda_gpu_scaler_trigger_state",
    "gauge",
    (*_TRIGGER, "state"),
    "1 for the state the trigger is in, 0 for the others.",
)
TRIGGER_EVIDENCE = Metric(
    "keda_gpu_scaler_trigger_evidence",
    "gauge",
    (*_TRIGGER, "evidence"),
    "1 for what the last decision rests on, 0 for the others: kubernetes, kube-state-metrics or "
    "exporters.",
)
EXPECTED = Metric(
    "keda_gpu_scaler_trigger_expected_replicas", "gauge", _TRIGGER, "Replicas that should report."
)
MEASURED = Metric(
    "keda_gpu_scaler_trigger_measured_replicas",
    "gauge",
    _TRIGGER,
    "Replicas whose load is known.",
)
IGNORED = Metric(
    "keda_gpu_scaler_trigger_ignored_pods",
    "gauge",
    _TRIGGER,
    "Ready pods that ask for no GPU and never showed one, while others of the workload did.",
)
UNSEEN = Metric(
    "keda_gpu_scaler_trigger_unseen_replicas",
    "gauge",
    _TRIGGER,
    "Ready replicas that ask for a GPU, of which no exporter has shown one in 15 minutes.",
)
REPORTING = Metric(
    "keda_gpu_scaler_trigger_reporting_pods", "gauge", _TRIGGER, "Pods that report right now."
)
TRIGGERS_LEFT_OUT = Metric(
    "keda_gpu_scaler_triggers_left_out",
    "gauge",
    (),
    "Triggers that KEDA asked about recently and that have no series here, because 10,000 others "
    "have.",
)
TASKS = Metric(
    "keda_gpu_scaler_tasks",
    "gauge",
    (),
    "Tasks of the event loop: one or two for each open call and stream, and one for each query "
    "under way.",
)
LINES_DROPPED = Metric(
    "keda_gpu_scaler_log_lines_dropped_total",
    "counter",
    (),
    "Lines of the log that were not written, because its reader hangs or is gone, or the disk is "
    "full.",
)
OBSERVER_FAILURES = Metric(
    "keda_gpu_scaler_observer_failures_total",
    "counter",
    ("observer",),
    "Facts that the log, the metrics or the traces failed at: a fault of the scaler's own.",
)

METRICS = (
    BUILD_INFO,
    RPCS,
    RPC_SECONDS,
    QUERIES,
    QUERY_SECONDS,
    SOURCE_UP,
    SOURCE_LAG,
    EVIDENCE,
    WATCH_UP,
    SNAPSHOT_AGE,
    SNAPSHOT_PODS,
    REFUSED_SAMPLES,
    NOTIFICATIONS,
    ALERTS,
    PEERS,
    CERTIFICATE_EXPIRY,
    VALUE,
    AVERAGE,
    THRESHOLD,
    DEMAND,
    ACTIVE,
    RECOMMENDED,
    DECISION_AGE,
    STATE,
    TRIGGER_EVIDENCE,
    EXPECTED,
    MEASURED,
    REPORTING,
    IGNORED,
    UNSEEN,
    TRIGGERS_LEFT_OUT,
    TASKS,
    LINES_DROPPED,
    OBSERVER_FAILURES,
)
