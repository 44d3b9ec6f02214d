"""The names of settings in the environment and in the YAML file, and their explanations.

The file uses the names of the environment, in lower case and without the prefix; in addition it can
define named sources.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from keda_gpu_scaler.settings import process, values
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.trigger import access

PREFIX = "KEDA_GPU_SCALER_"
REMOVED: Mapping[str, str] = {
    "observe": (
        "observing is a command of its own: run `keda-gpu-scaler observe FOLDER` beside the scaler"
    ),
}
"""What to use instead of a setting that earlier versions had, by its key in the file."""


class Row(NamedTuple):
    """One setting: its variable, its key in the file, its default if it has one, its meaning."""

    variable: str
    key: str
    default: str
    meaning: str


def describe(model: type[BaseModel] = process.Settings, start: str = "") -> list[Row]:
    """Return every setting of a model that has its own name, with `start` in front of the name."""
    rows: list[Row] = []
    for field in model.model_fields.values():
        name = str(field.validation_alias)
        if name in KINDS:
            rows += describe(KINDS[name], f"{name}_")
        elif name not in ("type", "sources"):
            key, meaning = start + name, " ".join((field.description or "").split())
            rows.append(Row(PREFIX + key.upper(), key, _default(name, field), meaning))
    return rows


def _default(name: str, field: FieldInfo) -> str:
    match field.default:
        case bool():
            return str(field.default).lower()
        case float(seconds):
            return durations.text(seconds)
        case int(size) if name.endswith("_bytes"):
            return f"{size // 2**20}MiB"
        case int() | str() | values.Address() | access.Namespaces():
            return str(field.default)
        case _:
            return ""
