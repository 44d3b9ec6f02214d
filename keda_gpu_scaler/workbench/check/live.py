"""Rules about what the source and the cluster show of a trigger. Pure: `workbench/look.py` asks."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from keda_gpu_scaler.record.causes import Cause
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import WINDOW_SECONDS, TriggerSpec
from keda_gpu_scaler.workbench.check.documents import shown
from keda_gpu_scaler.workbench.check.findings import Wrong
from keda_gpu_scaler.workbench.check.manifests import Trigger

_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of one trigger."""

    trouble: str | None = None
    """Why the source gave nothing; None: it answered."""
    is_empty: bool = False
    """It is known that the workload has no pods now."""
    has_gpus: bool = False
    """An exporter shows a pod of the workload, or has recently."""
    cause: Cause | None = None
    """Why no exporter shows one; None: that is not known."""
    has_ended_series: bool = False
    """There were series of the signal within the last hour, and there are none now."""
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
    if not (seen.has_gpus or seen.is_empty or spec.is_by_demand):
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
    if seen.has_ended_series:
        why = "the newest sample of any GPU is minutes old: the exporters or their scrapes stopped"
        return "late-samples", Wrong(place, why, "Check the source's list of targets.")
    if seen.cause is None:
        why = f"the source shows no GPU of {spec.workload}"
        fix = "Check whether the exporters run, and whether their series name the workload's pods."
        return rule, Wrong(place, why, fix)
    rule, why, cure, names = seen.cause
    if names:
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        why = f"{why} ({shown(', '.join(names[:_NAMES_SHOWN]))}{more})"
    if rule == "no-series":
        place = trigger.place("signal", "profile", "workload")
    return rule, Wrong(place, why, f"{cure[0].upper()}{cure[1:]}.")
