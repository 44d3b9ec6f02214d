"""The part of the chart's schema that says which settings there are, made from the settings.

Names and forms are in it (`tools.chart.forms`); what depends on more than the text of a
setting, the scaler itself says when it starts.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from keda_gpu_scaler.settings import process, sources
from keda_gpu_scaler.settings.loading import fields
from testbed import charts
from testbed.charts import CHART
from testbed.setting_rows import Row, describe
from tools.chart import forms

SCHEMA = CHART / "values.schema.json"
Part = dict[str, Any]

PASSED_ON = "No value of this chart; it says which one is meant."
"""The description of names that are let through to a message that the schema cannot give."""


def definitions() -> Part:
    """Return the definitions of the settings, and of the sources of each kind."""
    kinds = {f"source-{kind}": _source(kind) for kind in sources.KINDS}
    return {
        "url": {"type": "string"},
        "settings": _settings(),
        **kinds,
    }


def text() -> str:
    """Return the whole schema with these definitions in it, and the names that are passed on."""
    written = json.loads(SCHEMA.read_text())
    written["$defs"] |= definitions()
    _forget_names(written)
    for path in charts.guesses():
        *parents, name = path.split(".")
        part = written
        for parent in parents:
            part = part["properties"][parent]
        if name in part["properties"]:
            raise ValueError(f"{path} is a value of the chart")
        part["properties"][name] = {"description": PASSED_ON}
    return json.dumps(written, indent=2, ensure_ascii=False) + "\n"


def _forget_names(part: Part) -> None:
    """Leave out the names that were passed on when the schema was written."""
    inner = part.get("properties", {})
    part |= {"properties": {n: p for n, p in inner.items() if p.get("description") != PASSED_ON}}
    for field in part["properties"].values():
        if "properties" in field:
            _forget_names(field)


def _settings() -> Part:
    rows = [row for row in describe() if row.key != "config"]
    named = {
        "type": "object",
        "propertyNames": {"pattern": forms.SOURCE_NAME},
        "additionalProperties": {"allOf": list(_by_kind())},
    }
    return _strict({**_properties(process.Settings, rows), "sources": named})


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
    properties = {"type": {"const": kind}, **_properties(model, describe(model), required)}
    return {**_strict(properties), "required": ["type", *required]}


def _properties(
    model: type[BaseModel], rows: Iterable[Row], required: Collection[str] = ()
) -> Part:
    found = dict(fields(model))
    # The chart itself says which value decides such a setting, whatever is in it.
    decided = charts.decided() if model is process.Settings else set()
    return {
        row.key: {
            "description": row.meaning,
            **(
                forms.SCALAR
                if row.key in decided
                else forms.of(found[row.key], required=row.key in required)
            ),
        }
        for row in rows
    }


def _strict(properties: Part) -> Part:
    return {"type": "object", "additionalProperties": False, "properties": properties}
