"""The JSON Schema for editors says what the reader does."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import trigger
from keda_gpu_scaler.errors import SpecError
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.trigger import KEYS
from testbed.triggers import access
from tests.repository.test_docs import ROOT

FILE = ROOT / "deploy" / "schema" / "scaledobject.json"
PROPERTIES = json.loads(FILE.read_text(encoding="utf-8"))["definitions"]["metadata"]["properties"]
SMALL = {"workload": "bert", "threshold": "70"}
WORDS = st.sampled_from(
    [
        *("70", "-1", "7e1", "nan", " 5 ", "1_0", "2m", "90s", "1h30m", "1.5h", "m", "5 m", "0s"),
        *("sum", "average", "max", "hold", "error", "zero", "inactive", "active", "Hold"),
        *("utilization", "memory", "number", "auto", "dcgm", "gpu-load", "s0-gpu", "-x", "a b", ""),
    ]
)


def is_valid(key: str, value: str) -> bool:
    """Tell whether the schema has this value for a key."""
    one = PROPERTIES[key]
    return re.search(one.get("pattern", ""), value) is not None and value in one.get(
        "enum", [value]
    )


def refused(metadata: dict[str, str]) -> set[str]:
    sources = access(metadata.get("source", "default"))
    try:
        trigger.parse(ScaledObject("inference", "bert"), metadata, sources)
    except SpecError as wrong:
        return {mistake.key for mistake in wrong.mistakes}
    return set()


@given(st.sampled_from(sorted(KEYS)), WORDS | st.text(max_size=20))
def test_what_the_scaler_takes_is_valid(key: str, value: str) -> None:
    assert key in refused({**SMALL, key: value}) or is_valid(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("signal", "load"), ("window", "90"), ("threshold", "a few"), ("metricName", "gpu load")],
)
def test_what_editors_can_see_is_invalid(key: str, value: str) -> None:
    assert not is_valid(key, value)
