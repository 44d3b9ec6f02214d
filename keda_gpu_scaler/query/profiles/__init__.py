"""The exporters, one row each: how each names a signal, in which unit, and how it labels pods.

Pure data, and the functions that read it. The documentation's table is compared with this one.
"""

from collections.abc import Collection, Mapping

from keda_gpu_scaler.query.profiles import dcgm, vendors
from keda_gpu_scaler.query.profiles.model import MetricSource, Profile
from keda_gpu_scaler.spec.spec import Signal

PROFILES: Mapping[str, Profile] = {
    **dcgm.PROFILES,
    "dcgm-ratio": dcgm.RATIO,
    **vendors.PROFILES,
}
AUTO = "auto"
"""dcgm-exporter's series of any convention, and those of the exporters that were detected."""
NAMES = (AUTO, *PROFILES)
DETECTED = tuple(
    name for name, profile in PROFILES.items() if profile.conventions and name not in dcgm.PROFILES
)
"""What `auto` reads where dcgm-exporter does not show a pod: the first exporter that shows it.

dcgm-exporter comes before all of them: HAMi's monitor shows 0 for whole cards (HAMi issue 601)."""


def metric_sources(
    profile: str, signal: Signal, found: Collection[str] = DETECTED
) -> list[MetricSource]:
    """Return the metric sources of a profile for a signal, the preferred exporter first.

    `found` are the exporters beside dcgm-exporter that the profile `auto` looks for.
    """
    if profile == AUTO:
        others = [PROFILES[name].conventions for name in DETECTED if name in found]
        exporters = [dcgm.AUTO_CONVENTIONS, *others]
    else:
        exporters = [PROFILES[profile].conventions]
    return [
        MetricSource(convention.labels, convention.measures[signal], rank)
        for rank, conventions in enumerate(exporters)
        for convention in conventions
        if signal in convention.measures
    ]


def signals(profile: str) -> tuple[Signal, ...]:
    return _SHOWN if profile == AUTO else PROFILES[profile].signals


def metric_names(profile: str, signal: Signal) -> frozenset[str]:
    return frozenset(
        metric.name
        for metric_source in metric_sources(profile, signal)
        for metric in metric_source.measure.metrics
    )


def board_of(labels: Mapping[str, str]) -> str:
    """Return the GPU that a series names by itself; empty: none."""
    return next((labels[name] for name in BOARD_LABELS if labels.get(name)), "")


def pod_of(row: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the namespace and the name of the pod that a row of any convention is about."""
    for labels in _CONVENTIONS:
        if labels.fit(row):
            return row[labels.namespace], row[labels.pod]
    return None


_EVERY = (
    *dcgm.AUTO_CONVENTIONS,
    *(convention for profile in PROFILES.values() for convention in profile.conventions),
)
_SHOWN = tuple(signal for signal in Signal if signal is not Signal.NUMBER)
_LABELS_BY_POD_LABELS = {
    (convention.labels.namespace, convention.labels.pod): convention.labels for convention in _EVERY
}
_CONVENTIONS = sorted(_LABELS_BY_POD_LABELS.values(), key=lambda labels: labels.may_name_exporter)
"""Each pair of pod labels once, and last those where `pod` may be the exporter's own."""
NAMESPACE_LABELS = tuple(dict.fromkeys(labels.namespace for labels in _CONVENTIONS))
"""Every label that can name the namespace of a workload's pod; the last is `namespace` itself."""
POD_LABELS = tuple(dict.fromkeys(labels.pod for labels in _CONVENTIONS))
"""Every label that can name a workload's pod; the last is `pod` itself."""
BOARD_LABELS = ("UUID", "uuid", "gpu_uuid")
"""The labels that identify a GPU in series of exporters that also show GPUs without a pod."""
UTILIZATION_METRICS = frozenset(
    metric.name
    for convention in _EVERY
    if Signal.UTILIZATION in convention.measures
    for metric in convention.measures[Signal.UTILIZATION].metrics
)
"""The metrics that tell a busy GPU from an idle one, for any measured signal."""
_METRICS = [
    metric
    for convention in _EVERY
    for measure in convention.measures.values()
    for metric in measure.metrics
]
KNOWN_METRICS = frozenset(metric.name for metric in _METRICS)
KNOWN_LABELS = frozenset(BOARD_LABELS).union(
    *(convention.labels.names for convention in _EVERY),
    *((label for label, _ in metric.where) for metric in _METRICS),
)
"""Every label that is read of a series, beside those that name its target."""
