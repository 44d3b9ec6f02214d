"""The exporters, one row each: how each names a signal, in which unit, and how it labels pods.

Pure data, and the functions that read it. The documentation's table is compared with this one.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from keda_gpu_scaler.query.profiles import dcgm, model, vendors
from keda_gpu_scaler.query.profiles.model import MetricSource, Profile
from keda_gpu_scaler.spec.spec import Signal

PROFILES: Mapping[str, Profile] = {
    **dcgm.PROFILES,
    "dcgm-ratio": dcgm.RATIO,
    "dcgm-lower": dcgm.LOWER,
    **vendors.PROFILES,
}
AUTO = "auto"
"""dcgm-exporter's series of any release, and those of the exporters that were detected."""
NAMES = (AUTO, *PROFILES)
DETECTED = tuple(
    name for name, profile in PROFILES.items() if profile.conventions and name not in dcgm.PROFILES
)
"""What `auto` reads where dcgm-exporter does not show a pod: the first exporter that shows it.

dcgm-exporter comes before all of them: HAMi's monitor shows 0 for whole cards (HAMi issue 601)."""


@lru_cache
def metric_sources(
    profile: str, signal: Signal, found: frozenset[str] = frozenset(DETECTED)
) -> tuple[MetricSource, ...]:
    """Return the metric sources of a profile for a signal, the preferred exporter first.

    `found` are the exporters beside dcgm-exporter that the profile `auto` looks for.
    """
    if profile == AUTO:
        others = [PROFILES[name].conventions for name in DETECTED if name in found]
        exporters = [dcgm.AUTO_CONVENTIONS, *others]
    else:
        exporters = [PROFILES[profile].conventions]
    return tuple(
        MetricSource(convention.labels, convention.measures[signal], rank)
        for rank, conventions in enumerate(exporters)
        for convention in conventions
        if signal in convention.measures
    )


def signals(profile: str) -> tuple[Signal, ...]:
    return tuple(signal for signal in Signal if metric_sources(profile, signal))


@lru_cache
def metric_names(profile: str, signal: Signal) -> frozenset[str]:
    return frozenset(
        metric.name
        for metric_source in metric_sources(profile, signal)
        for metric in metric_source.measure.metrics
    )


def board_of(labels: Mapping[str, str]) -> str:
    """Return the GPU that a series names by itself; empty: none."""
    return next((labels[name] for name in BOARD_LABELS if labels.get(name)), "")


class Naming(NamedTuple):
    """A pod that a row may be about, and the labels that name it."""

    namespace: str
    pod: str
    namespace_label: str
    pod_label: str


def namings(
    row: Mapping[str, str], targets_own: Collection[tuple[str, str]] | None = None
) -> list[Naming]:
    """Return the pods that a row may be about: one as a rule, none without both labels.

    Each of the two labels is ranked by itself, because Prometheus renames only those that the
    target has as well: `exported_pod`, then exporters' own names, then `pod`. `targets_own` are the
    labels of the row's target, with their texts. One of them names the pod only if no other label
    does, and never together with the target's namespace: that is an idle GPU of the exporter's pod.
    None: they are not known, and the ranking alone decides.
    """
    own = frozenset[tuple[str, str]]() if targets_own is None else targets_own
    found = [
        Naming(namespace[1], pod[1], namespace[0], pod[0])
        for namespace in _candidates(row, NAMESPACE_LABELS, own)
        for pod in _candidates(row, POD_LABELS, own)
        if namespace not in own or pod not in own
    ]
    return found[:1] if targets_own is None else found


def _candidates(
    row: Mapping[str, str], ranking: Iterable[str], own: Collection[tuple[str, str]]
) -> list[tuple[str, str]]:
    by_text: dict[str, str] = {}
    for label in ranking:
        if text := row.get(label):
            by_text.setdefault(text, label)
    found = [(label, text) for text, label in by_text.items()]
    return [each for each in found if each not in own] or found


def pod_of(row: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the namespace and the name of the pod that a row of any exporter is about."""
    return next((naming[:2] for naming in namings(row)), None)


_EVERY = (
    *dcgm.AUTO_CONVENTIONS,
    *(convention for profile in PROFILES.values() for convention in profile.conventions),
)
NAMESPACE_LABELS = (
    model.EXPORTED + model.NAMESPACE,
    *dict.fromkeys(
        each.labels.namespace for each in _EVERY if each.labels.namespace != model.NAMESPACE
    ),
    model.NAMESPACE,
)
"""Every label that can name the namespace of a workload's pod, the surest first."""
POD_LABELS = (
    model.EXPORTED + model.POD,
    *dict.fromkeys(each.labels.pod for each in _EVERY if each.labels.pod != model.POD),
    model.POD,
)
"""Every label that can name a workload's pod, the surest first."""
BOARD_LABELS = ("UUID", "uuid", "gpu_uuid")
"""The labels that identify a GPU in series of exporters that also show GPUs without a pod."""
UTILIZATION_BY_BOARD_LABEL = {
    label: frozenset(
        metric.name
        for convention in _EVERY
        if label in convention.labels.gpu and Signal.UTILIZATION in convention.measures
        for metric in convention.measures[Signal.UTILIZATION].metrics
    )
    for label in BOARD_LABELS
}
"""The metrics that tell a busy GPU from an idle one, by the label that identifies the GPU."""
UTILIZATION_METRICS = frozenset().union(*UTILIZATION_BY_BOARD_LABEL.values())
MEASURES = tuple(pair for convention in _EVERY for pair in convention.measures.items())
"""Each signal that series of one convention show, with how it is read; a few more than once."""
_METRICS = [metric for _, measure in MEASURES for metric in measure.metrics]
KNOWN_METRICS = frozenset(metric.name for metric in _METRICS)
UNREAD = {metric: row for row in PROFILES.values() for metric in row.unread}
"""The exporters whose series name no pod, by the metrics that show that they are there."""
BY_METRIC = {
    metric.name: name
    for name, profile in reversed(tuple(PROFILES.items()))
    for convention in profile.conventions
    for measure in convention.measures.values()
    for metric in measure.metrics
}
"""The profile that reads a metric: the first in the table."""
KNOWN_LABELS = frozenset(BOARD_LABELS).union(
    *(convention.labels.names for convention in _EVERY),
    *((label for label, _ in metric.where) for metric in _METRICS),
)
"""Every label that is read of a series, beside those that name its target."""
