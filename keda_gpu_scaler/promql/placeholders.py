r"""Placeholders in a user's PromQL: `{workload}`, `{namespace}` and `{podPattern}`. Pure.

They stand in string literals alone, so that a value is never read as PromQL: what is filled in is
quoted again as a whole. In a pattern, a name matches itself alone, and a pattern is kept together.
Braces outside of quotes are PromQL's own. In patterns, what RE2 reads as something else stays what
it is (`a{2}`, `\{`, `\p{Greek}`, classes), and so does `${1}` in what `label_replace` puts in.
A word in braces that is nearly a placeholder is refused; all others are the user's own text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from keda_gpu_scaler import errors
from keda_gpu_scaler.promql.lexer import MisplacedError, Token, tokens, unquoted
from keda_gpu_scaler.query.promql_texts import quoted

WORKLOAD, NAMESPACE, POD_PATTERN = "workload", "namespace", "podPattern"
NAMES = (WORKLOAD, NAMESPACE, POD_PATTERN)
_BY_LOWER_CASE = {name.lower(): name for name in NAMES}
_PLACEHOLDER = r"\{\ *([A-Za-z_][A-Za-z0-9_.\ -]*)\}"
_EXACT = re.compile(rf"\{{(?:{'|'.join(NAMES)})\}}")
_IN_PATTERN = re.compile(
    rf"""
    \\Q.*?(?:\\E|\Z) | \\[pPx]\{{[^{{}}\\]*\}} | \\.
    | \[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*(?:\]|\\?\Z)
    | {_PLACEHOLDER}
    """,
    re.VERBOSE | re.DOTALL,
)
"""Each looks at every character a few times at most, also where a bracket is never closed: a class
then ends with the text, so that nothing of it is read again."""
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Values:
    """What is filled in for one trigger."""

    namespace: str
    """The namespace of the measured pods."""
    workload: str | None
    """The workload's name; None: the trigger names none."""
    pod_pattern: str | None
    """RE2 text for the whole names of its pods; None: the trigger does not say which they are."""


class _Place(Enum):
    """What a string literal is read as."""

    TEXT = re.compile(_PLACEHOLDER)
    PATTERN = _IN_PATTERN
    REPLACEMENT = re.compile(rf"\$\$|\$\{{[^{{}}$]*\}}|{_PLACEHOLDER}", re.VERBOSE)


def are_in(text: str) -> bool:
    return _EXACT.search(text) is not None


def filled(text: str, values: Values) -> str:
    """Return a text with its placeholders filled in; one without any, or with a mistake, as it is.

    MisplacedError if one is misspelt or cannot stand there, or there is nothing to fill in.
    """
    try:
        query_tokens = tokens(text)
    except MisplacedError:
        return text  # its reader says what is wrong with it
    _check_quoted(query_tokens)
    pieces, end = list[str](), 0
    for token, place in _literals(query_tokens):
        try:
            literal = unquoted(token.text)
        except ValueError:
            continue  # likewise
        try:
            filled_literal = place.value.sub(partial(_value, place, values), literal)
        except ValueError as error:
            raise MisplacedError(token.start, str(error)) from error
        if filled_literal != literal:
            pieces += [text[end : token.start], quoted(filled_literal)]
            end = token.end
    return "".join([*pieces, text[end:]])


def _check_quoted(query_tokens: Sequence[Token]) -> None:
    """Refuse a placeholder outside of quotes; no braces of PromQL hold a name alone."""
    for opening, name, closing in zip(
        query_tokens, query_tokens[1:], query_tokens[2:], strict=False
    ):
        is_braced = (opening.text, closing.text) == ("{", "}")
        if is_braced and (placeholder := _BY_LOWER_CASE.get(name.text.lower())):
            raise MisplacedError(
                opening.start,
                f"a placeholder outside of quotes; {{{placeholder}}} goes into a string, as in "
                f'pod=~"{{{POD_PATTERN}}}"',
            )


def _literals(query_tokens: Iterable[Token]) -> Iterator[tuple[Token, _Place]]:
    calls: list[tuple[str, int]] = [("", 0)]
    before, is_call = "", False
    for token in query_tokens:
        if token.kind == "literal":
            yield token, _place(before, calls[-1])
        elif token.text == "(" and not is_call:
            calls.append(calls[-1])  # around a part of the outer call's argument
        elif token.text in _OPENING:
            calls.append((before if token.text == "(" else "", 0))
        elif token.text in _CLOSING and len(calls) > 1:
            calls.pop()
        elif token.text == ",":
            name, number = calls[-1]
            calls[-1] = name, number + 1
        before, is_call = token.text, token.kind == "name"


def _place(before: str, argument: tuple[str, int]) -> _Place:
    if before in {"=~", "!~"} or argument == ("label_replace", 4):
        return _Place.PATTERN
    return _Place.REPLACEMENT if argument == ("label_replace", 2) else _Place.TEXT


def _value(place: _Place, values: Values, match: re.Match[str]) -> str:
    """Return what stands in place of a match; ValueError if it cannot be filled in."""
    name = match[1]
    if name is None:
        return match[0]
    if name not in NAMES or match[0] != f"{{{name}}}":
        bare = re.sub("[ _-]", "", name.lower())
        meant = errors.nearest(bare, _BY_LOWER_CASE)
        if meant is None:
            return match[0]
        raise ValueError(
            f"no placeholder; did you mean {{{_BY_LOWER_CASE[meant]}}}? (for a brace itself, "
            "=~ and [{] in it)"
        )
    if name == POD_PATTERN:
        pattern = values.pod_pattern
        if pattern is None:
            raise ValueError(
                f"nothing to fill in for {{{POD_PATTERN}}}: the trigger has neither workload nor "
                "podPattern"
            )
        if place is not _Place.PATTERN:
            raise ValueError(f"{{{POD_PATTERN}}} is a pattern, and goes behind =~ or !~")
        return pattern if match[0] == match.string else f"(?:{pattern})"
    value = values.namespace if name == NAMESPACE else values.workload
    if value is None:
        raise ValueError(f"nothing to fill in for {{{name}}}: the trigger has no workload")
    if place is not _Place.PATTERN:
        return value
    itself = value.replace(".", "[.]")
    after = match.string[match.end() : match.end() + 1]
    return f"(?:{itself})" if after in {"*", "+", "?", "{"} else itself
