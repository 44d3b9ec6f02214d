"""Every exporter's page as it was recorded or is documented, and what has to be read from it.

The pages are in `data/exporters/`, one for each row of the table of profiles; the comment at the
top of each says what it models. A new row without a page, or without its numbers here, fails.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.spec.spec import Signal

PAGES = Path(__file__).parents[1] / "data" / "exporters"
EXPORTER_POD = {"namespace": "gpu-operator", "pod": "exporter-x", "container": "exporter"}
"""The labels that service discovery puts on the exporter itself."""

SHARED = "shared"
"""A page that is no profile's own: shared GPUs in dcgm-exporter's virtual mode."""
SHARED_UUID = "GPU-e0000000-aaaa-bbbb-cccc-000000000000"

Numbers = Mapping[str, list[float]]
"""The values of each pod's GPUs, in ascending order."""


_COLUMNS = (
    Signal.UTILIZATION,
    Signal.MEMORY,
    Signal.MEMORY_USED,
    Signal.POWER,
    Signal.TEMPERATURE,
    Signal.SM_ACTIVITY,
    Signal.TENSOR_ACTIVITY,
    Signal.DRAM_ACTIVITY,
    Signal.ENCODER,
    Signal.DECODER,
)
_Gpus = Mapping[str, list[tuple[float | None, ...]]]
"""The GPUs of each pod, each with its numbers in the order of the columns; None: not shown."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One page, how it is scraped, and what it says."""

    gpus: _Gpus
    honor_labels: bool = False
    auto: Mapping[Signal, Numbers] = field(default_factory=dict)
    """What `auto` reads where that is something else."""
    scrapable: bool = True
    """Whether it is the page of an exporter that can be scraped directly, without a Prometheus."""
    silent: tuple[Signal, ...] = ()
    """Signals that the profile has, and the page does not show."""
    refused: tuple[Signal, ...] = ()
    """Signals of which the page shows a number that is none."""

    @property
    def shown(self) -> Mapping[Signal, Numbers]:
        numbers: dict[Signal, dict[str, list[float]]] = {signal: {} for signal in self.silent}
        for pod, gpus in self.gpus.items():
            for gpu in gpus:
                for signal, number in zip(_COLUMNS, gpu, strict=False):
                    if number is not None:
                        numbers.setdefault(signal, {}).setdefault(pod, []).append(number)
        return numbers


_ENGINE = {Signal.UTILIZATION: {"bert-0": [50.0, 81.25], "bert-1": [12.5]}}
_DCGM: _Gpus = {
    "bert-0": [
        (63, 50, 23034, 275, 59, 43.75, 25, 31.25, 0, 0),
        (87, 75, 34551, 287.313, 61, 75, 37.5, 50, 7, 5),
    ],
    "bert-1": [(12, 25, 11517, 91.5, 44, 6.25, 3.125, 9.375, 3, 2)],
}
_RATIO: _Gpus = {
    "bert-0": [
        (50, 50, 23034, 275, 59, 43.75, 25, 31.25, 0, 0),
        (81.25, 75, 34551, 287.313, 61, 75, 37.5, 50, 7, 5),
    ],
    "bert-1": [(12.5, 25, 11517, 91.5, 44, 6.25, 3.125, 9.375, 3, 2)],
}

SAMPLES: Mapping[str, Sample] = {
    "dcgm-exported": Sample(_DCGM, auto=_ENGINE),
    "dcgm": Sample(_DCGM, honor_labels=True, auto=_ENGINE),
    "dcgm-prof": Sample(
        {
            "bert-0": [(87.5, 75, 3648, 212.25, 52, 62.5, 50, 37.5)],
            "bert-1": [(25, 25, 1216, 212.25, 52, 12.5, 6.25, 3.125)],
        },
        honor_labels=True,
        silent=(Signal.ENCODER, Signal.DECODER),
    ),
    "dcgm-ratio": Sample(_RATIO),
    "dcgm-old": Sample(
        {
            "bert-0": [(74, 75, 12288, 65.25, 57)],
            "bert-1": [(41, 25, 3840, 48.5, 49, 31.25, 12.5, 18.75, 11, 13)],
            "bert-2": [(68, 50, 7680, 55.5, 53)],
        }
    ),
    "ack-dcgm-custom": Sample(
        {"bert-0": [(38, 75, 3072, 61.5, 58)], "bert-1": [(17, 12.5, 1024, 61.5, 58)]}
    ),
    "acs": Sample(
        {"bert-0": [(91, 75, 36864, 244, 66)], "bert-1": [(8, 25, 12288, 78.25, 41)]},
        honor_labels=True,
    ),
    "ack-legacy": Sample({"bert-0": [(33, 25, 3840, 27, 48), (77, 75, 11520, 64.5, 63)]}),
    "mindprince": Sample({}),
    "cadvisor-accel": Sample(
        {"bert-0": [(27, 25, 4096), (93, 50, 8192)], "bert-1": [(4, 6.25, 1024)]},
        honor_labels=True,
    ),
    "amd": Sample(
        {
            "bert-0": [(82, 75, 147456, 612, 71)],
            "bert-1": [(35, 25, 16384, 301, 58)],
            "bert-2": [(66, 25, 6144, 550, 69)],
            "bert-3": [(98, 25, 6144, 550, 69)],
            "bert-4": [(44, 25, 32768, 402, 63)],
        },
        honor_labels=True,
    ),
    "intel-xpum-v1": Sample(
        {"bert-0": [(64, 50, 65536, 402.5, 55)], "bert-1": [(42, 25, 16384, 133, 47)]}
    ),
    "otel-hw": Sample(
        {
            "bert-0": [(58, 25, 6144, 61.5, 57, None, None, None, 21, 34)],
            "bert-1": [(47, 75, 12288, 88, 62)],
        },
        honor_labels=True,
    ),
    "nvidia-smi": Sample({}),
    "drm-exporter": Sample({}),
    "hami-legacy": Sample(
        {"bert-0": [(30, 25, 1024), (45, 50, 2048)], "bert-1": [(130, 50, 4096)]}
    ),
    "hami": Sample({"bert-0": [(28, 25, 1024), (52, 75, 3072)], "bert-1": [(117, 25, 2048)]}),
    "gke-system": Sample({"bert-0": [(68, 75, 17408)], "bert-1": [(9, 10, 2048)]}, scrapable=False),
    "openshift-rules": Sample(
        {"bert-0": [(76, None, None, 198.5, 60)], "bert-1": [(None, None, None, 180, 54)]},
        scrapable=False,
    ),
    "dcgm-lower": Sample(
        {
            "bert-0": [(50, 25, 5760, 58.5, 55, 43.75, 25, 31.25, 6, 8)],
            "bert-1": [(39, 50, 11520, 33.25, 47, 18.75, 12.5, 6.25, 2, 4)],
        }
    ),
    "gke-device-plugin": Sample(
        {
            "bert-0": [
                (42, 50, 16384, None, None, None, 11.25, 12.5),
                (75, 75, 24576, None, None, None, 22.5, 37.5),
            ],
            "bert-1": [(18, 25, 6144)],
        }
    ),
    "ascend": Sample(
        {
            "bert-0": [(64, 50, 32768, 291.5, 52), (82, 75, 49152, 310, 54)],
            "bert-1": [(15, 25, 16384, 168.25, 46)],
        }
    ),
    "metax": Sample(
        {
            "bert-0": [(77, 50, 32768, 231.5, 61, None, None, None, 9, 14)],
            "bert-1": [
                (31, 25, 8192, 142.25, 51, None, None, None, 3, 2),
                (46, 25, 16384, None, None, None, None, None, 5, 6),
            ],
        }
    ),
    "runai": Sample({"bert-0": [(53, None, 4096), (88, None, 9216)], "bert-1": [(21, None, 2048)]}),
    "iluvatar": Sample(
        {"bert-0": [(57, 75, 24576, 188, 58)], "bert-1": [(13, 12.5, 4096, 97, 44)]}
    ),
    "enflame": Sample(
        {"bert-0": [(80, 75, 12288, 156, 49.5)], "bert-1": [(None, 25, 4096, None, 41)]},
        refused=(Signal.UTILIZATION, Signal.POWER),
    ),
    "tencent": Sample(
        {"bert-0": [(24, None, 1024), (47, None, 3072)], "bert-1": [(35, None, 2048)]}
    ),
    "furiosa": Sample(
        {
            "bert-0": [(62.5, 75, 36864, 118.5, 67.75), *((core,) for core in (70, 75, 80, 99.5))],
            "bert-1": [(12.5, 25, 12288, 61, 51), (25,)],
        }
    ),
    "hygon": Sample(
        {
            "bert-0": [(72, 50, 32768, 288, 63), (85, 75, 49152, 301.5, 66)],
            "bert-1": [(19, 25, 8192, 142, 48)],
        }
    ),
}


def page(name: str) -> str:
    return (PAGES / f"{name}.prom").read_text(encoding="utf-8")


def namespace(name: str) -> str:
    return f"team-{name}"


def snapshot_query(name: str, profile: str, signal: Signal) -> SnapshotQuery:
    return SnapshotQuery(signal, profile, frozenset({namespace(name)}), 60, 30)


def newest(found: Observation) -> dict[str, list[float]]:
    """Return the newest value of each GPU, by pod."""
    values: dict[str, list[float]] = {}
    for one in found.series:
        if one.values:
            values.setdefault(one.pod, []).append(one.values[-1])
    return {pod: sorted(each) for pod, each in values.items()}


def approximately(numbers: Numbers) -> dict[str, object]:
    """Return what equals the same numbers up to the last digits."""
    return {pod: pytest.approx(values) for pod, values in numbers.items()}
