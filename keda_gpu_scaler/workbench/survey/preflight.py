"""What a source has of exporters → what is read of it, also without anyone's names. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.record.causes import Look

_OWN_LABELS = {"__name__", "job", "instance"}
_SHOWN = 3
"""Metrics of a job that a sentence names."""


def sentences(look: Look, *, has_kube_state: bool) -> Iterator[str]:
    """Say of each scrape job whether its series are read, and what is missing."""
    if look.refused:
        yield f"It is not known which exporters there are: {look.refused}."
    for job, metrics in sorted(_metrics(look).items()):
        read = sorted({profiles.BY_METRIC[name] for name in metrics if name in profiles.BY_METRIC})
        names = ", ".join(sorted(metrics)[:_SHOWN])
        if not read:
            yield f"Job {job} shows {names}, which no profile reads."
        elif not any(row.get("job") == job and profiles.namings(row) for row in look.pods):
            yield f"Job {job} shows {names} (profile {read[0]}), and names no pod."
        else:
            yield f"Job {job} shows {names} (profile {read[0]}), and names pods."
    if not has_kube_state:
        yield (
            "kube-state-metrics does not show which pods request GPUs: workloads are told by the "
            "names of their pods, and a pod that no exporter shows is not known to be there."
        )


def report(look: Look, *, has_kube_state: bool, version: str) -> Mapping[str, Any]:
    """Return the same without a name of a job, a namespace, a pod or a host.

    For an issue: metrics and labels by their names, and jobs by their numbers.
    """
    jobs = {job: number for number, job in enumerate(sorted(_metrics(look)), 1)}
    return {
        "keda_gpu_scaler": version,
        "kube_state_metrics": has_kube_state,
        "refused": bool(look.refused),
        "series": [
            {
                "metric": row["__name__"],
                "job": jobs.get(row.get("job", ""), 0),
                "labels": sorted(row.keys() - _OWN_LABELS),
                "profile": profiles.BY_METRIC.get(row["__name__"]),
            }
            for row in look.series
        ],
        "metrics": {number: sorted(_metrics(look)[job]) for job, number in jobs.items()},
        "targets": [sorted(row.keys() - _OWN_LABELS) for row in look.targets],
        "pod_labels": sorted({naming[2:] for row in look.pods for naming in profiles.namings(row)}),
    }


def _metrics(look: Look) -> dict[str, set[str]]:
    """Return the metrics of each job."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in (*look.metrics, *look.series):
        found[row.get("job", "")].add(row["__name__"])
    return found
