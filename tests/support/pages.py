"""How exporters write down a GPU, for clusters that tests make up: names, labels and units.

Written from the exporters' documentation a second time: nothing is shared with the product's table.
They differ in how a GPU is shown; names, labels and units of all exporters are on recorded pages.
What an exporter shows beside the number that is meant (a decoy) is wrong on purpose.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keda_gpu_scaler.spec.spec import Signal

MIB = 1024 * 1024
TOTAL_MIB = 16_000


class Load(NamedTuple):
    """What one GPU, or one slice of it, carries at one time."""

    percent: int
    sliced: bool

    @property
    def decoy(self) -> int:
        """A plausible number that is not the load; an idle GPU shows work in no metric."""
        return (self.percent + 37) % 101 if self.percent else 0

    @property
    def used(self) -> int:
        return self.percent * 150

    @property
    def free(self) -> int:
        """MiB that can be had; what is reserved is neither used nor free."""
        return TOTAL_MIB - self.used - 1000

    def worth(self, signal: Signal, *, reserved: bool) -> float:
        """Return the number that is right, in the signal's unit."""
        whole = self.used + self.free if reserved else TOTAL_MIB
        return {
            Signal.UTILIZATION: float(self.percent),
            Signal.MEMORY: 100 * self.used / whole,
            Signal.MEMORY_USED: float(self.used),
            Signal.POWER: 50 + 3.5 * self.percent,
        }[signal]


class Shown(NamedTuple):
    """One series of a page."""

    metric: str
    value: float


Writer = Callable[[Load], list[Shown]]


@dataclass(frozen=True, slots=True)
class Page:
    """One exporter: its labels, and how it writes each signal."""

    writes: Mapping[Signal, Writer]
    rank: int = 0
    """Its place in the documented order of `auto`; dcgm-exporter is 0."""
    owner: tuple[str, str] | None = None
    """Its own labels for namespace and pod; None: these two words, or `exported_` before them."""
    board: str = "UUID"
    number: str = "gpu"
    slice: str | None = "GPU_I_ID"
    """None: it shows no slices."""
    reserved: bool = False
    """Its share of memory leaves out what is reserved."""


def _one(metric: str) -> Writer:
    return lambda load: [Shown(metric, load.percent)]


def _memory(used: str, total: str, unit: int) -> Mapping[Signal, Writer]:
    def both(load: Load) -> list[Shown]:
        return [Shown(used, load.used * unit), Shown(total, TOTAL_MIB * unit)]

    return {Signal.MEMORY: both, Signal.MEMORY_USED: both}


def _watts(metric: str) -> Writer:
    return lambda load: [Shown(metric, load.worth(Signal.POWER, reserved=False))]


_ENGINE, _SAMPLED = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"


def _engine_and_sample(load: Load) -> list[Shown]:
    """On a slice the sampled metric is a false 0."""
    return [Shown(_ENGINE, load.percent / 100), Shown(_SAMPLED, 0 if load.sliced else load.decoy)]


def _frame_buffer(load: Load) -> list[Shown]:
    return [
        Shown("DCGM_FI_DEV_FB_USED", load.used),
        Shown("DCGM_FI_DEV_FB_FREE", load.free),
        Shown("DCGM_FI_DEV_FB_TOTAL", TOTAL_MIB),
    ]


def _gfx(load: Load) -> list[Shown]:
    """AMD's first metric is of the whole card."""
    whole, part = (load.decoy, load.percent) if load.sliced else (load.percent, load.decoy)
    return [Shown("gpu_gfx_activity", whole), Shown("gpu_gfx_busy_instantaneous", part)]


_DCGM: Mapping[Signal, Writer] = {
    Signal.MEMORY: _frame_buffer,
    Signal.MEMORY_USED: _frame_buffer,
    Signal.POWER: _watts("DCGM_FI_DEV_POWER_USAGE"),
}

PAGES: Mapping[str, Page] = {
    "dcgm": Page({Signal.UTILIZATION: _one(_SAMPLED), **_DCGM}, slice=None, reserved=True),
    "dcgm-both": Page({Signal.UTILIZATION: _engine_and_sample, **_DCGM}, reserved=True),
    "dcgm-old-namespace": Page(
        {Signal.UTILIZATION: _engine_and_sample, **_DCGM},
        owner=("pod_namespace", "pod_name"),
        board="uuid",
        reserved=True,
    ),
    "amd": Page(
        {
            Signal.UTILIZATION: _gfx,
            **_memory("gpu_used_vram", "gpu_total_vram", 1),
            Signal.POWER: _watts("gpu_package_power"),
        },
        rank=3,
        board="gpu_uuid",
        number="gpu_id",
        slice="gpu_partition_id",
    ),
    "hami": Page(
        {
            Signal.UTILIZATION: _one("hami_container_device_utilization_ratio"),
            **_memory("hami_vgpu_memory_used_bytes", "hami_vgpu_memory_limit_bytes", MIB),
        },
        rank=6,
        board="device_uuid",
        slice="vdevice_index",
    ),
}
