"""The exporters: how each names a signal, in which unit, and how it labels pods. One row each.

Pure data. Facts are dcgm-exporter's own (`etc/default-counters.csv`, its `dcp-metrics-included.csv`
and its label code); a limit is the largest number that such a GPU can show. Numbers beyond it,
DCGM's blank values among them, are refused and never clamped into something plausible.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from keda_gpu_scaler.spec import Signal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of an exporter."""

    name: str
    limit: float
    """The largest believable number, in the exporter's unit."""
    factor: float = 1.0
    """From the exporter's unit to the signal's."""
    averaged: bool = False
    """An average over the exporter's whole interval, not a sample within it."""
    whole_gpus_only: bool = False
    """Missing or a false 0 on MIG instances (dcgm-exporter issues 50, 216)."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How one signal is read: the first metric that a GPU has, or used / (used + free)."""

    metrics: tuple[Metric, ...]
    is_ratio: bool = False
    """The metrics are used and free, in this order."""
    per_board: bool = False
    """Every MIG instance repeats the number of the whole board."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The label names under which one scrape configuration shows a workload's pod."""

    namespace: str
    pod: str
    gpu: str
    absent: tuple[str, ...] = ()
    """Labels that must be empty: where they are not, they name the workload and `pod` does not."""
    may_name_exporter: bool = False
    """`pod` can be the scrape target itself: an idle GPU under Prometheus' honor_labels rules."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way in which an exporter's series reach the source: labels, and metrics by signal."""

    labels: Labels
    measures: Mapping[Signal, Measure]


_SAMPLED = Metric("DCGM_FI_DEV_GPU_UTIL", limit=100, whole_gpus_only=True)
_ENGINE = Metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", limit=1.01, factor=100, averaged=True)
_MEMORY_LIMIT_MIB = 4 * 1024 * 1024
_USED = Metric("DCGM_FI_DEV_FB_USED", limit=_MEMORY_LIMIT_MIB)
_FREE = Metric("DCGM_FI_DEV_FB_FREE", limit=_MEMORY_LIMIT_MIB)


def _codec(name: str) -> Measure:
    return Measure((Metric(name, limit=100, whole_gpus_only=True),))


def _profiled(name: str) -> Measure:
    return Measure((Metric(name, limit=1.01, factor=100, averaged=True),))


def _board(name: str, limit: float) -> Measure:
    return Measure((Metric(name, limit=limit),), per_board=True)


_DCGM: Mapping[Signal, Measure] = {
    Signal.UTILIZATION: Measure((_ENGINE, _SAMPLED)),
    Signal.MEMORY: Measure((_USED, _FREE), is_ratio=True),
    Signal.MEMORY_USED: Measure((_USED,)),
    Signal.POWER: _board("DCGM_FI_DEV_POWER_USAGE", 10_000),
    Signal.TEMPERATURE: _board("DCGM_FI_DEV_GPU_TEMP", 200),
    Signal.SM_ACTIVITY: _profiled("DCGM_FI_PROF_SM_ACTIVE"),
    Signal.TENSOR_ACTIVITY: _profiled("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    Signal.DRAM_ACTIVITY: _profiled("DCGM_FI_PROF_DRAM_ACTIVE"),
    Signal.ENCODER: _codec("DCGM_FI_DEV_ENC_UTIL"),
    Signal.DECODER: _codec("DCGM_FI_DEV_DEC_UTIL"),
}
_DCGM_SAMPLED = {**_DCGM, Signal.UTILIZATION: Measure((_SAMPLED, _ENGINE))}
_DCGM_PROFILED = {**_DCGM, Signal.UTILIZATION: Measure((_ENGINE,))}
_OLD_USED = Metric("dcgm_fb_used", limit=_MEMORY_LIMIT_MIB)
_OLD_FREE = Metric("dcgm_fb_free", limit=_MEMORY_LIMIT_MIB)
_OLD_SAMPLED = Metric("dcgm_gpu_utilization", limit=100, whole_gpus_only=True)
_DCGM_OLD_NAMES: Mapping[Signal, Measure] = {
    Signal.UTILIZATION: Measure((_OLD_SAMPLED,)),
    Signal.MEMORY: Measure((_OLD_USED, _OLD_FREE), is_ratio=True),
    Signal.MEMORY_USED: Measure((_OLD_USED,)),
    Signal.POWER: _board("dcgm_power_usage", 10_000),
    Signal.TEMPERATURE: _board("dcgm_gpu_temp", 200),
}

EXPORTED = Labels("exported_namespace", "exported_pod", "UUID")
OLD = Labels("pod_namespace", "pod_name", "uuid", absent=("exported_pod",))
PLAIN = Labels(
    "namespace", "pod", "UUID", absent=("exported_pod", "pod_name"), may_name_exporter=True
)

PROFILES: Mapping[str, tuple[Scheme, ...]] = {
    "auto": (
        Scheme(EXPORTED, _DCGM),
        Scheme(OLD, _DCGM),
        Scheme(OLD, _DCGM_OLD_NAMES),
        Scheme(PLAIN, _DCGM),
    ),
    "dcgm-exported": (Scheme(EXPORTED, _DCGM_SAMPLED),),
    "dcgm": (Scheme(PLAIN, _DCGM_SAMPLED),),
    "dcgm-prof": (Scheme(EXPORTED, _DCGM_PROFILED), Scheme(PLAIN, _DCGM_PROFILED)),
    "dcgm-old": (Scheme(OLD, _DCGM_SAMPLED), Scheme(OLD, _DCGM_OLD_NAMES)),
}
"""Every profile this version knows; `auto` reads whatever dcgm-exporter's series there are."""

UTILIZATION_METRICS = (_SAMPLED.name, _ENGINE.name, _OLD_SAMPLED.name)
"""What tells a busy GPU from an idle one, whatever signal is measured."""


def metric_names(profile: str, signal: Signal) -> frozenset[tuple[str, str]]:
    """Return the metrics that a signal is read from, as label and name: `__name__` and the name."""
    return frozenset(
        ("__name__", metric.name)
        for _, measure in measures(profile, signal)
        for metric in measure.metrics
    )


def measures(profile: str, signal: Signal) -> list[tuple[Labels, Measure]]:
    """Return the label scheme and the measure of each of a profile's ways to read a signal."""
    return [
        (scheme.labels, scheme.measures[signal])
        for scheme in PROFILES[profile]
        if signal in scheme.measures
    ]
