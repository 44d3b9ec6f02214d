"""The guides translate other scalers' keys into keys and values of this scaler."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keda_gpu_scaler import trigger
from keda_gpu_scaler.decision import pod_state
from keda_gpu_scaler.query.profiles import PROFILES
from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.spec.spec import Aggregation, Signal
from tests.repository.test_docs import ROOT, section, table
from tests.sources.test_series_pages import scraped
from tests.support import snapshots, triggers
from tests.support.exporters import newest, snapshot_query

GUIDES_FOLDER = ROOT / "docs" / "migrate"
GUIDES = sorted(GUIDES_FOLDER.glob("*.md"))
every_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
OF_KEDA = frozenset({"minReplicaCount", "metricType", "value", "type"})
"""Fields of a ScaledObject and of its HPA that the guides name as well."""
CHECKS: dict[str, Callable[[str], object]] = {
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


# What the recipes' readers find


def test_each_recipe_has_a_page_an_example_and_a_scenario() -> None:
    page = GUIDES_FOLDER / "index.md"
    _, _, *rows = section(page, "recipes")
    assert len(rows) == 5
    for row in rows:
        guide, example = re.findall(r"\]\(([^)]+)\)", row)
        text = (page.parent / guide).read_text()
        assert (page.parent / example).is_file(), row
        assert f"({example})" in text, row
        (scenario,) = re.findall(r"`(tests/e2e/\w+\.py)`", row)
        assert (ROOT / scenario).is_file(), row
        assert scenario in text, row


CUT = 58
"""How much of a generated name Kubernetes keeps before it adds five characters."""


def test_the_table_of_cut_names_is_what_kubernetes_and_the_scaler_do() -> None:
    rows = []
    for name in ("bert-intent-detection", "58ecbfb07c7ae7056a96a3b1-image-common-production"):
        pod = f"{name}-7b6667bd9-"[:CUT] + "kgx2g"
        by_pattern = re.fullmatch(f"{name}-[a-z0-9]+-[a-z0-9]+", pod) is not None
        found = workload.parse(name, "inference").matches(pod)
        cells = [
            f"`{name}`",
            f"`{pod}`",
            *("yes" if each else "no" for each in (by_pattern, found)),
        ]
        rows.append(cells)
    head = [
        "the Deployment",
        "a pod of it",
        "found by `NAME-[a-z0-9]+-[a-z0-9]+`",
        "found by `workload`",
    ]
    assert section(GUIDES_FOLDER / "keda-prometheus.md", "cut-names") == table(head, rows)


def counts_after(interval_seconds: float, *, averaged: bool, **metadata: str) -> float:
    """Return how long a pod is Ready before its load counts."""
    shown = snapshots.pod("bert-0", 80, averaged=averaged)
    pod = replace(shown, scrape_interval_seconds=interval_seconds)
    window = pod_state.window_seconds(triggers.spec(**metadata), pod)
    return pod_state.delay_seconds(pod) + pod_state.COVERED * window


def test_the_time_until_a_pod_counts_over_three_minutes_is_the_decisions() -> None:
    said = re.findall(r"scrape every (\d+) s after (\d+) s", _words("prometheus-adapter.md"))
    found = counts_after(15, averaged=False, profile="ack-legacy", window="3m")
    assert said == [("15", f"{found:g}")]


def _words(page: str) -> str:
    """Return a guide's text in one line."""
    return " ".join((GUIDES_FOLDER / page).read_text().split())


@pytest.mark.parametrize("averaged", [True, False])
def test_the_table_of_when_a_pod_counts_is_the_decisions(*, averaged: bool) -> None:
    rows = [
        [f"{interval} s", f"{counts_after(interval, averaged=averaged):g} s"]
        for interval in (15, 60)
    ]
    head = ["scraped every", "a pod counts, once it is Ready, after"]
    assert section(GUIDES_FOLDER / "keda-prometheus.md", "counted") == table(head, rows)


CARD = 'minor_number="0",namespace_name="team-ack-legacy",pod_name="bert-0",uuid="GPU-a"'
SHOWN = (
    (Signal.UTILIZATION, " %", {"nvidia_gpu_duty_cycle": 23}),
    (Signal.MEMORY_USED, " MiB", {"nvidia_gpu_memory_used_bytes": 12079595520}),
    (
        Signal.MEMORY,
        " %",
        {
            "nvidia_gpu_memory_used_bytes": 12079595520,
            "nvidia_gpu_memory_total_bytes": 16106127360,
        },
    ),
    (Signal.TEMPERATURE, " °C", {"nvidia_gpu_temperature_celsius": 63}),
    (Signal.POWER, " W", {"nvidia_gpu_power_usage_milliwatts": 64500}),
)


def test_the_table_of_units_is_what_is_read_of_the_exporters_page() -> None:
    rows = []
    for signal, unit, metrics in SHOWN:
        page = "".join(f"{name}{{{CARD}}} {value}\n" for name, value in metrics.items())
        found = scraped("ack-legacy", page).observation(
            snapshot_query("ack-legacy", "ack-legacy", signal), 0
        )
        ((number,),) = newest(found).values()
        shown = " of ".join(f"`{name}` {value}" for name, value in metrics.items())
        rows.append([shown, f"`{signal}` {number:g}{unit}"])
    head = ["the exporter shows", "here"]
    assert section(GUIDES_FOLDER / "gpu-exporter.md", "units") == table(head, rows)
