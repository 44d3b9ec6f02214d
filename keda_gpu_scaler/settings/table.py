"""The settings as rows, for the documentation and for the test that compares the two."""

from typing import NamedTuple

from pydantic.fields import FieldInfo

from keda_gpu_scaler import durations
from keda_gpu_scaler.settings import names, values
from keda_gpu_scaler.settings.process import Settings


class Row(NamedTuple):
    """One setting as people read about it."""

    variable: str
    """In the environment."""
    key: str
    """In the file."""
    default: str
    """Empty when there is none."""
    meaning: str


def describe() -> list[Row]:
    """Return every setting that has a short name, in the order of the models."""
    rows = [_row(name, name, field) for name, field in names.written_fields(Settings).items()]
    for kind, model in names.KINDS.items():
        for name, field in names.written_fields(model).items():
            rows.append(_row(f"{kind}_{name}", name, field))
    return rows


def _row(short_name: str, name: str, field: FieldInfo) -> Row:
    meaning = field.description or ""
    return Row(names.variable(short_name), short_name, _default(name, field), meaning)


def _default(name: str, field: FieldInfo) -> str:
    match field.default:
        case float(seconds):
            return durations.text(seconds)
        case int(size) if name.endswith("_bytes"):
            return values.size_text(size)
        case int() | str() | values.Address():
            return str(field.default)
        case _:
            return ""
