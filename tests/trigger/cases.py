"""Reading a trigger in tests: what it gives, or the lines of its message."""

from collections.abc import Mapping
from typing import Any

import pytest

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.spec.spec import TriggerSpec
from testbed.triggers import BERT, access

Given = Mapping[str, str | None]
"""Keys beside those of the smallest trigger; None: one of these is not given."""
MINIMAL = {"workload": "bert", "threshold": "70"}
DIRECT, INFLUXDB = "edge", "old"
"""The sources that understand no PromQL."""


def parse(given: Given, **terms: Any) -> TriggerSpec:
    """Return what the smallest trigger with these keys asks for."""
    allowed = access(
        *("default", "thanos", DIRECT, INFLUXDB),
        direct_sources=frozenset({DIRECT}),
        influxql_sources=frozenset({INFLUXDB}),
        **terms,
    )
    metadata = {key: text for key, text in {**MINIMAL, **given}.items() if text is not None}
    return trigger.parse(BERT, metadata, allowed)


def mistakes(given: Given, **terms: Any) -> list[str]:
    """Return the lines of the message, without the heading."""
    with pytest.raises(errors.SpecError) as caught:
        parse(given, **terms)
    return str(caught.value).splitlines()[1:]
