"""The admission policy knows the names that the scaler knows, and no others.

What it does with them is proved on a real API server, in tests/e2e/test_admission_policy.py.
"""

import ast
from functools import cache
from typing import Any

import pytest

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.spec.spec import (
    Aggregation,
    GpuAggregation,
    OnEmpty,
    OnUnknown,
    ScaledObject,
    Signal,
)
from keda_gpu_scaler.trigger import KEDA_KEYS, KEYS, metadata
from testbed import charts
from testbed.triggers import access

pytestmark = pytest.mark.needs("helm")


@cache
def policy() -> dict[str, Any]:
    found = charts.objects(charts.template("--set=admissionPolicy.enabled=true"))
    (one,) = (each for each in found if each["kind"] == "ValidatingAdmissionPolicy")
    specification: dict[str, Any] = one["spec"]
    return specification


def names(variable: str) -> Any:
    """Return what a variable lists; lists of texts are written alike in CEL and in Python."""
    (found,) = (one for one in policy()["variables"] if one["name"] == variable)
    return ast.literal_eval(found["expression"])


def test_it_knows_every_key_of_a_trigger_and_no_other() -> None:
    assert names("keys") == list(KEYS)
    assert set(names("kedaKeys")) == KEDA_KEYS


def test_it_knows_every_choice() -> None:
    kinds = {
        "signal": Signal,
        "aggregation": Aggregation,
        "gpuAggregation": GpuAggregation,
        "onUnknown": OnUnknown,
        "demandOnEmpty": OnEmpty,
    }
    choices: dict[str, list[str]] = {key: list(kind) for key, kind in kinds.items()}
    assert names("choices") == choices | {"forFormula": ["true", "false"]}


def test_it_knows_which_signals_are_percentages_and_which_have_no_usual_level() -> None:
    assert set(names("percentages")) == {one for one in Signal if one.is_percentage}
    assert set(names("withoutUsualLevel")) == metadata.NO_USUAL_LEVEL


def test_it_knows_which_keys_are_durations() -> None:
    refused = "expected a duration such as 30s, 2m or 1h30m"
    for key in KEYS:
        metadata = {"workload": "bert", "threshold": "70", "demandQuery": "x", key: "?"}
        with pytest.raises(errors.SpecError) as raised:
            trigger.parse(ScaledObject("ml", "bert"), metadata, access())
        assert (key in names("durations")) == (f'{key}: "?"; {refused}' in str(raised.value)), key
