"""The settings in effect, written as the YAML file of settings, without secrets.

Such a file can be used again where no secret was left out of it. Nothing in `serve` imports this
unless it is asked to print.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import yaml
from pydantic import BaseModel

from keda_gpu_scaler.settings import Settings
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.spec import durations


def as_file(chosen: Settings) -> dict[str, Any]:
    """Return the settings by the names that they have in the file; secrets are asterisks."""
    entries = dict(_entries(chosen))
    del entries["config"]  # what it says is among the others
    sources = {name: dict(_entries(source)) for name, source in chosen.sources.items()}
    return entries | {"sources": sources}


def as_yaml(entries: Mapping[str, Any]) -> str:
    """Return settings as the file."""
    text: str = yaml.safe_dump(dict(entries), sort_keys=False, allow_unicode=True)
    return text


def as_json(entries: Mapping[str, Any]) -> str:
    """Return settings as JSON."""
    return orjson.dumps(entries, option=orjson.OPT_INDENT_2).decode() + "\n"


def _entries(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """Yield each setting of a model with its value as one writes it; an empty one is not set."""
    # A secret is dumped as asterisks, and a URL without its query.
    dumped = model.model_dump(mode="json")
    for field, described in type(model).model_fields.items():
        name = str(described.validation_alias)
        if name in KINDS:
            continue
        value = dumped[field]
        if value is None:
            value = ""
        elif field.endswith("_seconds"):
            value = durations.text(value)
        yield name, value
