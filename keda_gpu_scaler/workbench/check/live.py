"""Rules about what the source and the cluster show of a trigger. Pure: `cli/live.py` looks."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import WINDOW_SECONDS, TriggerSpec
from keda_gpu_scaler.workbench.check.documents import shown
from keda_gpu_scaler.workbench.check.findings import Wrong
from keda_gpu_scaler.workbench.check.manifests import Trigger

_PODS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of one trigger."""

    trouble: str | None = None
    """Why the source gave nothing; None: it answered."""
    is_empty: bool = False
    """It is known that the workload has no pods now."""
    has_gpus: bool = False
    """An exporter shows a pod of the workload, or has recently."""
    neighbours: Collection[str] = ()
    """The other pods of the namespace that exporters show."""
    has_series: bool | None = None
    """There are series of such a name; None: not known."""
    has_ended_series: bool = False
    """There were some within the last hour."""
    has_other_series: bool = False
    """There are series of other GPU metrics."""
    has_pod_labels: bool = True
    """One of the series names the pod that uses its GPU."""
    has_namespace_labels: bool = True
    """One of the series names a namespace."""
    interval_seconds: float | None = None
    """The time between two samples; None: not known."""
    lag_seconds: float = 0.0
    """How late all samples arrive."""
    has_readiness: bool = True
    """The cluster says which pods there are, and which are Ready."""
    suspects: Collection[str] = ()
    """Why a metric of the workload's GPUs is probably wrong, as clauses."""
    demand_trouble: str | None = None
    """Why the demand is not known; None: it is, or the trigger has none."""


def check(trigger: Trigger, spec: TriggerSpec, seen: Seen) -> Iterator[tuple[str, Wrong]]:
    """Yield the rule and what keeps the scaler from deciding about a trigger, at its key."""
    if seen.trouble is not None:
        name = f"source {spec.source}"
        why = f"{name} does not answer: {seen.trouble.removeprefix(f'{name}: ')}"
        fix = "Correct its URL (--prometheus-url) or its credentials, or check whether it runs."
        yield "no-answer", Wrong(trigger.place("source"), why, fix)
        return
    if not seen.has_gpus and not seen.is_empty:
        yield _no_gpus(trigger, spec, seen)
    if seen.lag_seconds:
        why = (
            f"all samples of the source arrive {durations.text(seen.lag_seconds)} late, and so "
            "does every decision"
        )
        if seen.lag_seconds > spec.max_age_seconds:
            why += "; they are too old for the HPA's calls"
        fix = "Check what delays them on the way to this server, such as remote write."
        yield "late-samples", Wrong(trigger.place("maxAge"), why, fix)
    window, interval = spec.window_seconds or WINDOW_SECONDS, seen.interval_seconds
    for key, seconds in (("window", window), ("activationWindow", spec.activation_window_seconds)):
        if interval is not None and interval > seconds:
            why = (
                f"a sample arrives every {durations.text(interval)}, and {key} is "
                f"{durations.text(seconds)}: most of the time it contains none"
            )
            fix = f"Write {durations.text(2 * interval)} or more, or scrape more often."
            yield "slow-scrape", Wrong(trigger.place(key), why, fix)
    if not seen.has_readiness:
        why = (
            "the source has no list of pods and of those that are Ready: a pod counts from its "
            "first sample, also while it loads its model, and missing samples prove little"
        )
        fix = (
            "Let the same Prometheus scrape kube-state-metrics with honor_labels: true, or enable "
            "the Kubernetes API in the scaler's settings."
        )
        yield "no-readiness", Wrong(trigger.place(), why, fix)
    for why in seen.suspects:
        fix = "Compare it with nvidia-smi on the node, and restart the exporter if it is wrong."
        yield "stuck-metric", Wrong(trigger.place("signal", "profile"), why, fix)
    if seen.demand_trouble is not None:
        why = f"the demand is unknown: {seen.demand_trouble}"
        fix = "Run the query by hand; explain shows its text."
        place = trigger.place("demandQuery", "demandPreset")
        yield "demand-unknown", Wrong(place, why, fix)


def _no_gpus(trigger: Trigger, spec: TriggerSpec, seen: Seen) -> tuple[str, Wrong]:
    rule, place = "no-pods", trigger.place("query", "podPattern", "workload")
    namespace = spec.pods.namespace
    if seen.neighbours and seen.has_series is not False:
        neighbours = sorted(seen.neighbours)
        more = len(neighbours) - _PODS_SHOWN
        why = (
            f"no exporter shows a GPU of {spec.workload}; they show these pods of namespace "
            f"{namespace}: {shown(', '.join(neighbours[:_PODS_SHOWN]))}"
        )
        if more > 0:
            why += f" and {more} more"
        fix = "Name the workload of these pods, or check why exporters do not show its own."
    elif seen.has_series is None:
        why = f"the source shows no GPU of {spec.workload}"
        fix = "Check whether the exporters run, and whether their series name the workload's pods."
    elif seen.has_series and seen.has_pod_labels and not seen.has_namespace_labels:
        rule = "no-pod-labels"
        why = (
            "the series of GPUs name pods without their namespace, so that none can be told from a "
            "namesake in another namespace"
        )
        fix = "Keep the label namespace, or exported_namespace, where relabelling drops it."
    elif seen.has_series and seen.has_pod_labels:
        why = f"exporters show GPUs, but none of a pod in namespace {namespace}"
        fix = "Correct the namespace, or run an exporter on the nodes of its pods."
    elif seen.has_series:
        rule = "no-pod-labels"
        why = "the series of GPUs name no pod: the exporter does not, or relabelling drops it"
        fix = (
            "Set DCGM_EXPORTER_KUBERNETES=true, and keep the labels pod and namespace, or "
            "exported_pod and exported_namespace."
        )
    elif seen.has_ended_series:
        rule = "late-samples"
        why = "the newest sample of any GPU is minutes old: the exporters or their scrapes stopped"
        fix = "Check the source's list of targets."
    elif seen.has_other_series:
        rule, place = "no-series", trigger.place("signal", "profile")
        why = f"exporters show GPUs, but not the signal {spec.signal}: there is no {_names(spec)}"
        fix = "Let the exporter show it, or use another signal or profile."
    else:
        rule = "no-series"
        why = f"the source has no series of a GPU exporter: there is no {_names(spec)}"
        fix = "Let the source scrape a GPU exporter on each GPU node."
    return rule, Wrong(place, why, fix)


def _names(spec: TriggerSpec) -> str:
    """Return the names under which exporters would show the signal."""
    return ", ".join(sorted(profiles.metric_names(spec.profile, spec.signal))[:_PODS_SHOWN])
