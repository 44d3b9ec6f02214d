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


@dataclass(frozen=True, slots=True)
class Sample:
    """One page, how it is scraped, and what it says."""

    shown: Mapping[Signal, Numbers]
    honor_labels: bool = False
    auto: Mapping[Signal, Numbers] = field(default_factory=dict)
    """What `auto` reads where that is something else."""
    scrapable: bool = True
    """Whether it is the page of an exporter that can be scraped directly, without a Prometheus."""


_DCGM: Mapping[Signal, Numbers] = {
    Signal.UTILIZATION: {"bert-0": [63, 87], "bert-1": [12]},
    Signal.MEMORY: {"bert-0": [50, 75], "bert-1": [25]},
    Signal.MEMORY_USED: {"bert-0": [23034, 34551], "bert-1": [11517]},
    Signal.POWER: {"bert-0": [275, 287.313], "bert-1": [91.5]},
    Signal.TEMPERATURE: {"bert-0": [59, 61], "bert-1": [44]},
    Signal.SM_ACTIVITY: {"bert-0": [43.75, 75], "bert-1": [6.25]},
    Signal.TENSOR_ACTIVITY: {"bert-0": [25, 37.5], "bert-1": [3.125]},
    Signal.DRAM_ACTIVITY: {"bert-0": [31.25, 50], "bert-1": [9.375]},
    Signal.ENCODER: {"bert-0": [0, 7], "bert-1": [3]},
    Signal.DECODER: {"bert-0": [0, 5], "bert-1": [2]},
}
_ENGINE: Mapping[Signal, Numbers] = {Signal.UTILIZATION: {"bert-0": [50, 81.25], "bert-1": [12.5]}}

SAMPLES: Mapping[str, Sample] = {
    "dcgm-exported": Sample(_DCGM, auto=_ENGINE),
    "dcgm": Sample(_DCGM, honor_labels=True, auto=_ENGINE),
    "dcgm-prof": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [87.5], "bert-1": [25]},
            Signal.MEMORY: {"bert-0": [75], "bert-1": [25]},
            Signal.MEMORY_USED: {"bert-0": [3648], "bert-1": [1216]},
            Signal.POWER: {"bert-0": [212.25], "bert-1": [212.25]},
            Signal.TEMPERATURE: {"bert-0": [52], "bert-1": [52]},
            Signal.SM_ACTIVITY: {"bert-0": [62.5], "bert-1": [12.5]},
            Signal.TENSOR_ACTIVITY: {"bert-0": [50], "bert-1": [6.25]},
            Signal.DRAM_ACTIVITY: {"bert-0": [37.5], "bert-1": [3.125]},
            Signal.ENCODER: {},
            Signal.DECODER: {},
        },
        honor_labels=True,
    ),
    "dcgm-ratio": Sample({**_DCGM, **_ENGINE}),
    "dcgm-old": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [74], "bert-1": [41]},
            Signal.MEMORY: {"bert-0": [75], "bert-1": [25]},
            Signal.MEMORY_USED: {"bert-0": [12288], "bert-1": [3840]},
            Signal.POWER: {"bert-0": [65.25], "bert-1": [48.5]},
            Signal.TEMPERATURE: {"bert-0": [57], "bert-1": [49]},
            Signal.SM_ACTIVITY: {"bert-1": [31.25]},
            Signal.TENSOR_ACTIVITY: {"bert-1": [12.5]},
            Signal.DRAM_ACTIVITY: {"bert-1": [18.75]},
            Signal.ENCODER: {"bert-1": [11]},
            Signal.DECODER: {"bert-1": [13]},
        }
    ),
    "ack-dcgm-custom": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [38], "bert-1": [17]},
            Signal.MEMORY: {"bert-0": [75], "bert-1": [12.5]},
            Signal.MEMORY_USED: {"bert-0": [3072], "bert-1": [1024]},
            Signal.POWER: {"bert-0": [61.5], "bert-1": [61.5]},
            Signal.TEMPERATURE: {"bert-0": [58], "bert-1": [58]},
        }
    ),
    "acs": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [91], "bert-1": [8]},
            Signal.MEMORY: {"bert-0": [75], "bert-1": [25]},
            Signal.MEMORY_USED: {"bert-0": [36864], "bert-1": [12288]},
            Signal.POWER: {"bert-0": [244], "bert-1": [78.25]},
            Signal.TEMPERATURE: {"bert-0": [66], "bert-1": [41]},
        },
        honor_labels=True,
    ),
    "ack-legacy": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [33, 77]},
            Signal.MEMORY: {"bert-0": [25, 75]},
            Signal.MEMORY_USED: {"bert-0": [3840, 11520]},
            Signal.POWER: {"bert-0": [27, 64.5]},
            Signal.TEMPERATURE: {"bert-0": [48, 63]},
        }
    ),
    "mindprince": Sample({}),
    "cadvisor-accel": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [27, 93], "bert-1": [4]},
            Signal.MEMORY: {"bert-0": [25, 50], "bert-1": [6.25]},
            Signal.MEMORY_USED: {"bert-0": [4096, 8192], "bert-1": [1024]},
        },
        honor_labels=True,
    ),
    "amd": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [82], "bert-1": [35], "bert-2": [66]},
            Signal.MEMORY: {"bert-0": [75], "bert-1": [25], "bert-2": [25]},
            Signal.MEMORY_USED: {"bert-0": [147456], "bert-1": [16384], "bert-2": [6144]},
            Signal.POWER: {"bert-0": [612], "bert-1": [301], "bert-2": [550]},
            Signal.TEMPERATURE: {"bert-0": [71], "bert-1": [58], "bert-2": [69]},
        },
        honor_labels=True,
    ),
    "intel-xpum-v1": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [64], "bert-1": [42]},
            Signal.MEMORY: {"bert-0": [50], "bert-1": [25]},
            Signal.MEMORY_USED: {"bert-0": [65536], "bert-1": [16384]},
            Signal.POWER: {"bert-0": [402.5], "bert-1": [133]},
            Signal.TEMPERATURE: {"bert-0": [55], "bert-1": [47]},
        }
    ),
    "otel-hw": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [58], "bert-1": [47]},
            Signal.MEMORY: {"bert-0": [25], "bert-1": [75]},
            Signal.MEMORY_USED: {"bert-0": [6144], "bert-1": [12288]},
            Signal.POWER: {"bert-0": [61.5], "bert-1": [88]},
            Signal.TEMPERATURE: {"bert-0": [57], "bert-1": [62]},
            Signal.ENCODER: {"bert-0": [21]},
            Signal.DECODER: {"bert-0": [34]},
        },
        honor_labels=True,
    ),
    "nvidia-smi": Sample({}),
    "drm-exporter": Sample({}),
    "hami-legacy": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [30, 45], "bert-1": [130]},
            Signal.MEMORY: {"bert-0": [25, 50], "bert-1": [50]},
            Signal.MEMORY_USED: {"bert-0": [1024, 2048], "bert-1": [4096]},
        }
    ),
    "hami": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [28, 52], "bert-1": [117]},
            Signal.MEMORY: {"bert-0": [25, 75], "bert-1": [25]},
            Signal.MEMORY_USED: {"bert-0": [1024, 3072], "bert-1": [2048]},
        }
    ),
    "gke-system": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [68], "bert-1": [9]},
            Signal.MEMORY: {"bert-0": [75], "bert-1": [10]},
            Signal.MEMORY_USED: {"bert-0": [17408], "bert-1": [2048]},
        },
        scrapable=False,
    ),
    "openshift-rules": Sample(
        {
            Signal.UTILIZATION: {"bert-0": [76]},
            Signal.POWER: {"bert-0": [198.5], "bert-1": [180]},
            Signal.TEMPERATURE: {"bert-0": [60], "bert-1": [54]},
        },
        scrapable=False,
    ),
}


def page(name: str) -> str:
    """Return the text of an exporter's page."""
    return (PAGES / f"{name}.prom").read_text(encoding="utf-8")


def namespace(name: str) -> str:
    """Return the namespace of the pods on an exporter's page."""
    return f"team-{name}"


def snapshot_query(name: str, profile: str, signal: Signal) -> SnapshotQuery:
    """Return the snapshot query for the pods of one page."""
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
