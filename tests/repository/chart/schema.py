"""The part of the chart's schema that says which settings there are, made from the settings.

Only names and forms are in it; whether a value is right, the scaler itself says when it starts.
"""

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any

from keda_gpu_scaler.settings import names, process, sources
from tests.repository.chart.charts import CHART

SCHEMA = CHART / "values.schema.json"
Part = dict[str, Any]

_SCALAR = ["string", "number", "boolean"]
_LIST_OR_TEXT = {"type": ["string", "array"], "items": {"type": "string"}}
_FORMS: dict[str, Part] = {
    "targets": _LIST_OR_TEXT,
    "peers": _LIST_OR_TEXT,
    "namespaces": _LIST_OR_TEXT,
    "claims_without_gpus": _LIST_OR_TEXT,
    "headers": {"type": ["string", "object"], "additionalProperties": {"type": "string"}},
}
"""Settings that may be more than one word in the file; all others are YAML scalars."""


def definitions() -> Part:
    """Return the definitions of the settings, and of the sources of each kind."""
    kinds = {f"source-{kind}": _source(kind) for kind in sources.KINDS}
    return {"settings": _settings(), **kinds}


def text() -> str:
    """Return the whole schema with these definitions in it."""
    written = json.loads(SCHEMA.read_text())
    written["$defs"] |= definitions()
    return json.dumps(written, indent=2) + "\n"


def _settings() -> Part:
    rows = (row for row in names.rows(process.Settings) if row.key != "config")
    named = {"type": "object", "additionalProperties": {"allOf": list(_by_kind())}}
    properties = _properties(rows)
    for name, choices in _choices():
        properties[name] = {"description": properties[name]["description"], "enum": choices}
    return _strict({**properties, "sources": named})


def _choices() -> Iterator[tuple[str, list[str]]]:
    """Yield the settings that are one word of a few."""
    for field in process.Settings.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Enum):
            yield str(field.validation_alias), [str(choice.value) for choice in field.annotation]


def _by_kind() -> Iterator[Part]:
    """Yield one condition for each kind, so that a message is about the kind in the settings."""
    yield {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(sources.KINDS)}},
    }
    for kind in sources.KINDS:
        condition = {"required": ["type"], "properties": {"type": {"const": kind}}}
        yield {"if": condition, "then": {"$ref": f"#/$defs/source-{kind}"}}


def _source(kind: str) -> Part:
    model = sources.KINDS[kind]
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    properties = {"type": {"const": kind}, **_properties(names.rows(model))}
    return {**_strict(properties), "required": ["type", *required]}


def _properties(rows: Iterator[names.Row]) -> Part:
    return {row.key: {"description": row.meaning, **_form(row.key)} for row in rows}


def _form(key: str) -> Part:
    return _FORMS.get(key.rpartition("_")[2], {"type": _SCALAR})


def _strict(properties: Part) -> Part:
    return {"type": "object", "additionalProperties": False, "properties": properties}
