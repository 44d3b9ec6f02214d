"""Every setting as the documentation shows it."""

from typing import NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from keda_gpu_scaler.settings import Address, Settings
from keda_gpu_scaler.settings.loading import PREFIX, fields
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.trigger.access import Namespaces


class Row(NamedTuple):
    """One setting: its variable, its key in the file, its default if it has one, its meaning."""

    variable: str
    key: str
    default: str
    meaning: str


def describe(model: type[BaseModel] = Settings) -> list[Row]:
    """Return every setting of a model that has its own name."""
    return [
        Row(
            PREFIX + key.upper(),
            key,
            _default(key, field),
            " ".join((field.description or "").split()),
        )
        for key, field in fields(model)
    ]


def _default(key: str, field: FieldInfo) -> str:
    match field.default:
        case bool():
            return str(field.default).lower()
        case float(seconds):
            return durations.text(seconds)
        case int(size) if key.endswith("_bytes"):
            return f"{size // 2**20}MiB"
        case int() | str() | Address() | Namespaces():
            return str(field.default)
        case _:
            return ""
