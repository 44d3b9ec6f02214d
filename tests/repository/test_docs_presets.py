"""The page on presets has every preset as the code has it, and the query that one of them is."""

import re

from keda_gpu_scaler.query import presets
from keda_gpu_scaler.query.presets import PRESETS, Metric, Preset
from keda_gpu_scaler.spec import workload
from tests.repository.test_docs import ROOT, section

PAGE = ROOT / "docs" / "presets.md"


def metric(one: Metric) -> str:
    return f"{', '.join(f'`{name}`' for name in one.names)} ({one.since})"


def preset_row(preset: Preset) -> list[str]:
    added = "; plus ".join("; or ".join(map(metric, quantity)) for quantity in preset.added)
    threshold = "-" if preset.threshold is None else f"{preset.threshold:g}"
    wakes = "it wakes" if preset.wakes else "it cannot wake"
    return [f"`{preset.name}`", added, threshold, wakes]


def shown_row(line: str) -> list[str]:
    """Return what the code knows too: why a threshold, and what is counted, is the page's own."""
    name, counts, added, threshold, at_zero = line.strip("| ").split(" | ")
    assert counts.startswith("requests")
    return [name, added, threshold.partition(": ")[0], at_zero.rpartition(": ")[2]]


def test_it_has_every_preset_with_what_it_reads() -> None:
    _, _, *lines = section(PAGE, "presets")
    assert list(map(shown_row, lines)) == list(map(preset_row, PRESETS.values()))


def test_its_query_is_the_one_that_is_asked() -> None:
    (shown,) = re.findall(r"```promql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    asked = presets.promql(PRESETS["vllm-queue"], workload.parse("llama", "inference"))
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", asked)


def test_the_metrics_without_requests_that_it_names_are_those_that_are_read() -> None:
    named = set(re.findall(r"`(flow_control_\w+)`", PAGE.read_text()))
    (read,) = {one.split("flow_control")[1] for one in PRESETS["llm-d-epp-queue"].idle}
    assert named == {f"flow_control{read}"}
