"""What a person reads about wrong settings: its name as written, its value, what was expected.

A secret is never shown, nor what may be one: the value of an unknown setting, or what stands before
an @ in a URL.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from keda_gpu_scaler.settings import names

_SHOWN_CHARACTERS = 100
_BEFORE_AT = re.compile(r"[^/]*@")


class Written(NamedTuple):
    """A value, and what the person who wrote it calls it."""

    name: str
    value: Any


Values = Mapping[names.Path, Written]


def message(mistakes: list[str]) -> str:
    """Return one line per mistake below a heading."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return "\n".join([f"{count} in the process settings:", *(f"- {text}" for text in mistakes)])


def unknown(written_name: str, key: str, known: Collection[str], form: str = "{}") -> str:
    """Return the mistake of a setting that does not exist, with the nearest one that does.

    Args:
        written_name: what the person wrote.
        key: the part of it that was looked up.
        known: what could have stood there.
        form: how a known key is written in full.
    """
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {form.format(near[0])}?" if near else "expected a setting that exists"
    return f"{written_name}: unknown setting; {hint}"


def together(written_names: Iterable[str], expected: str) -> str:
    """Return the mistake of settings that do not go together."""
    return f"{', '.join(written_names)}; expected {expected}"


def mistakes(error: ValidationError, values: Values) -> list[str]:
    """Return one text for each thing that the models refused."""
    details = error.errors(include_url=False)
    # A default that follows from another setting fails with that one, and adds nothing.
    own = [detail for detail in details if detail["type"] != "default_factory_not_called"]
    return [_mistake(detail, values) for detail in own]


def _mistake(detail: ErrorDetails, values: Values) -> str:
    path, kind = _path(detail)
    context = detail.get("ctx", {})
    if detail["type"] == "conflict":
        return _conflict(context, path, kind, values)
    if detail["type"] == "missing":
        return f"{_name(path, kind, values)}: not set; expected a value"
    if detail["type"] == "extra_forbidden" and kind is not None:
        known = names.written_fields(names.KINDS[kind])
        return unknown(_name(path, kind, values), path[-1], known)
    return _wrong_value(path, kind, values, _expectation(detail))


def _path(detail: ErrorDetails) -> tuple[names.Path, str | None]:
    """Return where the mistake is, and the kind of source it is in, if it is in one."""
    path = tuple(str(part) for part in detail["loc"] if part != "[key]")
    if detail["type"].startswith("union_tag"):
        return (*path, "type"), None
    if path[0] == "sources" and len(path) > 2:  # noqa: PLR2004 - pydantic puts the kind third
        return path[:2] + path[3:], path[2]
    return path, None


def _conflict(
    context: Mapping[str, Any], path: names.Path, kind: str | None, values: Values
) -> str:
    paths = [(*path, field) for field in context["fields"]]
    if len(paths) == 1:
        return _wrong_value(paths[0], kind, values, context["expected"])
    return together((_name(path, kind, values) for path in paths), context["expected"])


def _wrong_value(path: names.Path, kind: str | None, values: Values, expected: str) -> str:
    name = _name(path, kind, values)
    if path not in values:
        return f"{name}; expected {expected}"
    if path[-1] in names.SECRETS:
        return f"{name}: a value that is not shown; expected {expected}"
    return f'{name}: "{_shown(values[path].value)}"; expected {expected}'


def _name(path: names.Path, kind: str | None, values: Values) -> str:
    if path in values:
        return values[path].name
    short = names.short_name(path, kind)
    return names.variable(short) if short else ".".join(path)


def _shown(value: object) -> str:
    text = _BEFORE_AT.sub("***@", str(value)).encode("unicode_escape").decode("ascii")
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _expectation(detail: ErrorDetails) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    if detail["type"].startswith("union_tag"):
        return " or ".join(names.KINDS)
    return detail["msg"].removeprefix("Input should be ")
