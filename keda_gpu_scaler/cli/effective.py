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
from keda_gpu_scaler.settings.names import GROUPS
from keda_gpu_scaler.spec import durations


def as_file(chosen: Settings) -> dict[str, Any]:
    """Return the settings by the names that they have in the file; secrets are asterisks."""
    found = dict(_entries(chosen))
    del found["config"]  # what it says is among the others
    return found | {"sources": {name: dict(_entries(one)) for name, one in chosen.sources.items()}}


def as_yaml(found: Mapping[str, Any]) -> str:
    """Return settings as the file."""
    text: str = yaml.safe_dump(dict(found), sort_keys=False, allow_unicode=True)
    return text


def as_json(found: Mapping[str, Any]) -> str:
    """Return settings as JSON."""
    return orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n"


def _entries(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """Yield each setting of a model with its value as one writes it; an empty one is not set."""
    # A secret is dumped as asterisks, and a URL without its query.
    written = model.model_dump(mode="json")
    for field, described in type(model).model_fields.items():
        name = str(described.validation_alias)
        if name in GROUPS:
            if name == "webhook":
                inner = getattr(model, field)
                yield from ((f"{name}_{key}", value) for key, value in _entries(inner))
        else:
            yield name, _text(field, written[field])


def _text(field: str, value: Any) -> Any:  # noqa: ANN401 - any of JSON's
    if value is None:
        return ""
    return durations.text(value) if field.endswith("_seconds") else value
