"""Every exporter's page as it was recorded or is documented, and what has to be read from it.

The pages are in `data/exporters/`, one for each row of the table of profiles. The comment at the
top of each says what it models, and then the numbers. A new row without a page, or without its
numbers, fails.
"""

import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest

from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery

PAGES = Path(__file__).parents[1] / "data" / "exporters"
EXPORTER_POD = {"namespace": "gpu-operator", "pod": "exporter-x", "container": "exporter"}
"""The labels that service discovery puts on the exporter itself."""

SHARED = "shared"
"""A page that is no profile's own: shared GPUs in dcgm-exporter's virtual mode."""
SHARED_UUID = "GPU-e0000000-aaaa-bbbb-cccc-000000000000"

Numbers = Mapping[str, list[float]]
"""The values of each pod's GPUs, in ascending order."""


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a page is scraped, and what has to be read from it: YAML at the end of its comment."""

    shown: dict[Signal, Numbers] = {}
    """No numbers of a signal: the profile has it, and the page does not show it."""
    auto: dict[Signal, Numbers] = {}
    """What `auto` reads where that is something else."""
    refused: tuple[Signal, ...] = ()
    """Signals of which the page shows a number that is none."""
    honor_labels: bool = False
    scrapable: bool = True
    """Whether it is the page of an exporter that can be scraped directly, without a Prometheus."""


def page(name: str) -> str:
    return (PAGES / f"{name}.prom").read_text(encoding="utf-8")


def _sample(name: str) -> Sample:
    _, _, block = page(name).partition("\n# ---\n")
    lines = takewhile(re.compile(r"# (?!HELP|TYPE)").match, block.splitlines())
    return msgspec.yaml.decode("\n".join(line[2:] for line in lines) or "{}", type=Sample)


SAMPLES: Mapping[str, Sample] = {
    path.stem: _sample(path.stem) for path in sorted(PAGES.iterdir()) if path.stem != SHARED
}


def namespace(name: str) -> str:
    return f"team-{name}"


def snapshot_query(name: str, profile: str, signal: Signal) -> SnapshotQuery:
    return SnapshotQuery(signal, profile, frozenset({namespace(name)}), 60, 30)


def newest(found: Observation) -> dict[str, list[float]]:
    """Return the newest value of each GPU, by pod."""
    values: dict[str, list[float]] = {}
    for gpu in found.series:
        if gpu.values:
            values.setdefault(gpu.pod, []).append(gpu.values[-1])
    return {pod: sorted(each) for pod, each in values.items()}


def approximately(numbers: Numbers) -> dict[str, object]:
    """Return what equals the same numbers up to the last digits."""
    return {pod: pytest.approx(values) for pod, values in numbers.items()}
