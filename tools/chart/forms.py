r"""The forms of settings in JSON Schema, each after its type in `settings.values`.

What is usual passes both: a test asks. A few things are left out that are not written in practice.
What depends on more than the form stays the scaler's to say: how long a duration may be, whether a
file is there, a pattern is RE2, two settings go together. An empty text counts as not set, so it is
let through.

Patterns are those of Go's `regexp`, which Helm uses: no lookahead, and `\p{L}` for letters.
"""

import types
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from annotated_types import Ge
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from keda_gpu_scaler.settings import values

Part = dict[str, Any]

SCALAR: Part = {"type": ["string", "number", "boolean"]}
"""Anything that YAML writes without brackets."""
_LONGEST_DURATION = 40
_SOME = r"\d+(\.\d+)?"
_DURATION = rf"({_SOME}d)?({_SOME}h)?({_SOME}m)?({_SOME}s)?({_SOME}ms)?"
_LARGEST_WHOLE = 2**31 - 1
"""As a number; Helm writes larger ones of a file of values with an exponent, which is not read."""

_LABEL = r"[a-z\d]([-a-z\d]{0,61}[a-z\d])?"
_SHORTER_LABEL = r"[a-z\d]([-a-z\d]{0,60}[a-z\d])?"
# Four such labels and their dots stay below the longest name of an object.
_OBJECT = rf"{_SHORTER_LABEL}(\.{_SHORTER_LABEL}){{0,3}}"
_RESOURCE = r"[a-z\d][-a-z\d.]{0,252}/[-a-zA-Z\d_.]{0,63}"
HEADER = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_PAIR = rf"[ \t]*{HEADER}[ \t]*=[\t -+\--~]*"
_JSON_TEXT = r'"([ !#-\[\]-~]|\\["\\/])*"'
_JSON_PAIR = rf'\s*"{HEADER}"\s*:\s*{_JSON_TEXT}\s*'
# Labels that begin with two underscores are Prometheus' own, `__name__` among them.
_MATCHER = (
    r"\s*([a-zA-Z][a-zA-Z0-9_]*|_([a-zA-Z0-9][a-zA-Z0-9_]*)?)\s*(=~|!~|!=|=)\s*"
    r'"([^"\\\x00-\x1f\x7f]|\\["\\nt])*"\s*'
)
SOURCE_NAME = f"^{_LABEL}$"


def of(field: FieldInfo, *, required: bool = False) -> Part:
    """Return the form of a setting.

    Args:
        field: the setting's field of a model.
        required: it has to be set, so that an empty text is not let through.
    """
    marks = list(_marks(field))
    if _is_path(field.annotation):
        return {"type": "string"}
    if choices := [choice for part in _parts(field.annotation) for choice in _choices(part)]:
        return {"enum": choices}
    form = next((form for mark, form in _FORMS if mark in marks), None) or next(
        (form for mark in marks for form in _general(mark)), SCALAR
    )
    if required and "pattern" in form:
        return {**form, "pattern": form["pattern"].removesuffix("?$") + "$"}
    return form


def _marks(field: object) -> Iterator[object]:
    """Yield what a setting's type has beside Python's types: validators and constraints."""
    if isinstance(field, FieldInfo):
        yield from field.metadata
        yield from _marks(field.annotation)
        return
    yield from getattr(field, "__metadata__", ())
    for inner in typing.get_args(field):
        yield from _marks(inner)


def _general(mark: object) -> Iterator[Part]:
    """Yield the form of a duration or a pattern."""
    if isinstance(mark, BeforeValidator) and mark.func.__qualname__.startswith("seconds."):
        yield _text(_DURATION, maxLength=_LONGEST_DURATION)
    if pattern := getattr(mark, "pattern", None):
        form = _text(pattern.removeprefix("^").removesuffix("$"))
        # What any number is written as has such a pattern.
        yield {**form, **SCALAR} if pattern.startswith(("^[^", "^[ ")) else form


def _parts(annotation: object) -> tuple[object, ...]:
    """Return a type, or each of several that a setting may have."""
    origin = typing.get_origin(annotation)
    return (
        typing.get_args(annotation) if origin in {typing.Union, types.UnionType} else (annotation,)
    )


def _is_path(annotation: object) -> bool:
    return annotation is Path or any(map(_is_path, typing.get_args(annotation)))


def _choices(part: object) -> Iterator[str]:
    """Yield the words of a type that is one of a few."""
    if isinstance(part, type) and issubclass(part, Enum):
        yield from (str(choice.value) for choice in part)
    if typing.get_origin(part) is typing.Literal:
        yield from map(str, typing.get_args(part))


def _text(pattern: str, **more: object) -> Part:
    return {"type": "string", "pattern": f"^({pattern})?$", **more}


def _texts(in_text: str, item: str) -> Part:
    pattern = rf"\s*{in_text}(\s*,\s*{in_text})*\s*,?\s*"
    items = {"type": "string", "pattern": f"^{item}$"}
    return {**_text(pattern), "type": ["string", "array"], "minItems": 1, "items": items}


_NAMESPACES: Part = {
    **_texts(_LABEL, _LABEL),
    "pattern": rf"^(\*|\s*{_LABEL}(\s*,\s*{_LABEL})*\s*,?\s*)?$",
    "items": {"type": "string"},
    "if": {"type": "array", "maxItems": 1},
    "then": {"items": {"pattern": rf"^(\*|{_LABEL})$"}},
    "else": {"items": {"pattern": f"^{_LABEL}$"}},
}
_FORMS: list[tuple[object, Part]] = [
    (mark, form)
    for kind, form in (
        # The chart's own check says what is wrong with an address, and shows no pattern.
        (values.Url, {"type": "string"}),
        (
            values.Target,
            {"type": ["string", "array"], "minItems": 1, "items": {"type": "string"}},
        ),
        (values.Namespaces, _NAMESPACES),
        (values.ObjectName, _texts(_OBJECT, _OBJECT)),
        (values.Resource, _texts(_RESOURCE, _RESOURCE)),
        (
            values.Headers,
            {
                **_text(
                    rf"{_HEADER_PAIR}(,{_HEADER_PAIR})*|\{{({_JSON_PAIR}(,{_JSON_PAIR})*|\s*)\}}"
                ),
                "type": ["string", "object"],
                "propertyNames": {"pattern": f"^{HEADER}$"},
                "additionalProperties": {"type": "string", "pattern": "^[\t -~]*$"},
            },
        ),
        (
            values.Parameter,
            {**_text("[0-9A-Za-z_.-]+"), "not": {"enum": ["query", "time", "timeout"]}},
        ),
        (values.Matchers, _text(f"{_MATCHER}(,{_MATCHER})*,?\\s*")),
        (
            values.Bytes,
            {
                **_text("[1-9][0-9]{0,14}([KMG]iB?)?"),
                "type": ["string", "integer"],
                "minimum": 1,
                "maximum": _LARGEST_WHOLE,
            },
        ),
    )
    for mark in typing.get_args(kind)[1:]
    if hasattr(mark, "func")
] + [
    (
        Ge(1),
        {
            **_text("0*[1-9][0-9]{0,17}"),
            "type": ["string", "integer"],
            "maxLength": _LONGEST_DURATION,
            "minimum": 1,
            "maximum": _LARGEST_WHOLE,
        },
    )
]
"""The form of each type, by what marks it."""
