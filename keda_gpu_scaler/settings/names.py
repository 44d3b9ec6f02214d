"""How settings are called, in the environment and in the file, and what people read about them."""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from keda_gpu_scaler import access, durations
from keda_gpu_scaler.settings import sources, values, webhook

PREFIX = "KEDA_GPU_SCALER_"
GROUPS: Mapping[str, type[BaseModel]] = {**sources.KINDS, "webhook": webhook.WebhookSettings}
"""Settings that begin with the same word, which is a field of their model."""


class Row(NamedTuple):
    """One setting: its variable, its key in the file, its default if it has one, its meaning."""

    variable: str
    key: str
    default: str
    meaning: str


def rows(model: type[BaseModel], start: str = "") -> Iterator[Row]:
    """Yield every setting of a model that has a name of its own, `start` in front of it."""
    for field in model.model_fields.values():
        name = str(field.validation_alias)
        if name in GROUPS:
            yield from rows(GROUPS[name], f"{name}_")
        elif name not in ("type", "sources"):
            meaning = " ".join((field.description or "").split())
            yield Row(
                f"{PREFIX}{start}{name}".upper(), start + name, _default(name, field), meaning
            )


def _default(name: str, field: FieldInfo) -> str:
    match field.default:
        case bool():
            return str(field.default).lower()
        case float(seconds):
            return durations.text(seconds)
        case int(size) if name.endswith("_bytes"):
            return values.size_text(size)
        case int() | str() | values.Address() | access.Namespaces():
            return str(field.default)
        case _:
            return ""


def divide(
    given: Mapping[str, Any], known: Collection[str], full: Callable[[str], str] = str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide what was given into settings, and hints for what is none, under its full name.

    The models forbid what they do not know, and so refuse it together with all other mistakes.
    """
    settings = {name: value for name, value in given.items() if name in known}
    return settings, {full(name): _hint(name, known) for name in given if name not in known}


def _hint(name: str, known: Collection[str]) -> str:
    short = {each.removeprefix(PREFIX).lower(): each for each in known}
    near = difflib.get_close_matches(name.removeprefix(PREFIX).lower(), short, n=1)
    return f"did you mean {short[near[0]]}?" if near else "expected a setting that exists"
