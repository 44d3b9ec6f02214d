"""Decision + snapshot → record: by the functions of the decision, with their results kept.

Pure. What was answered is taken as it was answered: the memory of an outage and the demand's cache
are in it. What it rests on is computed again from the snapshot.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision import activation, activity, load, reasons
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.decision.pod_state import (
    NEVER,
    PodState,
    Reported,
    expected_pods,
    replica_of,
    since_when,
)
from keda_gpu_scaler.decision.summary import hpa_metrics, recommended_replicas, summarized
from keda_gpu_scaler.query.trigger_query import Explained
from keda_gpu_scaler.record.record import (
    Activation,
    GpuRecord,
    MetricRecord,
    PodCount,
    PodRecord,
    Query,
    Record,
    Says,
    Setting,
    SettingOrigin,
    SourceRecord,
)
from keda_gpu_scaler.snapshot import snapshot
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, NamespaceSnapshot
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import (
    AVERAGED_WINDOW_SECONDS,
    DEMAND_METRIC,
    WINDOW_SECONDS,
    Demand,
    ScaledObject,
    TriggerSpec,
)
from keda_gpu_scaler.trigger import KEYS
from keda_gpu_scaler.trigger.keys import FROM_ENV

PODS_LISTED = 500
"""About a third of a MiB of JSON."""
GPUS_LISTED = 64
"""Of one pod: no machine has more, unless one is divided."""
_NAME_SHOWN = 200
"""Characters of a GPU's name, which is whatever an exporter says."""
_WHY = {
    "measured": "its load is in the value",
    "warming": "its load is not known yet: its samples cover less than half the window",
    "missing": "no exporter shows it any more, and nothing shows that it has ended",
    "silent": "it is Ready in the cluster, and its exporter has stopped showing it",
    "unseen": "it requests a GPU, and no exporter has ever shown one for it",
    "starting": "it was never Ready, and is younger than startTimeout",
    "stalled": "it was never Ready within startTimeout",
    "ended": "it has ended",
    "ignored": "it requests no GPU, and has shown none for 15 minutes while other pods did",
    "given up": "no exporter has shown it for so long that it no longer counts",
    "not counted": "no exporter has shown it, and it may have no GPU",
    "outdated": "the source does not answer, and what it showed last is older than maxAge",
}
"""Why a pod counts, or not, by its state."""
_DEFAULT_WINDOW = (
    f"{durations.text(WINDOW_SECONDS)}; {durations.text(AVERAGED_WINDOW_SECONDS)} where the "
    "exporter's number is itself an average"
)
_NO_THRESHOLD = (
    "none: the demand sets the number of replicas, and the GPUs show whether they still work"
)
HIDDEN = "from the environment, not shown"
_DEMAND_KEYS = "demandQuery", "demandPreset", "demandRouter", "demandRouterNamespace", "demandModel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What was answered about one trigger, and what it was made of."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    decision: Decision
    now: float
    """The time of the answer, on the source's clock."""
    view: NamespaceSnapshot | None = None
    """The trigger's namespace in the snapshot; None: there is no snapshot."""
    source: str = ""
    trouble: str | None = None
    lag_seconds: float = 0.0
    step_seconds: float = 15.0
    speaks_promql: bool = True
    """The source can be asked for the same in PromQL."""
    exporters: Collection[str] = ()
    """The exporters beside dcgm-exporter that the source was found to have."""
    neighbour: Decision | None = None
    """What was decided about the workload of activationWorkload; None: it was not asked."""
    alert: str | None = None
    takes_alerts: bool = False
    demand: Demand | None = None
    """The demand; None: it was not asked."""
    active_by: str | None = None


def record(answered: Answered) -> Record:
    spec, decision, view = answered.spec, answered.decision, answered.view
    pods, judged, listed = list[snapshot.Pod](), list[_JudgedPod](), list[PodRecord]()
    if view is not None:
        pods = load.pods_of(spec, view)
        judged = [*_judged_pods(answered, view, pods)]
        listed = [_pod(spec, view.at, judged_pod) for judged_pod in _to_list(judged)]
    counts = sorted(Counter(judged_pod.state for judged_pod in judged).items())
    recommended = recommended_replicas(spec, decision, answered.demand)
    head = summarized(
        answered.scaled_object, spec, decision, recommended, answered.active_by, answered.source
    )
    return Record(
        **asdict(head),
        at=answered.now,
        refused=decision.refused,
        remembered=decision.remembered,
        gpu_unit=spec.signal.unit,
        settings=_settings(spec),
        source=SourceRecord(
            name=answered.source or spec.source,
            profile=spec.profile,
            evidence=None if view is None else view.evidence_source,
            snapshot_at=None if view is None else view.at,
            age_seconds=None if view is None else max(0.0, answered.now - view.at),
            trouble=answered.trouble,
            lag_seconds=answered.lag_seconds,
        ),
        pods=tuple(listed),
        pods_left_out=len(judged) - len(listed),
        pod_counts=tuple(PodCount(state, number) for state, number in counts),
        activation=tuple(_activation(answered, pods)),
        metrics=tuple(_metrics(answered)),
        queries=tuple(_queries(answered, pods)),
        warnings=(*spec.warnings, *filter(None, [decision.unlisted, decision.futile])),
    )


class _JudgedPod(NamedTuple):
    pod: snapshot.Pod
    reported: Reported | None
    """None: it need not report."""
    state: str

    @property
    def load(self) -> float | None:
        if self.reported is None or self.reported.state is not PodState.MEASURED:
            return None
        return round(self.reported.load, load.DECIMALS)


def _judged_pods(
    answered: Answered, view: NamespaceSnapshot, pods: Sequence[snapshot.Pod]
) -> Iterator[_JudgedPod]:
    all_reported, ignored = expected_pods(answered.spec, pods, view.at, answered.now)
    reported_by_name = {reported.pod.name: reported for reported in all_reported}
    ignored_names = frozenset(ignored)
    is_old = answered.now - view.at > answered.spec.max_age_seconds
    is_outdated = is_old and answered.trouble is not None
    for pod in pods:
        reported = reported_by_name.get(pod.name)
        if reported is not None and is_outdated:
            state = "outdated"
        elif reported is not None:
            state = reported.state.name.lower()
        elif pod.ended:
            state = "ended"
        elif pod.name in ignored_names:
            state = "ignored"
        else:
            state = "given up" if pod.was_seen else "not counted"
        yield _JudgedPod(pod, reported, state)


def _to_list(judged: Sequence[_JudgedPod]) -> Sequence[_JudgedPod]:
    """Return the pods to list, the least busy first."""
    measured = [pod for pod in judged if pod.load is not None]
    measured.sort(key=lambda pod: (pod.load, pod.pod.name))
    unknown = [pod for pod in judged if pod.load is None and pod.reported is not None]
    others = [pod for pod in judged if pod.reported is None]
    half = PODS_LISTED // 2
    room = PODS_LISTED - len(unknown[:half])
    shown = measured[:room]
    return [*shown, *[*unknown, *others][: PODS_LISTED - len(shown)]]


def _pod(spec: TriggerSpec, at: float, judged: _JudgedPod) -> PodRecord:
    pod, reason = judged.pod, _WHY[judged.state]
    if judged.state == "missing" and not pod.was_seen:
        reason = "no exporter has shown it yet"
    elif judged.state in {"missing", "silent"} and any(
        gpu.refused[-1:] == (pod.last_seen,) for gpu in pod.gpus
    ):
        reason = "its exporter shows a number that no GPU can have, and it is refused"
    status, since = pod.status, since_when(spec, pod)
    if status is not None and status.unschedulable is not None and not pod.ended:
        reason = f"{reason}; unschedulable for {reasons.waited(status.unschedulable, at)}"
    return PodRecord(
        name=pod.name,
        replica=replica_of(spec, pod),
        state=judged.state,
        counts=judged.load is not None,
        reason=reason,
        load=judged.load,
        gpus=tuple(_gpu(spec, gpu, at) for gpu in pod.gpus[:GPUS_LISTED]),
        gpus_left_out=max(0, len(pod.gpus) - GPUS_LISTED),
        shown_by=pod.shown_by,
        targets=tuple(sorted(f"{target.job}/{target.instance}" for target in pod.targets)),
        counts_since=None if since == NEVER else since,
        first_seen=pod.first_seen if pod.first_seen > NEVER else None,
        last_seen=pod.last_seen if pod.was_seen else None,
        readiness=pod.readiness.name.lower(),
        ready_since=None if status is None or status.ready_since == NEVER else status.ready_since,
        created_at=None if status is None else status.created_at,
    )


def _gpu(spec: TriggerSpec, gpu: GpuSamples, at: float) -> GpuRecord:
    since = at - spec.activation_window_seconds
    samples = zip(gpu.times, gpu.values, strict=True)
    recent = [(sampled_at, value) for sampled_at, value in samples if sampled_at > since]
    active_times = [sampled_at for sampled_at, value in recent if value > spec.activation_threshold]
    is_refused = gpu.refused[-1:] > gpu.times[-1:]
    return GpuRecord(
        gpu=gpu.gpu[:_NAME_SHOWN],
        value=None if is_refused or not gpu.values else gpu.values[-1],
        sampled_at=gpu.last,
        busiest=max((value for _, value in recent), default=None),
        active_at=max(active_times, default=None),
        refused=len(gpu.refused),
    )


def _activation(answered: Answered, pods: Sequence[snapshot.Pod]) -> Iterator[Activation]:
    """Yield what each signal says; the first that says active decides, and no other is asked."""
    is_decided = False
    for signal in (
        _by_gpus(answered, pods),
        _by_neighbour(answered),
        _by_alert(answered),
        _by_demand(answered),
    ):
        if is_decided and signal.says is not Says.NOT_SET:
            yield Activation(signal.signal, Says.NOT_ASKED, "an earlier input is already active")
        else:
            yield signal
        is_decided = is_decided or signal.says is Says.ACTIVE


def _by_gpus(answered: Answered, pods: Sequence[snapshot.Pod]) -> Activation:
    spec, view, name = answered.spec, answered.view, "gpus"
    is_fresh = view is not None and answered.now - view.at <= spec.max_age_seconds
    if view is None or not is_fresh or not load.are_pods_known(spec, view):
        return Activation(name, Says.UNKNOWN, "there are no fresh samples")
    gpus = activity.activity(spec, pods, view.at, answered.now)
    window = durations.text(spec.activation_window_seconds)
    if gpus.busiest is None:
        says = Says.IDLE if answered.decision.state.is_gone else Says.UNKNOWN
        return Activation(name, says, f"no GPU of {spec.workload} has a sample within {window}")
    if gpus.active:
        says, why = Says.ACTIVE, "the busiest GPU is above activationThreshold"
    elif gpus.covered:
        says, why = Says.IDLE, f"no GPU was above activationThreshold within {window}"
    else:
        says, why = Says.UNKNOWN, f"samples do not cover {window} yet"
    return Activation(name, says, why, gpus.busiest, spec.activation_threshold)


def _by_neighbour(answered: Answered) -> Activation:
    name, neighbour = "activationWorkload", answered.neighbour
    if answered.spec.neighbour is None:
        return Activation(name, Says.NOT_SET, "the trigger names no other workload")
    if neighbour is None:
        return Activation(name, Says.NOT_ASKED, "an earlier input is already active")
    if neighbour.activated:
        return Activation(name, Says.ACTIVE, neighbour.reason)
    says = Says.IDLE if neighbour.active is False else Says.UNKNOWN
    return Activation(name, says, neighbour.reason)


def _by_alert(answered: Answered) -> Activation:
    if answered.alert is not None:
        return Activation("alert", Says.ACTIVE, f"alert {answered.alert} fires")
    if answered.takes_alerts:
        return Activation("alert", Says.IDLE, "no alert fires for it")
    return Activation("alert", Says.NOT_SET, "only a running scaler receives alerts")


def _by_demand(answered: Answered) -> Activation:
    name, spec, demand = "demand", answered.spec.demand, answered.demand
    if spec is None:
        return Activation(name, Says.NOT_SET, "the trigger has no demandQuery and no demandPreset")
    if not spec.activates:
        why = f"{spec.preset} does not tell whether the workload is in use"
        return Activation(name, Says.NOT_SET, why)
    if demand is None:
        return Activation(name, Says.NOT_ASKED, "an earlier input is already active")
    level = spec.activation_threshold
    if demand.value is None:
        return Activation(name, Says.UNKNOWN, demand.trouble, None, level)
    if demand.value > level:
        why = "the demand is above demandActivationThreshold"
        return Activation(name, Says.ACTIVE, why, demand.value, level)
    why = "the demand is not above demandActivationThreshold"
    return Activation(name, Says.IDLE, why, demand.value, level)


def _metrics(answered: Answered) -> Iterator[MetricRecord]:
    replicas, demand = answered.decision.replicas, answered.demand or Demand(None)
    metrics = hpa_metrics(answered.spec, answered.decision, demand)
    # Without replicas the HPA does not ask.
    is_held = replicas > 0 and activation.is_held_after_gap(
        answered.spec, answered.decision, demand
    )
    for name, hpa in metrics.items():
        step = rules.recommend([hpa], rules.Scale.steady(replicas))
        reason = "no value: the HPA holds the replicas" if step is None else step.reason
        if hpa.value is not None and name == DEMAND_METRIC and is_held:
            step, reason = None, f"{reason}; held: {activation.AFTER_GAP}"
        if step is not None and answered.spec.for_formula:
            step, reason = None, "the HPA gets the value of a formula, which is not known here"
        yield MetricRecord(
            name=name,
            metric_type=hpa.metric_type,
            value=hpa.value,
            target=hpa.target,
            replicas=replicas,
            tolerance=rules.CLUSTERS.up,
            desired=None if step is None else step.replicas,
            reason=reason,
        )


def _queries(answered: Answered, pods: Sequence[snapshot.Pod]) -> Iterator[Query]:
    spec = answered.spec
    if not answered.speaks_promql:
        return
    if spec.query is None:
        view = answered.view
        shown_by = {metric for pod in pods if pod.was_seen for metric in pod.shown_by}
        is_owned = view is not None and view.evidence_source is EvidenceSource.KUBE_STATE_METRICS
        explained = Explained(
            spec=spec,
            found=answered.exporters,
            shown_by=shown_by,
            owned=is_owned,
            step_seconds=answered.step_seconds,
        )
        if not spec.is_by_demand:
            yield Query("value", explained.value)
        yield Query("busiest GPU", explained.busiest)
    elif not _is_hidden(spec, "query"):
        yield Query("query", spec.query.text)
    is_shown = not any(_is_hidden(spec, key) for key in _DEMAND_KEYS)
    if spec.demand is not None and is_shown:
        yield Query("demand", spec.demand.text)


def _is_hidden(spec: TriggerSpec, key: str) -> bool:
    return any(written == key + FROM_ENV for written, _ in spec.given)


def _settings(spec: TriggerSpec) -> tuple[Setting, ...]:
    """Return each key that has a value, in the order of the documentation.

    What the user wrote is shown as it was written, and of what was not written the default.
    """
    written, defaults = dict(spec.given), dict(_defaults(spec))
    shown: list[Setting] = []
    for key in KEYS:
        if _is_hidden(spec, key):
            shown.append(Setting(key, HIDDEN, SettingOrigin.ENVIRONMENT))
        elif key in written:
            shown.append(Setting(key, written[key], SettingOrigin.TRIGGER))
        elif key in defaults:
            shown.append(Setting(key, defaults[key], SettingOrigin.DEFAULT))
    return tuple(shown)


def _defaults(spec: TriggerSpec) -> Iterator[tuple[str, str]]:
    yield "workload", spec.workload
    yield "namespace", spec.pods.namespace
    yield "signal", spec.signal
    if spec.query is None:
        yield "profile", spec.profile
    if spec.is_by_demand:
        yield "threshold", _NO_THRESHOLD
    else:
        yield "aggregation", spec.aggregation
        yield "gpuAggregation", spec.gpu_aggregation
        yield "window", _DEFAULT_WINDOW
    yield "activationThreshold", f"{spec.activation_threshold:g}"
    yield "activationWindow", durations.text(spec.activation_window_seconds)
    if spec.demand is not None:
        if spec.demand.threshold is not None:
            yield "demandThreshold", f"{spec.demand.threshold:g}"
        if spec.demand.activates:
            yield "demandActivationThreshold", f"{spec.demand.activation_threshold:g}"
            yield "demandOnEmpty", spec.demand.on_empty
    yield "startTimeout", durations.text(spec.start_timeout_seconds)
    yield "warmup", durations.text(spec.warmup_seconds)
    yield "onUnknown", spec.on_unknown
    yield "forFormula", "false"
    yield "maxAge", durations.text(spec.max_age_seconds)
    yield "source", spec.source
    yield "metricName", spec.metric_name
