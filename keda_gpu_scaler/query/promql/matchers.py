"""Label matchers for every selector of a query, added to its tree and never to its text.

Pure. They confine all queries of a source to a part of its server's data, such as one of several
clusters.
"""

from functools import lru_cache

import re2

from keda_gpu_scaler.query.promql import numbers, writing
from keda_gpu_scaler.query.promql.tokens import tokens
from keda_gpu_scaler.query.promql.tree import Matcher, Selector, Shift

_EXPECTED = 'matchers such as cluster="eu-1",env!="test"'
_NAME = Matcher("__name__", "=", "any")
_TEXTS_REMEMBERED = 32
"""A source sends the same few texts at every step."""


def parse(text: str) -> tuple[Matcher, ...]:
    """Read matchers as they stand between the braces of a PromQL selector.

    Raises:
        ValueError: it is anything else, names the metric, or holds a pattern that is not RE2.
    """
    from keda_gpu_scaler.query.promql import parsing  # noqa: PLC0415 - it loads the parser, for queries and matchers only

    try:
        found = tokens(f"{_NAME.value}{{{text}\n}}")
        numbers.check(found)
        root = parsing.tree_of(found)
    except ValueError:
        raise ValueError(_EXPECTED) from None
    match root:
        case Selector([[first, *given]], shift) if first == _NAME and shift == Shift():
            pass
        case _:
            raise ValueError(_EXPECTED)
    if not given or any(matcher.label == _NAME.label for matcher in given):
        raise ValueError(f"{_EXPECTED}, at least one and none for {_NAME.label}")
    for matcher in given:
        _check_pattern(matcher)
    return tuple(given)


@lru_cache(_TEXTS_REMEMBERED)
def confined(text: str, matchers: tuple[Matcher, ...]) -> str:
    """Return a query with these matchers added to every selector.

    Args:
        text: a PromQL expression, of the scaler's own or of a user's that was judged.
        matchers: what to add; if a selector has a matcher on the label already, both apply.

    Raises:
        ValueError: the text is not PromQL.
    """
    if not matchers:
        return text
    from keda_gpu_scaler.query.promql import parsing  # noqa: PLC0415 - likewise

    return writing.written(parsing.tree_of(tokens(text)), lambda own: matchers)  # noqa: ARG005


def _check_pattern(matcher: Matcher) -> None:
    if matcher.sign in {"=~", "!~"}:
        try:
            re2.compile(matcher.value)
        except re2.error:
            raise ValueError(f"an RE2 pattern for {matcher.label}") from None
