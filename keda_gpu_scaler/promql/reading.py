"""A user's text → a parsed expression, or what is wrong with it.

Pure. Each refusal is a ValueError whose words follow "expected". They name the place and never
repeat the text, which may have come out of a Secret.
"""

import re

import promql_parser
import re2
from promql_parser import Expr

from keda_gpu_scaler.promql import place, tree
from keda_gpu_scaler.promql.tree import Kind

_CHARACTERS = 2000
_TOKENS = 400
"""The parser's time grows with the square of what is nested: so much takes it milliseconds."""
_DEPTH = 100
_PATTERN_BYTES = 64 * 1024
"""As RE2 counts: a thousand characters fit, any hundred letters of any alphabet do not."""
_QUOTES = frozenset("\"'`")
_NO_SYNTAX = "invalid promql query"
_IN_BRACKETS = ("unexpected ", "unclosed ", "unterminated ")
_FUNCTION = re.compile(r"(?:function|call to) (?:with name )?'([a-z_0-9]{1,40})'")
_REPEATED = re.compile(r"""(?: for | after |: |['"`]).*""", re.DOTALL)
"""Where the parser begins to repeat what was written."""
_GIVEN = {
    Kind.SCALAR: "a scalar; vector(...) makes a vector of one, but it names no pod",
    Kind.MATRIX: "a range of each series; a function such as rate(...) makes a vector of it",
    Kind.STRING: "a text",
}


def expression(text: str) -> Expr:
    """Return the parsed expression, whatever it gives.

    Raises:
        ValueError: it is no PromQL, or more of it than anybody writes.
    """
    if not text:
        raise ValueError("a PromQL expression, such as sum(rate(http_requests_total[1m]))")
    if len(text) > _CHARACTERS:
        raise ValueError(f"a PromQL expression of at most {_CHARACTERS} characters")
    if len(place.tokens(text)) > _TOKENS:
        raise ValueError(f"a PromQL expression of at most {_TOKENS} names, numbers and signs")
    for begin, end in place.tokens(text):
        _check_pattern(text[begin:end])
    try:
        parsed: Expr = promql_parser.parse(text)
    except ValueError as error:
        raise ValueError(f"a PromQL expression: {_mistake(text, str(error))}") from error
    if max(depth for _, depth in tree.nodes(parsed)) > _DEPTH:
        raise ValueError(f"a PromQL expression nested at most {_DEPTH} deep")
    return parsed


def _check_pattern(token: str) -> None:
    """Refuse a string that would be a huge pattern: the parser compiles it, which takes seconds.

    Whether it is one is not known yet; people write no such strings for anything else.
    """
    if token[0] not in _QUOTES:
        return
    written = token[1:-1]
    if token[0] != "`":
        written = written.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
    options = re2.Options()
    options.max_mem, options.log_errors = _PATTERN_BYTES, False
    try:
        re2.compile(written, options)
    except re2.error as error:
        if "too large" in str(error):
            raise ValueError("a PromQL expression whose patterns are of a usual size") from error


def instant_vector(text: str) -> Expr:
    """Return the parsed expression, which gives an instant vector.

    Raises:
        ValueError: it gives something else, or is no PromQL.
    """
    parsed = expression(text)
    given = tree.kind(parsed)
    if given is not Kind.VECTOR:
        raise ValueError(f"a PromQL expression for an instant vector, and this is {_GIVEN[given]}")
    return parsed


def number(text: str) -> Expr:
    """Return the parsed expression, which can give one number: a scalar, or a vector of one.

    Raises:
        ValueError: it gives something else, or is no PromQL.
    """
    parsed = expression(text)
    given = tree.kind(parsed)
    if given not in (Kind.VECTOR, Kind.SCALAR):
        raise ValueError(f"a PromQL expression for one number, and this is {_GIVEN[given]}")
    return parsed


def _mistake(text: str, words: str) -> str:
    if words == _NO_SYNTAX:
        position, expected = place.of_mistake(text, _is_written_well)
        return f"{place.in_words(text, position)} should be {expected}"
    named = _FUNCTION.search(words)
    called = named and re.search(rf"\b{named[1]}\s*\(", text)
    if called:
        return f"{place.in_words(text, called.start())}: {words}"
    shown, lonely = _REPEATED.sub("", words).strip(), place.unmatched(text)
    return shown if lonely is None else f"{place.in_words(text, lonely)}: {shown}"


def _is_written_well(text: str) -> bool:
    """Tell whether a text can be read as PromQL; what it means may be wrong."""
    try:
        promql_parser.parse(text)
    except ValueError as error:
        return str(error) != _NO_SYNTAX and not str(error).startswith(_IN_BRACKETS)
    return True
