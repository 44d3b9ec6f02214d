"""The guides translate other scalers' keys into keys and values of this scaler."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from keda_gpu_scaler import trigger
from keda_gpu_scaler.query.profiles import PROFILES
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import Aggregation, Signal
from tests.repository.test_docs import ROOT

GUIDES = sorted((ROOT / "docs" / "migrate").glob("*.md"))
every_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
OF_KEDA = frozenset({"minReplicaCount", "metricType", "value", "type"})
"""Fields of a ScaledObject and of its HPA that the guides name as well."""
CHECKS = {
    "signal": Signal,
    "profile": {"auto", *PROFILES}.__contains__,
    "window": durations.parse,
    "threshold": float,
    "activationThreshold": float,
    "gpuAggregation": {"max", "average", "sum"}.__contains__,
    "aggregation": Aggregation,
}
"""The check that a value of each key has to pass."""


def translations(guide: Path) -> Iterator[str]:
    """Yield the last cell of every row of the tables with a last column headed "here"."""
    here = False
    for line in guide.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            here = False
        elif here:
            yield cells[-1]
        else:
            here = cells[-1].startswith("here")


def named(cell: str) -> list[tuple[str, str]]:
    """Return the keys in a cell with the values that they are given there."""
    return re.findall(r'`(\w+): "?([^`"]+)"?`', cell)


@every_guide
def test_what_a_key_becomes_is_a_key_with_a_value_that_it_can_have(guide: Path) -> None:
    for cell in translations(guide):
        for key, value in named(cell):
            assert key in trigger.KEYS or key in OF_KEDA, (key, cell)
            assert CHECKS.get(key, bool)(value) is not False, (key, value)


def test_every_guide_has_translations_and_is_in_the_overview() -> None:
    overview = (ROOT / "docs" / "migrate" / "index.md").read_text()
    for guide in GUIDES:
        if guide.stem != "index":
            assert len(list(translations(guide))) > 5, guide
            assert f"]({guide.name})" in overview
            assert "## Change over, and back" in guide.read_text()
