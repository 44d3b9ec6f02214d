"""The names of settings in the environment and in the YAML file, and their explanations.

The file uses the names of the environment, in lower case and without the prefix; in addition it can
define named sources.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from keda_gpu_scaler.settings import ports, process, sources, values
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.trigger import access

PREFIX = "KEDA_GPU_SCALER_"
GROUPS: Mapping[str, type[BaseModel]] = {**sources.KINDS, "webhook": ports.WebhookSettings}
"""Groups of settings: their names begin with the same word, which is a field of the model."""
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


def describe() -> list[Row]:
    """Return every setting that has its own name, in the order of the models."""
    return list(rows(process.Settings))


def rows(model: type[BaseModel], start: str = "") -> Iterator[Row]:
    """Yield every setting of a model that has its own name, with `start` in front of the name."""
    for field in model.model_fields.values():
        name = str(field.validation_alias)
        if name in GROUPS:
            yield from rows(GROUPS[name], f"{name}_")
        elif name not in ("type", "sources"):
            key, meaning = start + name, " ".join((field.description or "").split())
            yield Row(PREFIX + key.upper(), key, _default(name, field), meaning)


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
