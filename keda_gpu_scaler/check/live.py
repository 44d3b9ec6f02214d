"""Rules about what the source and the cluster show of a trigger. Pure: `cli/live.py` looks."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from keda_gpu_scaler.check.documents import shown
from keda_gpu_scaler.check.findings import Wrong
from keda_gpu_scaler.check.objects import Trigger
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import WINDOW_SECONDS, TriggerSpec

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
    metrics: Collection[str] = ()
    """The names under which exporters would show the signal."""
    has_series: bool | None = None
    """There are series of such a name; None: not known."""
    has_ended_series: bool = False
    """There were some within the last hour."""
    has_other_series: bool = False
    """There are series of other GPU metrics."""
    has_pod_labels: bool = True
    """One of the series names the pod that uses its GPU."""
    interval_seconds: float | None = None
    """The time between two samples; None: not known."""
    lag_seconds: float = 0.0
    """How late all samples arrive."""
    has_readiness: bool = True
    """The cluster says which pods there are, and which are Ready."""
    demand_trouble: str | None = None
    """Why the demand is not known; None: it is, or the trigger has none."""


def check(trigger: Trigger, spec: TriggerSpec, seen: Seen) -> Iterator[tuple[str, Wrong]]:
    """Yield the rule and what keeps the scaler from deciding about a trigger, at its key."""
    if seen.trouble is not None:
        name = f"source {spec.source}"
        why = f"{name} gives nothing: {seen.trouble.removeprefix(f'{name}: ')}"
        fix = "Correct its URL (--prometheus-url) or its credentials, or see whether it runs."
        yield "no-answer", Wrong(trigger.place("source"), why, fix)
        return
    if not seen.has_gpus and not seen.is_empty:
        yield _no_gpus(trigger, spec, seen)
    if seen.lag_seconds:
        why = (
            f"all samples of the source arrive {durations.text(seen.lag_seconds)} late: every "
            "decision is as late"
        )
        if seen.lag_seconds > spec.max_age_seconds:
            why += ", and the HPA's calls take them for stale"
        fix = "See what lies between the exporters and this server, such as remote write."
        yield "late-samples", Wrong(trigger.place("maxAge"), why, fix)
    window, interval = spec.window_seconds or WINDOW_SECONDS, seen.interval_seconds
    for key, seconds in (("window", window), ("activationWindow", spec.activation_window_seconds)):
        if interval is not None and interval > seconds:
            why = (
                f"a sample comes every {durations.text(interval)}, and {key} is "
                f"{durations.text(seconds)}: most of the time there is none in it"
            )
            fix = f"Write {durations.text(2 * interval)} or more, or scrape more often."
            yield "slow-scrape", Wrong(trigger.place(key), why, fix)
    if not seen.has_readiness:
        why = (
            "nothing in the source says which pods there are and which are Ready: a pod counts "
            "from its first sample, also while it loads its model, and an absence proves little"
        )
        fix = (
            "Let the same Prometheus scrape kube-state-metrics with honor_labels: true, or turn "
            "the Kubernetes API on in the scaler's settings."
        )
        yield "no-readiness", Wrong(trigger.place(), why, fix)
    if seen.demand_trouble is not None:
        why = f"the demand is not known: {seen.demand_trouble}"
        fix = "Ask the source for the query by hand; explain shows the text that is asked."
        place = trigger.place("demandQuery", "demandPreset")
        yield "demand-unknown", Wrong(place, why, fix)


def _no_gpus(trigger: Trigger, spec: TriggerSpec, seen: Seen) -> tuple[str, Wrong]:
    rule, place = "no-pods", trigger.place("query", "podPattern", "workload")
    namespace, names = spec.pods.namespace, ", ".join(sorted(seen.metrics)[:_PODS_SHOWN])
    if seen.neighbours and seen.has_series is not False:
        neighbours = sorted(seen.neighbours)
        more = len(neighbours) - _PODS_SHOWN
        why = (
            f"no GPU is shown of a pod of {spec.workload}; the pods of namespace {namespace} that "
            f"are shown: {shown(', '.join(neighbours[:_PODS_SHOWN]))}"
        )
        if more > 0:
            why += f" and {more} more"
        fix = "Name the workload that these pods belong to, or see why its own are not shown."
    elif seen.has_series is None:
        why = f"the source shows no GPU of {spec.workload}"
        fix = "See whether the exporters run, and whether their series name the workload's pods."
    elif seen.has_series and seen.has_pod_labels:
        why = f"no GPU is shown of any pod in namespace {namespace}, and there are others"
        fix = "Correct the namespace, or put an exporter on the nodes of its pods."
    elif seen.has_series:
        rule = "no-pod-labels"
        why = "the series of GPUs name no pod: the exporter maps none, or relabelling drops it"
        fix = (
            "Set DCGM_EXPORTER_KUBERNETES=true, and keep the labels pod and namespace, or "
            "exported_pod and exported_namespace."
        )
    elif seen.has_ended_series:
        rule = "late-samples"
        why = "the newest sample of any GPU is minutes old: the exporters or their scrapes stopped"
        fix = "See in the source's list of targets why they are not scraped any more."
    elif seen.has_other_series:
        rule, place = "no-series", trigger.place("signal", "profile")
        why = f"exporters show GPUs, and none the signal {spec.signal}: there is no {names}"
        fix = "Have the exporter show it, or take another signal or profile."
    else:
        rule = "no-series"
        why = f"no exporter shows a GPU to the source: there is no {names}"
        fix = "Let the source scrape a GPU exporter on each GPU node."
    return rule, Wrong(place, why, fix)
