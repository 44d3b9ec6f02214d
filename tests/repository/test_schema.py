"""The JSON Schema for editors says of each key what the scaler's own reader says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.trigger import KEYS
from tests.repository import schema
from tests.support.triggers import access

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "schema" / "scaledobject.json"
SCALED = sorted((ROOT / "examples" / "scaledobjects").glob("*.yaml"))
ADDRESS = "keda-gpu-scaler.keda.svc:6000"
WORDS = st.sampled_from(
    [
        *("70", "-1", "7e1", "nan", " 5 ", "1_0", "2m", "90s", "1h30m", "1.5h", "m", "5 m", "0s"),
        *("sum", "average", "max", "hold", "error", "zero", "inactive", "active", "Hold"),
        *("utilization", "memory", "number", "auto", "dcgm", "gpu-load", "s0-gpu", "-x", "a b", ""),
    ]
)


Value = str | int | list[Any] | dict[str, Any]


def is_valid(value: Value, of: dict[str, Any]) -> bool:
    """Tell whether a value is valid by the words of JSON Schema that ours has."""
    if "$ref" in of:
        return is_valid(value, schema.schema()["definitions"][of["$ref"].rpartition("/")[2]])
    match value:
        case str():
            fits = re.search(of.get("pattern", ""), value) is not None
            return (
                of.get("type", "string") == "string" and fits and value in of.get("enum", [value])
            )
        case list():
            return of["type"] == "array" and all(is_valid(one, of["items"]) for one in value)
        case dict():
            return of.get("type", "object") == "object" and is_valid_object(value, of)
        case _:
            return "type" not in of


def is_valid_object(value: dict[str, Any], of: dict[str, Any]) -> bool:
    conditions = [{"required": of.get("required", [])}, *of.get("anyOf", [])]
    given = [value.keys() >= set(one["required"]) for one in conditions]
    follows = "if" not in of or not is_valid(value, of["if"]) or is_valid(value, of["then"])
    return (
        follows
        and given[0]
        and any(given[1:] or [True])
        and all(is_valid_entry(key, one, of) for key, one in value.items())
    )


def is_valid_entry(key: str, value: Value, of: dict[str, Any]) -> bool:
    fitting = [one for name, one in of.get("patternProperties", {}).items() if re.search(name, key)]
    if key in of.get("properties", {}):
        fitting.append(of["properties"][key])
    known = bool(fitting) or bool(of.get("additionalProperties", True))
    return known and all(is_valid(value, one) for one in fitting)


def refused(metadata: dict[str, str]) -> set[str]:
    """Return the keys that the scaler's reader refuses."""
    sources = access(metadata.get("source", "default"))
    try:
        trigger.parse(ScaledObject("ml", "bert"), metadata, sources)
    except errors.SpecError as wrong:
        return {mistake.key for mistake in wrong.mistakes}
    return set()


def test_the_file_is_what_the_keys_give() -> None:
    assert FILE.read_text(encoding="utf-8") == schema.text(), "run make schema"
    assert json.loads(schema.text()) == schema.schema()


def test_each_key_is_there_with_its_meaning_and_default() -> None:
    properties = schema.metadata()["properties"]
    for key, one in KEYS.items():
        assert properties[key]["description"] == one.meaning
        assert properties[key].get("default") == one.default
        assert one.default is None or is_valid(one.default, properties[key])


@given(st.sampled_from(sorted(KEYS)), WORDS | st.text(max_size=20))
def test_what_the_scaler_takes_is_valid(key: str, value: str) -> None:
    metadata = {"workload": "bert", "threshold": "70", "scalerAddress": ADDRESS, key: value}
    if key not in refused(metadata):
        assert is_valid(metadata, schema.metadata())


@pytest.mark.parametrize(
    "changes",
    [
        {"treshold": "70"},
        {"signal": "load"},
        {"profile": "dcgm-exporter"},
        {"window": "90"},
        {"activationThreshold": "a few"},
        {"onUnknown": "Hold"},
        {"aggregation": "mean"},
        {"gpuAggregation": "mean"},
        {"demandOnEmpty": "zero"},
        {"metricName": "gpu load"},
        {"threshold": 70},
    ],
)
def test_what_editors_can_see_is_invalid(changes: dict[str, Any]) -> None:
    metadata = {"workload": "bert", "threshold": "70", "scalerAddress": ADDRESS}
    assert is_valid(metadata, schema.metadata())
    assert not is_valid(metadata | changes, schema.metadata())
    assert not is_valid({**metadata, "threshold": {}}, schema.metadata())


def test_a_threshold_can_come_from_the_environment_and_not_be_missing() -> None:
    metadata = {"workload": "bert", "scalerAddress": ADDRESS}
    assert not is_valid(metadata, schema.metadata())
    assert is_valid({**metadata, "thresholdFromEnv": "X"}, schema.metadata())
    assert not is_valid({**metadata, "thresholdFromEnv": "X", "xFromEnv": "X"}, schema.metadata())


def test_our_examples_are_valid_and_their_triggers_are_looked_at() -> None:
    for path in SCALED:
        document = list(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))[-1]
        assert is_valid(document, schema.schema())
        for one in document["spec"]["triggers"]:
            one["metadata"]["treshold"] = "70"
        assert not is_valid(document, schema.schema())
