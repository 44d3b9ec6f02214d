"""The page on presets has every preset as the code has it, and the query that one of them is."""

import re

from keda_gpu_scaler.query import presets
from keda_gpu_scaler.query.presets import PRESETS, Metric, Preset
from keda_gpu_scaler.spec import workload
from tests.repository.test_docs import ROOT, section, table

PAGE = ROOT / "docs" / "presets.md"


def metric(one: Metric) -> str:
    return f"{', '.join(f'`{name}`' for name in one.names)} ({one.since})"


def preset_row(preset: Preset) -> list[str]:
    added = "; plus ".join("; or ".join(map(metric, quantity)) for quantity in preset.added)
    threshold = "-" if preset.threshold is None else f"{preset.threshold:g}"
    return [
        f"`{preset.name}`",
        preset.counts,
        added,
        f"{threshold}: {preset.because}",
        f"{preset.at_zero}: {'it wakes' if preset.wakes else 'it cannot wake'}",
    ]


def test_it_has_every_preset_with_what_it_reads() -> None:
    head = ["preset", "counts", "metrics and releases", "`demandThreshold`", "at zero shows"]
    rows = [preset_row(preset) for preset in PRESETS.values()]
    assert section(PAGE, "presets") == table(head, rows)


def test_its_query_is_the_one_that_is_asked() -> None:
    (shown,) = re.findall(r"```promql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    asked = presets.promql(PRESETS["vllm-queue"], workload.parse("llama", "inference"))
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", asked)


def test_the_metrics_without_requests_that_it_names_are_those_that_are_read() -> None:
    named = set(re.findall(r"`(flow_control_\w+)`", PAGE.read_text()))
    (read,) = {one.split("flow_control")[1] for one in PRESETS["llm-d-epp-queue"].idle}
    assert named == {f"flow_control{read}"}
