"""The examples; `check` finds nothing in them (`tests/workbench/check/test_own_files.py`)."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from testbed.triggers import access

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "scaledobjects").glob("*.yaml"))
ADDRESS = "keda-gpu-scaler.keda.svc:6000"
"""Where the examples reach the scaler."""
INFLUXDB = "influxdb"
"""The one source that an example names: the others have the source `default`."""


def read(path: Path) -> dict[str, Any]:
    """Return the ScaledObject of an example, which is the last of its objects."""
    *_, document = objects(path)
    return document


def objects(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), yaml.CSafeLoader))


def is_ours(trigger: dict[str, Any]) -> bool:
    return bool(trigger["metadata"].get("scalerAddress") == ADDRESS)


def ours(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["spec"]["triggers"] if is_ours(each)]


def parsed(document: dict[str, Any], metadata: dict[str, str]) -> TriggerSpec:
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    return trigger.parse(named, metadata, access())


def test_one_text_serves_both_of_the_example_with_placeholders() -> None:
    (path,) = (one for one in EXAMPLES if one.stem == "one-text")
    both = objects(path)
    assert len({one["metadata"]["demandQuery"] for each in both for one in ours(each)}) == 1
    for document in both:
        (one,) = ours(document)
        demand = parsed(document, one["metadata"]).demand
        assert demand is not None
        assert f'service="{document["metadata"]["name"]}"' in demand.text


def test_an_example_of_what_wakes_from_zero_has_the_key_or_trigger_of_its_row(
    subtests: pytest.Subtests,
) -> None:
    for page in (ROOT / "docs").rglob("zero.md"):
        rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
        for row in rows:
            key = re.search(r"\[`(\w+)`\]\(\S*specification\.md#", row)
            for name in re.findall(r"\(\S+/scaledobjects/([\w-]+)\.yaml\)", row):
                document = read(ROOT / "examples" / "scaledobjects" / f"{name}.yaml")
                with subtests.test(page=page, name=name):
                    if key:
                        assert any(key[1] in one["metadata"] for one in ours(document))
                    else:
                        assert ours(document) != document["spec"]["triggers"]
