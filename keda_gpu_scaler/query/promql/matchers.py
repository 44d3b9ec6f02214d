"""Label matchers for every selector of a query, added to its parsed form and never to its text.

Pure. They confine all queries of a source to a part of its server's data, such as one of several
clusters.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

import promql_parser
import re2

from keda_gpu_scaler.query.promql import writing
from keda_gpu_scaler.query.promql_texts import quoted

_EXPECTED = 'matchers such as cluster="eu-1",env!="test"'
_CONFINABLE = "PromQL without quotes around labels"
_NAME = "__name__"
_LITERAL = re.compile(r"""["](?:[^"\\\n]|\\.)*["]|['](?:[^'\\\n]|\\.)*[']|`[^`]*`|[#][^\n]*""")
"""A string literal of PromQL, or a comment."""
_KEY = re.compile(r'"__text_([0-9]+)"')
"""The placeholder for a string literal."""
_TEXTS_REMEMBERED = 32
"""A source sends the same few texts at every step."""


class Matcher(NamedTuple):
    """One condition on a label."""

    label: str
    sign: str
    """How it is compared: =, !=, =~ or !~."""
    value: str

    def __str__(self) -> str:
        """Return it as PromQL."""
        return f"{self.label}{self.sign}{quoted(self.value)}"


def parse(text: str) -> tuple[Matcher, ...]:
    """Read matchers as they stand between the braces of a PromQL selector.

    Raises:
        ValueError: it is anything else, names the metric, or holds a pattern that is not RE2.
    """
    try:
        selector: Any = promql_parser.parse(f"any{{{text}\n}}")
    except ValueError:
        raise ValueError(_EXPECTED) from None
    if not _is_plain(selector):
        raise ValueError(_EXPECTED)
    found = tuple(
        Matcher(one.name, writing.OPERATORS[str(one.op)], one.value)
        for one in selector.matchers.matchers
    )
    if not found or any(matcher.label == _NAME for matcher in found):
        raise ValueError(f"{_EXPECTED}, at least one and none for {_NAME}")
    for matcher in found:
        _check_pattern(matcher)
    return found


@lru_cache(_TEXTS_REMEMBERED)
def confined(text: str, matchers: tuple[Matcher, ...]) -> str:
    """Return a query with these matchers added to every selector.

    Args:
        text: a PromQL expression.
        matchers: what to add; if a selector has a matcher on the label already, both apply.

    Raises:
        ValueError: the text is not PromQL, or has quotes around the name of a label.
    """
    if not matchers:
        return text
    literals: list[str] = []
    bare = _LITERAL.sub(lambda found: _hidden(found[0], literals), text)
    own = len(literals)
    added = [one._replace(value=_key(literals, quoted(one.value))) for one in matchers]
    printed = _printed(bare, added)
    shown = sorted(int(number) for number in _KEY.findall(printed) if int(number) < own)
    if shown != list(range(own)):
        raise ValueError(_CONFINABLE)
    return _KEY.sub(lambda found: literals[int(found[1])], printed)


def _hidden(found: str, literals: list[str]) -> str:
    """Replace a string literal by a key, and a comment by nothing.

    The parser would compile each pattern, which takes seconds if it names a thousand namespaces.
    """
    return " " if found.startswith("#") else f'"{_key(literals, found)}"'


def _key(literals: list[str], literal: str) -> str:
    literals.append(literal)
    return f"__text_{len(literals) - 1}"


def _printed(bare: str, matchers: list[Matcher]) -> str:
    """Return an expression without string literals, with matchers added to every selector."""
    more = [str(one) for one in matchers]
    return writing.written(promql_parser.parse(bare), lambda own: more)  # noqa: ARG005


def _is_plain(expression: Any) -> bool:  # noqa: ANN401 - the parser's own classes
    """Tell whether it is a selector with matchers only."""
    return (
        isinstance(expression, promql_parser.VectorSelector)
        and expression.name == "any"
        and expression.offset is None
        and expression.at is None
        and not expression.matchers.or_matchers
    )


def _check_pattern(matcher: Matcher) -> None:
    if matcher.sign in {"=~", "!~"}:
        try:
            re2.compile(matcher.value)
        except re2.error:
            raise ValueError(f"an RE2 pattern for {matcher.label}") from None
