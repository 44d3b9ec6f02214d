"""A user's PromQL → a parsed expression, or what is wrong with it and where. Pure.

Each refusal is a ValueError; its words follow "expected". They name the place and never repeat the
text, which may have come out of a Secret.

The parser says only that a text is not PromQL. The longest beginning that can still be completed
ends where the mistake is; what completes it is what was expected.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

import promql_parser
import re2
from promql_parser import Expr

from keda_gpu_scaler.query.promql import tree
from keda_gpu_scaler.query.promql.tree import Kind

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `[^`]*`
    | [0-9][0-9A-Za-z_.]* | [A-Za-z_][A-Za-z0-9_:]*
    | [=!<>]= | [=!]~ | .
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(_CLOSING.values())
_LONE = frozenset("\"'`")
"""A quote is a token of its own only where the closing quote is missing."""
_COMPLETIONS = (
    ("the end", ""),
    ("an operator", " + x"),
    ("an expression", " x"),
    ("a parenthesis", "(x)"),
    ("a parenthesis", "(x) (x)"),
    ("a parenthesis", ") (x"),
    ("a label matcher", ' x="x"'),
    ("= and a quoted text", '="x"'),
    ("a quoted text", '"x"'),
    ("a number", " 1m"),
    ("a comma", ", x"),
    ("a comma", ", x) (x"),
)


def tokens(text: str) -> list[tuple[int, int]]:
    """Return where each token of a text begins and ends, spaces and comments left out."""
    found = _TOKEN.finditer(text)
    return [match.span() for match in found if match["space"] is None]


def of_mistake(text: str, is_written_well: Callable[[str], bool]) -> tuple[int, str]:
    """Return the position of the first wrong token, and what was expected there.

    Args:
        text: a text that cannot be parsed.
        is_written_well: tells whether a text can be parsed; what it means may be wrong.
    """
    spans = tokens(text)
    fitting = bisect_left(
        range(1, len(spans) + 1),
        True,  # noqa: FBT003 - what the key returns
        key=lambda count: not any(_fitting(text[: spans[count - 1][1]], is_written_well)),
    )
    position = spans[fitting][0] if fitting < len(spans) else len(text)
    beginning = text[: spans[fitting - 1][1]] if fitting else ""
    words = list(dict.fromkeys(_fitting(beginning, is_written_well)))
    return position, _listed(words)


def unmatched(text: str) -> int | None:
    """Return the position of a bracket or quote that lacks its other half; None: there is none."""
    left_open, misplaced = _open(text)
    if misplaced is not None:
        return misplaced
    return left_open[-1][0] if left_open else None


def in_words(text: str, position: int) -> str:
    """Return a position as line and column, counted from 1."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return f"line {line}, column {column}"


def _fitting(beginning: str, is_written_well: Callable[[str], bool]) -> Iterator[str]:
    closing = _closing(beginning)
    for words, completion in _COMPLETIONS:
        if is_written_well(beginning + completion + closing):
            yield f"{closing[0]} or {words}" if closing and not completion else words


def _closing(beginning: str) -> str:
    """Return what closes the brackets that are open at the end of a beginning."""
    return "".join(closing for _, closing in reversed(_open(beginning)[0]))


def _open(text: str) -> tuple[list[tuple[int, str]], int | None]:
    """Return the open brackets, each with its closing one, and a token that fits none."""
    found: list[tuple[int, str]] = []
    for start, end in tokens(text):
        token = text[start:end]
        if token in _CLOSING:
            found.append((start, _CLOSING[token]))
        elif token in _ENDS and found and found[-1][1] == token:
            found.pop()
        elif token in _ENDS or token in _LONE:
            return found, start
    return found, None


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


_CHARACTERS = 2000
_TOKENS = 400
"""The parser's time grows with the square of the nesting: this much takes milliseconds."""
_DEPTH = 100
_PATTERN_BYTES = 64 * 1024
"""As RE2 counts: a thousand characters fit, a hundred letters of any alphabet do not."""
_QUOTES = frozenset("\"'`")
_NO_SYNTAX = "invalid promql query"
_IN_BRACKETS = ("unexpected ", "unclosed ", "unterminated ")
_FUNCTION = re.compile(r"(?:function|call to) (?:with name )?'([a-z_0-9]{1,40})'")
_REPEATED = re.compile(r"""(?: for | after |: |['"`]).*""", re.DOTALL)
"""Where the parser's message begins to repeat the text."""
_GIVEN = {
    Kind.SCALAR: "a scalar; vector(...) makes a vector of one, but it names no pod",
    Kind.MATRIX: "a range of each series; a function such as rate(...) makes a vector of it",
    Kind.STRING: "a text",
}


def expression(text: str) -> Expr:
    """Return the parsed expression, of any type.

    Raises:
        ValueError: it is not PromQL, or too large.
    """
    if not text:
        raise ValueError("a PromQL expression, such as sum(rate(http_requests_total[1m]))")
    if len(text) > _CHARACTERS:
        raise ValueError(f"a PromQL expression of at most {_CHARACTERS} characters")
    if len(tokens(text)) > _TOKENS:
        raise ValueError(f"a PromQL expression of at most {_TOKENS} names, numbers and signs")
    for begin, end in tokens(text):
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

    Whether it is a pattern is not known yet; users write no such strings for anything else.
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
        ValueError: it gives something else, or is not PromQL.
    """
    parsed = expression(text)
    given = tree.kind(parsed)
    if given is not Kind.VECTOR:
        raise ValueError(f"a PromQL expression for an instant vector, and this is {_GIVEN[given]}")
    return parsed


def number(text: str) -> Expr:
    """Return the parsed expression, which can give one number: a scalar, or a vector of one.

    Raises:
        ValueError: it gives something else, or is not PromQL.
    """
    parsed = expression(text)
    given = tree.kind(parsed)
    if given not in (Kind.VECTOR, Kind.SCALAR):
        raise ValueError(f"a PromQL expression for one number, and this is {_GIVEN[given]}")
    return parsed


def _mistake(text: str, words: str) -> str:
    if words == _NO_SYNTAX:
        position, expected = of_mistake(text, _is_written_well)
        return f"{in_words(text, position)} should be {expected}"
    named = _FUNCTION.search(words)
    called = named and re.search(rf"\b{named[1]}\s*\(", text)
    if called:
        return f"{in_words(text, called.start())}: {words}"
    shown, lonely = _REPEATED.sub("", words).strip(), unmatched(text)
    return shown if lonely is None else f"{in_words(text, lonely)}: {shown}"


def _is_written_well(text: str) -> bool:
    """Tell whether a text can be parsed as PromQL; what it means may be wrong."""
    try:
        promql_parser.parse(text)
    except ValueError as error:
        return str(error) != _NO_SYNTAX and not str(error).startswith(_IN_BRACKETS)
    return True
