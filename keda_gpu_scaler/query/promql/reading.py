"""A user's PromQL → a tree, or what is wrong with it. Pure.

Each refusal is a ValueError; its words follow "expected". They name a place where one is known and
never repeat the text, which may have come out of a Secret. The work is bounded before it begins: by
the text's size for its tokens, by their number for the parser, and by RE2's memory for patterns.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import re2

from keda_gpu_scaler.query.promql import tree
from keda_gpu_scaler.query.promql.tokens import (
    MisplacedError,
    Token,
    check_numbers,
    tokens,
    unmatched,
)
from keda_gpu_scaler.query.promql.tree import Call, Kind, Matcher, Node, Selector, Text

CHARACTERS = 2000
FILLED_CHARACTERS = 8000
"""With placeholders filled in: with the matchers that confine it, it has to fit a request."""
_TOKENS = 400
"""The parser's time grows with the square of the nesting: this much takes milliseconds."""
_DEPTH = 100
_PATTERN_BYTES = 64 * 1024
"""As RE2 counts: a thousand characters fit, a hundred letters of any alphabet do not."""
_LARGE_PARTS = 32
"""Of all patterns of a query: each takes RE2 up to half a millisecond."""
_LARGE_PART = re.compile(r"\\[pP]|\{")
"""Letters of an alphabet, or a repetition."""
_TOO_LARGE = "a PromQL expression whose patterns are of a usual size"
_NO_PATTERN = "a PromQL expression whose patterns RE2 can read"
_FUNCTION = re.compile(r"(?:function|call to) (?:with name )?'([A-Za-z_0-9]{1,40})'")
_REPEATED = re.compile(r"(?: for | after |: |\. ).*", re.DOTALL)
"""Where the parser's message begins to repeat the text."""
_QUOTED = re.compile("'.*'", re.DOTALL)
_PLAIN = {
    "invalid promql query": "this is none, and Prometheus' own query page shows where",
    "ParseFloatError": "a number in it is none that the parser reads",
}
"""What is said instead of some messages."""


class Wanted(NamedTuple):
    """What an expression is for."""

    name: str
    kinds: tuple[Kind, ...]


INSTANT_VECTOR = Wanted("an instant vector", (Kind.VECTOR,))
NUMBER = Wanted("one number", (Kind.VECTOR, Kind.SCALAR))
"""A scalar, or a vector of one element."""
_GIVEN = {
    Kind.SCALAR: "a scalar; vector(...) makes a vector of one, but it names no pod",
    Kind.MATRIX: "a range of each series; a function such as rate(...) makes a vector of it",
    Kind.STRING: "a text",
}


def expression(text: str, wanted: Wanted, longest: int = CHARACTERS) -> Node:
    """Return the tree of an expression for what is wanted, of at most `longest` characters."""
    if not text:
        raise ValueError("a PromQL expression, such as sum(rate(http_requests_total[1m]))")
    if len(text) > longest:
        filled = "" if longest == CHARACTERS else " with its placeholders filled in"
        raise ValueError(f"a PromQL expression of at most {longest} characters{filled}")
    try:
        root = _tree_of(text)
    except MisplacedError as error:
        raise misplaced(text, error) from error
    if max(depth for _, depth in tree.nodes(root)) > _DEPTH:
        raise ValueError(f"a PromQL expression nested at most {_DEPTH} deep")
    _check_patterns(root)
    given = tree.kind(root)
    if given not in wanted.kinds:
        raise ValueError(f"a PromQL expression for {wanted.name}, and this is {_GIVEN[given]}")
    return root


def _tree_of(text: str) -> Node:
    query_tokens = tokens(text)
    if len(query_tokens) > _TOKENS:
        raise ValueError(f"a PromQL expression of at most {_TOKENS} names, numbers and signs")
    check_numbers(query_tokens)
    from keda_gpu_scaler.query.promql import parsing  # noqa: PLC0415 - it loads the parser, for queries and matchers only

    try:
        return parsing.tree_of(query_tokens)
    except MisplacedError:
        raise
    except ValueError as error:
        raise _mistake(query_tokens, str(error)) from error


def _mistake(query_tokens: Sequence[Token], words: str) -> ValueError:
    """Return the parser's refusal in plain words, with a place if its tokens show one."""
    function = _FUNCTION.search(words)
    if function is None:
        message, position = _QUOTED.sub("...", _REPEATED.sub("", words)), unmatched(query_tokens)
    else:
        pairs = ((token.start, token.text + after.text) for token, after in pairwise(query_tokens))
        calls = (start for start, text in pairs if text == f"{function[1]}(")
        message, position = words, next(calls, None)
    if position is None:
        return ValueError(f"a PromQL expression: {_PLAIN.get(message, message)}")
    return MisplacedError(position, message)


def _check_patterns(root: Node) -> None:
    """Refuse patterns that RE2 cannot read or that are huge, and selectors of everything."""
    patterns = _Patterns()
    for node, _ in tree.nodes(root):
        match node:
            case Selector(alternatives):
                take_none = [
                    patterns.takes_none(matcher)
                    for matchers in alternatives
                    for matcher in matchers
                ]
                if all(take_none):
                    raise ValueError(
                        "a PromQL expression whose selectors each name a metric, or a label that "
                        "has to be there"
                    )
            case Call("label_replace", [*_, Text(pattern)]):
                patterns.compiled(pattern)


class _Patterns:
    """The patterns of one expression, each compiled once, and of a usual size together."""

    def __init__(self) -> None:
        self._compiled: dict[str, Any] = {}
        self._large_parts = 0

    def takes_none(self, matcher: Matcher) -> bool:
        """Tell whether a matcher fits a series without the label."""
        if matcher.sign in {"=", "!="}:
            return (matcher.sign == "=") is (matcher.value == "")
        return (matcher.sign == "=~") is (self.compiled(matcher.value).search("") is not None)

    def compiled(self, pattern: str) -> Any:  # noqa: ANN401 - RE2 has no types
        """Return a pattern as Prometheus compiles it."""
        if pattern not in self._compiled:
            self._large_parts += len(_LARGE_PART.findall(pattern))
            if self._large_parts > _LARGE_PARTS:
                raise ValueError(_TOO_LARGE)
            self._compiled[pattern] = _compiled(pattern)
        return self._compiled[pattern]


def _compiled(pattern: str) -> Any:  # noqa: ANN401
    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = _PATTERN_BYTES, False, True
    try:
        return re2.compile(f"^(?s:{pattern})$", options)
    except re2.error as error:
        is_large = "too large" in str(error)
        raise ValueError(_TOO_LARGE if is_large else _NO_PATTERN) from error


def misplaced(text: str, error: MisplacedError) -> ValueError:
    """Return the words for what is wrong at one place of a text."""
    line = text.count("\n", 0, error.position) + 1
    column = error.position - text.rfind("\n", 0, error.position)
    return ValueError(f"a PromQL expression: line {line}, column {column}: {error}")
