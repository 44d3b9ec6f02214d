"""The trigger's metadata as a JSON Schema, for editors.

It has each key with its meaning and the form of its value, and less than the scaler's own reader:
what takes more than one key, PromQL or RE2 to judge is for `check`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from keda_gpu_scaler.demand import presets
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import Aggregation, GpuAggregation, OnEmpty, OnUnknown, Signal
from keda_gpu_scaler.trigger import KEDA_KEYS, KEYS
from keda_gpu_scaler.trigger.keys import FROM_ENV
from keda_gpu_scaler.trigger.metadata import METRIC_NAME, NUMBER
from testbed.programs import ROOT

FILE = ROOT / "deploy" / "schema" / "scaledobject.json"
_PAGE = "https://github.com/keda-gpu-scaler/keda-gpu-scaler/blob/main/docs/specification.md"


def _pattern(of: re.Pattern[str]) -> dict[str, Any]:
    # The reader strips a value before it looks at it.
    return {"pattern": rf"^\s*(?:{of.pattern})\s*$"}


def _one_of(words: Iterable[str]) -> dict[str, Any]:
    return {"enum": [str(word) for word in words]}


_NUMBER, _DURATION = _pattern(NUMBER), _pattern(durations.DURATION)
_FORMS: Mapping[str, dict[str, Any]] = {
    "signal": _one_of(Signal),
    "profile": _one_of(profiles.NAMES),
    "threshold": _NUMBER,
    "aggregation": _one_of(Aggregation),
    "gpuAggregation": _one_of(GpuAggregation),
    "window": _DURATION,
    "activationThreshold": _NUMBER,
    "activationWindow": _DURATION,
    "demandPreset": _one_of(presets.PRESETS),
    "demandActivationThreshold": _NUMBER,
    "demandThreshold": _NUMBER,
    "demandOnEmpty": _one_of(OnEmpty),
    "startTimeout": _DURATION,
    "warmup": _DURATION,
    "onUnknown": _one_of(OnUnknown),
    "forFormula": _one_of(("true", "false")),
    "maxAge": _DURATION,
    "metricName": _pattern(METRIC_NAME),
}
"""The form of a value; that of the other keys is any text."""


def schema() -> dict[str, Any]:
    """Return the schema of a ScaledObject whose triggers for this scaler are looked at."""
    ours = {
        "required": ["type", "metadata"],
        "properties": {
            "type": {"enum": ["external", "external-push"]},
            "metadata": {
                "required": ["scalerAddress"],
                "properties": {"scalerAddress": {"pattern": "gpu-scaler"}},
            },
        },
    }
    item = {"if": ours, "then": {"properties": {"metadata": {"$ref": "#/definitions/metadata"}}}}
    triggers = {"type": "array", "items": item}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A ScaledObject with triggers for keda-gpu-scaler",
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"triggers": triggers}}},
        "definitions": {"metadata": metadata()},
    }


def metadata() -> dict[str, Any]:
    """Return the schema of the metadata of a trigger for this scaler."""
    known = "|".join((*KEYS, *sorted(KEDA_KEYS)))
    return {
        "title": "What a trigger asks of keda-gpu-scaler",
        "description": _PAGE,
        "type": "object",
        "properties": {
            **{key: _property(key) for key in KEYS},
            **{key: {"type": "string", "description": "KEDA's own"} for key in sorted(KEDA_KEYS)},
        },
        "patternProperties": {
            f"^(?:{known}){FROM_ENV}$": {
                "type": "string",
                "description": "the name of a variable of the target's container",
            }
        },
        "additionalProperties": False,
        "required": ["scalerAddress"],
        "anyOf": [
            {"required": [key + suffix]}
            for key in ("threshold", "demandPreset", "demandQuery")
            for suffix in ("", FROM_ENV)
        ],
    }


def _property(key: str) -> dict[str, Any]:
    described = KEYS[key]
    usual = {} if described.default is None else {"default": described.default}
    return {"type": "string", "description": described.meaning, **usual, **_FORMS.get(key, {})}


def text() -> str:
    """Return the file's content."""
    return json.dumps(schema(), indent=2) + "\n"
