"""What a profile consists of: metrics, how a signal is read from them, labels, units. Values only.

The limit of a metric is the largest number that a GPU can show. Larger numbers, such as DCGM's
blank values, are refused and never clamped.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from keda_gpu_scaler.spec.spec import Signal


class Part(Enum):
    """Which part of the signal a metric shows."""

    VALUE = auto()
    USED = auto()
    FREE = auto()
    TOTAL = auto()


@dataclass(frozen=True, slots=True)
class GpuMetric:
    """One metric of an exporter."""

    name: str
    limit: float
    """The largest believable number, in the exporter's unit."""
    factor: float = 1.0
    """Converts the exporter's unit to the signal's."""
    averaged: bool = False
    """An average over the exporter's whole interval, not a sample within it."""
    whole_gpus_only: bool = False
    """Missing or a false 0 on slices of a GPU (dcgm-exporter issues 50, 216)."""
    zero_is_unknown: bool = False
    """This exporter shows 0 where a card has no such field."""
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels with the values to select, "" for an absent one; in a share all the same."""
    part: Part = Part.VALUE


@dataclass(frozen=True)
class Measure:
    """How one signal is read: the first metric that a GPU has, or a ratio of several."""

    metrics: tuple[GpuMetric, ...]
    per_board: bool = False
    """Every slice repeats the number of the whole board."""

    @cached_property
    def is_ratio(self) -> bool:
        """Whether the signal is a share: used / (used + free), or else used / total."""
        return any(metric.part is not Part.VALUE for metric in self.metrics)

    @cached_property
    def twin(self) -> GpuMetric | None:
        """The metric that shows whether the first one is stuck at 0; None: there is none.

        An average does not: it shows work between two samples, which no sample can show.
        """
        if self.is_ratio or len(self.metrics) == 1:
            return None
        first, second = self.metrics[:2]
        shows_more = second.averaged and not first.averaged
        return None if first.zero_is_unknown or shows_more else second


EXPORTED, NAMESPACE, POD = "exported_", "namespace", "pod"
"""Prometheus puts `exported_` before a series' label that its target has as well."""


@dataclass(frozen=True)
class Labels:
    """The names of an exporter's labels."""

    namespace: str = NAMESPACE
    """The exporter's own name for the namespace of the pod that uses a GPU."""
    pod: str = POD
    gpu: tuple[str, *tuple[str, ...]] = ("UUID",)
    """The labels that identify the board, at least one: the first of them that is present."""
    slice: str = "GPU_I_ID"
    """The label that tells the slices of one board apart."""
    whole: tuple[str, ...] = ("",)
    """The values of `slice` that stand for the whole board."""
    number: str = "gpu"
    """The label that identifies the board on its target where no other label does."""

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """The labels that can name the namespace, as `profiles.namings` ranks them."""
        return tuple(dict.fromkeys((EXPORTED + NAMESPACE, self.namespace, NAMESPACE)))

    @cached_property
    def pods(self) -> tuple[str, ...]:
        """The same for the pod; each of the two is renamed by itself."""
        return tuple(dict.fromkeys((EXPORTED + POD, self.pod, POD)))

    @property
    def names(self) -> tuple[str, ...]:
        return *self.namespaces, *self.pods, *self.gpu, self.slice, self.number


def naming(metric: GpuMetric, namespace: str, pod: str) -> str:
    """Return the words for a metric whose pods are named by these labels."""
    return sys.intern(f"{metric.name} by {namespace}, {pod}")


@dataclass(frozen=True, slots=True)
class LabelConvention:
    """Labels of an exporter, and its metrics by signal."""

    labels: Labels
    measures: Mapping[Signal, Measure]


@dataclass(frozen=True, slots=True)
class Profile:
    """One exporter: one row of the table."""

    exporter: str
    """The exporter's name, in words."""
    conventions: tuple[LabelConvention, ...]
    """Empty: its series name no pod."""
    verified: bool = True
    """Names and labels are taken from the exporter's source or its vendor's documentation."""
    to_name_pods: str = "let it name pods, as its documentation says"
    """What to do if its series name no pod, as a clause."""
    unread: tuple[str, ...] = ()
    """Metrics that show that an exporter is there whose series name no pod."""

    @property
    def name(self) -> str:
        """The exporter's name, without what else tells its rows apart."""
        return self.exporter.partition(",")[0]


class MetricSource(NamedTuple):
    """One way to read a signal."""

    labels: Labels
    measure: Measure
    rank: int = 0
    """The exporter's order of preference; one pod never mixes numbers of two exporters."""


GPU_RESOURCES = (
    "nvidia.com/",
    "amd.com/",
    "gpu.intel.com/",
    "habana.ai/",
    "volcano.sh/",
    "aliyun.com/gpu",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "huawei.com/",
    "cambricon.com/",
    "metax-tech.com/",
    "hygon.com/",
    "mthreads.com/",
    "iluvatar.com/",
    "enflame.com/",
    "tencent.com/vcuda",
    "rebellions.ai/",
    "furiosa.ai/",
    "qualcomm.com/",
)
"""The beginnings of the names of extended resources that are GPUs, or parts of them."""
OTHER_RESOURCES = (
    "rdma/",
    "vpc.amazonaws.com/",
    "github.com/fuse",
    "devices.kubevirt.io/",
    "smarter-devices/",
    "squat.ai/",
    "openshift.io/",
    "mellanox.com/",
    "intel.com/intel_sriov",
    "intel.com/sriov",
    "qat.intel.com/",
    "sgx.intel.com/",
    "networking.gke.io.networks/",
)
"""The same of those that are none. One in neither list may be a GPU."""
DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""The beginning of the name of an extended resource that asks for a device of a DeviceClass."""
IDLE_LIMIT = 2
"""In a signal's unit, the most that an idle GPU shows: in percent, idle cards show 1 or 2 at times.
A metric that is exactly 0 beside more is not believed."""
SHARE_LIMIT = 110
"""In percent. A limit on memory can be overshot a little; beyond that it is not this GPU's."""
MIB = 1024 * 1024
MEMORY_LIMIT_MIB = 4 * MIB
WATTS_LIMIT = 10_000
CELSIUS_LIMIT = 200
PLAIN = Labels()
"""The names that most exporters have."""


def in_mebibytes(name: str, part: Part = Part.VALUE) -> GpuMetric:
    return GpuMetric(name, limit=MEMORY_LIMIT_MIB, part=part)


def in_bytes(name: str, part: Part = Part.VALUE) -> GpuMetric:
    return GpuMetric(name, limit=MEMORY_LIMIT_MIB * MIB, factor=1 / MIB, part=part)


def percent(name: str, limit: float = 100) -> Measure:
    return Measure((GpuMetric(name, limit=limit),))


def ratio(*names: str, averaged: bool = False) -> Measure:
    """Return a percentage that the first of these metrics shows as a number up to 1."""
    return Measure(
        tuple(GpuMetric(name, limit=1.01, factor=100, averaged=averaged) for name in names)
    )


def watts(*names: str) -> Measure:
    """Return the power of a board, from the first of these metrics that is present."""
    return Measure(tuple(GpuMetric(name, limit=WATTS_LIMIT) for name in names), per_board=True)


def celsius(*names: str) -> Measure:
    """Return the temperature of a board, from the first of these metrics that is present."""
    return Measure(tuple(GpuMetric(name, limit=CELSIUS_LIMIT) for name in names), per_board=True)


def memory(
    used: str, total: str, of: Callable[[str, Part], GpuMetric] = in_bytes
) -> Mapping[Signal, Measure]:
    """Return both memory signals, from the metrics of the used and the total memory."""
    return {
        Signal.MEMORY: Measure((of(used, Part.USED), of(total, Part.TOTAL))),
        Signal.MEMORY_USED: Measure((of(used, Part.VALUE),)),
    }


def renamed(
    measures: Mapping[Signal, Measure], rename: Callable[[str], str]
) -> Mapping[Signal, Measure]:
    """Return the measures of an exporter whose metrics have other names by a rule."""
    return {
        signal: replace(
            measure,
            metrics=tuple(replace(each, name=rename(each.name)) for each in measure.metrics),
        )
        for signal, measure in measures.items()
    }


def conventions(labels: Labels, *measures: Mapping[Signal, Measure]) -> tuple[LabelConvention, ...]:
    return tuple(LabelConvention(labels, each) for each in measures)
