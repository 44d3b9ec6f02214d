"""What a profile is made of: metrics, how a signal is read from them, labels, units. Values only.

The limit of a metric is the largest number that a GPU can show; numbers beyond it, DCGM's blank
values among them, are refused and never clamped into something plausible.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

from keda_gpu_scaler.spec.spec import Signal


class Part(Enum):
    """What a metric's number is of the signal."""

    VALUE = auto()
    USED = auto()
    FREE = auto()
    TOTAL = auto()


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
    """Missing or a false 0 on slices of a GPU (dcgm-exporter issues 50, 216)."""
    zero_is_unknown: bool = False
    """0 is what this exporter shows where a card has no such field."""
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels with the values that are meant; "" stands for a label that is absent."""
    part: Part = Part.VALUE


@dataclass(frozen=True, slots=True)
class Measure:
    """How one signal is read: the first metric that a GPU has, or a share made of several."""

    metrics: tuple[Metric, ...]
    per_board: bool = False
    """Every slice repeats the number of the whole board."""

    @property
    def is_ratio(self) -> bool:
        """Whether the signal is a share: used / (used + free), or else used / total."""
        return any(metric.part is not Part.VALUE for metric in self.metrics)


@dataclass(frozen=True, slots=True)
class Labels:
    """The label names under which one scrape configuration shows a workload's pod."""

    namespace: str
    pod: str
    gpu: tuple[str, ...] = ("UUID",)
    """What identifies the board: the first of these that is there."""
    slice: str = "GPU_I_ID"
    """What tells the slices of one board apart."""
    whole: tuple[str, ...] = ("",)
    """The values of that label which stand for the board itself."""
    number: str = "gpu"
    """Identifies the board on its target where nothing else does."""
    absent: tuple[str, ...] = ()
    """Labels that must be empty: where they are not, they name the workload and `pod` does not."""
    may_name_exporter: bool = False
    """`pod` can be the scrape target itself: an idle GPU under Prometheus' honor_labels rules."""

    def fit(self, row: Mapping[str, str]) -> bool:
        """Tell whether a row names its pod under these labels."""
        named = row.get(self.pod) and row.get(self.namespace)
        return bool(named) and not any(row.get(label) for label in self.absent)


@dataclass(frozen=True, slots=True)
class LabelConvention:
    """One way in which an exporter's series reach the source: labels, and metrics by signal."""

    labels: Labels
    measures: Mapping[Signal, Measure]


@dataclass(frozen=True, slots=True)
class Profile:
    """One exporter with one convention of labels: one row of the table."""

    exporter: str
    """Whose series these are, in words."""
    conventions: tuple[LabelConvention, ...]
    """Empty: its series name no pod."""
    verified: bool = True
    """Names and labels were read in the exporter's source or its vendor's documentation."""

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The signals it shows, in the order in which they are documented."""
        shown = {signal for convention in self.conventions for signal in convention.measures}
        return tuple(signal for signal in Signal if signal in shown)


class MetricSource(NamedTuple):
    """One way to read a signal."""

    labels: Labels
    measure: Measure
    rank: int = 0
    """The exporter's place in the order of preference: numbers of two are not mixed in one pod."""


GPU_RESOURCES = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/")


MIB = 1024 * 1024
_MEMORY_LIMIT_MIB = 4 * MIB
WATTS_LIMIT = 10_000
CELSIUS_LIMIT = 200
ACK_POD = "PodName"

EXPORTED = Labels("exported_namespace", "exported_pod")
"""What Prometheus makes of `namespace` and `pod` where its target has them too."""
PLAIN = Labels(
    "namespace", "pod", absent=("exported_pod", "pod_name", ACK_POD), may_name_exporter=True
)


def in_mebibytes(name: str, part: Part = Part.VALUE) -> Metric:
    """Return a metric of memory that the exporter shows in MiB."""
    return Metric(name, limit=_MEMORY_LIMIT_MIB, part=part)


def in_bytes(name: str, part: Part = Part.VALUE) -> Metric:
    """Return a metric of memory that the exporter shows in bytes."""
    return Metric(name, limit=_MEMORY_LIMIT_MIB * MIB, factor=1 / MIB, part=part)


def percent(name: str, limit: float = 100) -> Measure:
    """Return a signal that the exporter shows in percent."""
    return Measure((Metric(name, limit=limit),))


def watts(*names: str) -> Measure:
    """Return the power of a board: of the first of these metrics that is there."""
    return Measure(tuple(Metric(name, limit=WATTS_LIMIT) for name in names), per_board=True)


def celsius(*names: str) -> Measure:
    """Return the temperature of a board: of the first of these metrics that is there."""
    return Measure(tuple(Metric(name, limit=CELSIUS_LIMIT) for name in names), per_board=True)


def memory(used: Metric, total: Metric) -> Mapping[Signal, Measure]:
    """Return both signals of memory, from what is used and from what there is."""
    return {
        Signal.MEMORY: Measure((replace(used, part=Part.USED), replace(total, part=Part.TOTAL))),
        Signal.MEMORY_USED: Measure((used,)),
    }


def both(plain: Labels, measures: Mapping[Signal, Measure]) -> tuple[LabelConvention, ...]:
    """Return how an exporter labels that shows `namespace` and `pod`, for either scraping."""
    names = (EXPORTED.namespace, EXPORTED.pod)
    exported = replace(plain, namespace=names[0], pod=names[1], absent=(), may_name_exporter=False)
    return LabelConvention(exported, measures), LabelConvention(plain, measures)


SHARE_LIMIT = 110
