"""docs/explain.md names every field of the JSON, every state of a pod, and every gate."""

import dataclasses
import re
from pathlib import Path

import pytest

from keda_gpu_scaler.autoscaling import gates
from keda_gpu_scaler.decision.pod_state import PodState
from keda_gpu_scaler.record import record, why_not
from keda_gpu_scaler.telemetry import history

PAGE = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
SHOWN = (
    record.Summary,
    record.Record,
    record.Setting,
    record.Source,
    record.Pod,
    record.PodCount,
    record.Gpu,
    record.Activation,
    record.Metric,
    record.Query,
    history.Change,
    gates.Gates,
    gates.Gate,
)


def _first_words(table: str) -> list[str]:
    return re.findall(r"(?m)^\| `([^`]+)` \|", table)


@pytest.mark.parametrize("shown", [*SHOWN, why_not.WhyNot, why_not.Way])
def test_every_field_is_named_in_its_order(shown: type) -> None:
    _, _, rest = PAGE.partition(f"<!-- {shown.__name__} -->")
    table, end, _ = rest.partition(f"<!-- /{shown.__name__} -->")
    assert end
    inherited = {field.name for base in shown.__bases__ for field in _fields(base)}
    expected = [field.name for field in _fields(shown) if field.name not in inherited]
    assert _first_words(table) == expected


def _fields(shown: type) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(shown) if dataclasses.is_dataclass(shown) else ()


def test_every_value_of_the_records_module_is_documented() -> None:
    defined = {each for each in vars(record).values() if dataclasses.is_dataclass(each)}
    assert defined | {history.Change, gates.Gates, gates.Gate} == set(SHOWN)


def test_every_gate_is_explained_in_its_order() -> None:
    _, _, rest = PAGE.partition("<!-- gates -->")
    assert _first_words(rest.partition("<!-- /gates -->")[0]) == list(gates.NAMES)


def test_every_state_of_a_pod_is_explained() -> None:
    _, _, rest = PAGE.partition("## The states of a pod")
    states = _first_words(rest.partition("## Over HTTP")[0])
    beside = ["ended", "ignored", "given up", "not counted"]
    assert states == [state.name.lower() for state in PodState] + beside
