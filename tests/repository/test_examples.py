"""Every example is a ScaledObject that the scaler accepts without a warning.

`tests/check/test_own_files.py` runs `check` on them, and on the YAML of every page.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from tests.support.triggers import access

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "scaledobjects").glob("*.yaml"))
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


def parsed(
    document: dict[str, Any], metadata: dict[str, str], policy: Policy = Policy.NAMESPACED
) -> TriggerSpec:
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    allowed = access(own_promql=policy)
    if metadata.get("source") == INFLUXDB:
        # As the example's header asks of the operator: InfluxQL cannot be confined.
        allowed = access(INFLUXDB, own_promql=Policy.ALLOW, influxql_sources=frozenset({INFLUXDB}))
    return trigger.parse(named, metadata, allowed)


def test_a_demand_of_ours_wakes_within_seconds(subtests: pytest.Subtests) -> None:
    for path in EXAMPLES:
        with subtests.test(path.stem):
            document = read(path)
            (one,) = ours(document)
            found = parsed(document, one["metadata"])
            has_demand = found.demand is not None and found.demand.wakes
            wakes = has_demand or found.neighbour is not None
            assert (one["type"] == "external-push") == wakes


def test_one_text_serves_both_of_the_example_with_placeholders() -> None:
    (path,) = (one for one in EXAMPLES if one.stem == "one-text")
    both = objects(path)
    assert len({one["metadata"]["demandQuery"] for each in both for one in ours(each)}) == 1
    for document in both:
        (one,) = ours(document)
        demand = parsed(document, one["metadata"]).demand
        assert demand is not None
        assert f'service="{document["metadata"]["name"]}"' in demand.text
