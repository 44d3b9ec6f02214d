"""Rules about what the source and the cluster show of a trigger. Pure: `cli/live.py` looks."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from keda_gpu_scaler.check.findings import Finding, Position
from keda_gpu_scaler.check.objects import Trigger, shown
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import WINDOW_SECONDS, TriggerSpec

_PODS_SHOWN = 5
_GONE = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of one trigger."""

    trouble: str | None = None
    """Why the source gave nothing; None: it answered."""
    is_empty: bool = False
    """It is known that the workload has no pods now."""
    has_gpus: bool = False
    """An exporter shows a pod of the workload, or has recently."""
    metrics: Collection[str] = ()
    """The names under which exporters would show the signal."""
    has_series: bool | None = None
    """There are series of such a name; None: not asked."""
    newest_age_seconds: float | None = None
    """How old the newest sample of such a name within an hour is, where none is fresh."""
    refusal: str | None = None
    """Why the source does not say what series it has; None: it does."""
    has_other_series: bool = False
    """There are series of other GPU metrics."""
    pods: Collection[tuple[str, str]] = ()
    """The namespaces and names of the pods that these series name."""
    interval_seconds: float | None = None
    """The time between two samples; None: not known."""
    lag_seconds: float = 0.0
    """How late all samples arrive."""
    has_readiness: bool = True
    """The cluster says which pods there are, and which are Ready."""
    demand_trouble: str | None = None
    """Why the demand is not known; None: it is, or the trigger has none."""
    gateway_status: int | None = None
    """The HTTP status of the gateway; None: it was not asked."""


def check(one: Trigger, spec: TriggerSpec, seen: Seen) -> Iterator[Finding]:
    """Yield what keeps the scaler from deciding about a trigger, at the key to blame."""
    if seen.trouble is not None:
        why = f"source {spec.source} gives nothing: {seen.trouble}"
        fix = "Correct its URL or its credentials, or see whether it runs."
        yield one.of.find("no-answer", _place(one, "source"), why, fix)
        return
    if not seen.has_gpus and not seen.is_empty:
        yield from _samples(one, spec, seen)
    yield from _times(one, spec, seen)
    if not seen.has_readiness:
        why = (
            "nothing in the source says which pods there are and which are Ready: a pod counts "
            "from its first sample, also while it loads its model, and an absence proves little"
        )
        fix = (
            "Let the same Prometheus scrape kube-state-metrics with honor_labels: true, or turn "
            "the Kubernetes API on in the scaler's settings."
        )
        yield one.of.find("no-readiness", _place(one), why, fix)
    if seen.demand_trouble is not None:
        why = f"the demand is not known: {seen.demand_trouble}"
        fix = "Ask the source for the query by hand; explain shows the text that is asked."
        yield one.of.find("demand-unknown", _place(one, "demandQuery", "demandPreset"), why, fix)
    if seen.gateway_status == _GONE and seen.is_empty:
        why = (
            "at zero replicas the gateway answers 404: it has forgotten the route, counts such "
            "requests for no workload, and its request rate can never wake this one"
        )
        fix = (
            "Keep the route without endpoints, which answers 503 and counts, or wake by something "
            "before it, such as a queue."
        )
        yield one.of.find("gateway-forgets", _place(one, "demandQuery", "demandPreset"), why, fix)


def _samples(one: Trigger, spec: TriggerSpec, seen: Seen) -> Iterator[Finding]:
    """Yield why no GPU of the workload is seen."""
    place = _place(one, "query", "podPattern", "workload")
    if seen.has_series is None:
        refused = f", and does not say what it shows: {seen.refusal}" if seen.refusal else ""
        why = f"the source shows no GPU of {spec.workload}{refused}"
        fix = "See whether the exporters run, and whether their series name the workload's pods."
        yield one.of.find("no-pods", place, why, fix)
    elif not seen.has_series:
        names = ", ".join(sorted(seen.metrics)[:_PODS_SHOWN])
        if seen.newest_age_seconds is not None:
            age = durations.text(round(seen.newest_age_seconds))
            why = (
                f"the newest sample of any GPU is {age} old: the exporters or their scrapes stopped"
            )
            fix = "See in the source's list of targets why they are not scraped any more."
            yield one.of.find("late-samples", place, why, fix)
            return
        if seen.has_other_series:
            why = f"exporters show GPUs, and none the signal {spec.signal}: there is no {names}"
            place = _place(one, "signal", "profile")
            fix = "Have the exporter show it, or take another signal or profile."
        else:
            why = f"no exporter shows a GPU to the source: there is no {names}"
            fix = "Let the source scrape a GPU exporter on each GPU node."
        yield one.of.find("no-series", place, why, fix)
    elif not seen.pods:
        why = "the series of GPUs name no pod: the exporter maps none, or relabelling drops it"
        fix = (
            "Set DCGM_EXPORTER_KUBERNETES=true, and keep the labels pod and namespace, or "
            "exported_pod and exported_namespace."
        )
        yield one.of.find("no-pod-labels", place, why, fix)
    else:
        yield one.of.find("no-pods", place, *_others(spec, seen.pods))


def _others(spec: TriggerSpec, pods: Collection[tuple[str, str]]) -> tuple[str, str]:
    here = sorted(name for namespace, name in pods if namespace == spec.pods.namespace)
    namespaces = sorted({namespace for namespace, _ in pods})
    if here:
        why = (
            f"no GPU is shown of a pod of {spec.workload}; the pods of namespace "
            f"{spec.pods.namespace} that are shown: {_few(here)}"
        )
        return why, "Name the workload that these pods belong to, or see why its own are not shown."
    why = (
        f"no GPU is shown of any pod in namespace {spec.pods.namespace}; pods are shown in: "
        f"{_few(namespaces)}"
    )
    return why, "Correct the namespace, or put an exporter on the nodes of its pods."


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _PODS_SHOWN} more" if len(names) > _PODS_SHOWN else ""
    return shown(", ".join(names[:_PODS_SHOWN])) + more


def _times(one: Trigger, spec: TriggerSpec, seen: Seen) -> Iterator[Finding]:
    if seen.lag_seconds:
        late = durations.text(seen.lag_seconds)
        why = f"all samples of the source arrive {late} late: every decision is as late"
        fix = "See what lies between the exporters and this server, such as remote write."
        if seen.lag_seconds > spec.max_age_seconds:
            why += ", and the HPA's calls take them for stale"
        yield one.of.find("late-samples", _place(one, "maxAge"), why, fix)
    if seen.interval_seconds is None:
        return
    every = durations.text(seen.interval_seconds)
    window = WINDOW_SECONDS if spec.window_seconds is None else spec.window_seconds
    for key, seconds in (("window", window), ("activationWindow", spec.activation_window_seconds)):
        if seen.interval_seconds > seconds:
            why = (
                f"a sample comes every {every}, and {key} is {durations.text(seconds)}: most of "
                "the time there is none in it"
            )
            fix = (
                f"Write {durations.text(2 * seen.interval_seconds)} or more, or scrape more often."
            )
            yield one.of.find("slow-scrape", _place(one, key), why, fix)


def _place(one: Trigger, *keys: str) -> Position:
    """Return where the first of these keys is that the trigger has; else where its metadata is."""
    for key in keys:
        if key in one.metadata:
            return one.place(key)
    return one.node.place("metadata")
