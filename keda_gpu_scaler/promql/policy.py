"""A user's PromQL: what is wrong with it, and what the operator lets it read. Pure.

Each refusal is a ValueError; its words follow "expected". They name a place where one is known and
never repeat the text, which may have come out of a Secret. The work is bounded before it begins: by
the text's size for its tokens, by their number for the parser, and by RE2's memory for patterns.

A series can name two namespaces: that of the pod it is about and, where its target was scraped
without `honor_labels`, the target's own. Then `namespace` is the target's, and the pod's is in
another label, such as `exported_namespace`. Neither may name another namespace:

- a selector that has a matcher on one of these other labels gets that label pinned;
- every other selector gets `namespace` pinned, and the other labels must be empty or the same, so
  that the tenant that runs an exporter does not see other tenants' pods on it.

A series that names no namespace at all is not shown.

The matchers of a source confine all its queries, the scaler's own too, to a part of its server's
data, such as one of several clusters. Matchers are added to a query's tree and never to its text.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from keda_gpu_scaler.promql import placeholders, tree
from keda_gpu_scaler.promql.lexer import (
    MisplacedError,
    Token,
    check_numbers,
    tokens,
    unmatched,
)
from keda_gpu_scaler.promql.placeholders import Values
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.spec.spec import Origin, OwnQuery

_TARGETS_OWN = "namespace"
"""The label with the namespace of the pod or of the scrape target."""
_PODS = tuple(label for label in profiles.NAMESPACE_LABELS if label != _TARGETS_OWN)
_LONGEST_LOOKBACK_SECONDS = 3600.0
"""Limited, because every query is sent again and again."""
_SELECTORS = 20
_STEPS = 10_000
"""An hour in steps of a second, with room; nested subqueries multiply theirs."""
_USUAL_STEP_SECONDS = 1.0
"""The step of a subquery that names none: the server's default, which is hardly ever shorter."""
_UNCONFINED = frozenset({"info"})
"""Functions that read series which no selector names."""
_MATCHERS = 'matchers such as cluster="eu-1",env!="test"'
_METRIC = tree.Matcher("__name__", "=", "any")
_TEXTS_REMEMBERED = 32
"""A source sends the same few texts at every step."""
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


INSTANT_VECTOR = frozenset({tree.Type.VECTOR})
NUMBER = INSTANT_VECTOR | {tree.Type.SCALAR}
"""A scalar, or a vector of one element."""
_GIVEN = {
    tree.Type.SCALAR: "a scalar; vector(...) makes a vector of one, but it names no pod",
    tree.Type.MATRIX: "a range of each series; a function such as rate(...) makes a vector of it",
    tree.Type.STRING: "a text",
}


class Policy(StrEnum):
    """What custom PromQL may read."""

    ALLOW = "allow"
    NAMESPACED = "namespaced"
    DENY = "deny"


def own(text: str, policy: Policy, namespace: str, values: Values | None = None) -> OwnQuery:
    """Return a query for elements that name their pods, as it is sent.

    `text` is an expression for an instant vector. `namespace` is that of the measured pods, the
    only one that the policy `namespaced` lets it read. `values` are filled in for placeholders.

    Raises:
        ValueError: it cannot or may not be sent; the words follow "expected".
    """
    sent, root, more = _allowed(text, INSTANT_VECTOR, policy, namespace, values)
    lookbacks = _longest_lookbacks(root, more)
    if not lookbacks:
        raise ValueError("an expression with a metric in it: without one it says nothing of a pod")
    origins = tuple(Origin(selector, seconds) for selector, seconds in lookbacks.items())
    return OwnQuery(text=sent, origins=origins, is_complete=tree.is_complete(root))


def number(text: str, policy: Policy, namespace: str, values: Values | None = None) -> str:
    """Return an expression for one number, a scalar or an instant vector, as it is sent.

    The arguments and errors are those of `own`; the namespace is the ScaledObject's.
    """
    sent, root, more = _allowed(text, NUMBER, policy, namespace, values)
    _longest_lookbacks(root, more)
    return sent


def parsed_matchers(text: str) -> tuple[tree.Matcher, ...]:
    """Read a source's matchers, as they stand between the braces of a PromQL selector.

    Raises:
        ValueError: it is anything else, names the metric, or holds a pattern that is not RE2.
    """
    import re2  # noqa: PLC0415 - as in `_Patterns`

    from keda_gpu_scaler.promql import parsing  # noqa: PLC0415 - it loads the parser, for queries and matchers only

    try:
        query_tokens = tokens(f"{_METRIC.value}{{{text}\n}}")
        check_numbers(query_tokens)
        root = parsing.tree_of(query_tokens)
    except ValueError:
        raise ValueError(_MATCHERS) from None
    match root:
        case tree.Selector([[first, *matchers]], shift) if (
            first == _METRIC and shift == tree.Shift()
        ):
            pass
        case _:
            raise ValueError(_MATCHERS)
    if not matchers or any(matcher.label == _METRIC.label for matcher in matchers):
        raise ValueError(f"{_MATCHERS}, at least one and none for {_METRIC.label}")
    for matcher in matchers:
        if matcher.sign in {"=~", "!~"}:
            try:
                re2.compile(matcher.value)
            except re2.error:
                raise ValueError(f"an RE2 pattern for {matcher.label}") from None
    return tuple(matchers)


@lru_cache(_TEXTS_REMEMBERED)
def confined(text: str, matchers: tuple[tree.Matcher, ...]) -> str:
    """Return a query with a source's matchers added to every selector.

    The query is the scaler's own, or a user's that was judged. If a selector has a matcher on the
    same label already, both apply.
    """
    if not matchers:
        return text
    from keda_gpu_scaler.promql import parsing  # noqa: PLC0415 - likewise

    return tree.text_of(parsing.tree_of(tokens(text)), lambda _: matchers)


def _allowed(
    text: str, wanted: frozenset[tree.Type], policy: Policy, namespace: str, values: Values | None
) -> tuple[str, tree.Node, tree.More]:
    """Return the text that may be sent, its tree, and the matchers that confine its selectors."""
    if policy is Policy.DENY:
        raise ValueError(
            "none: custom PromQL is denied here; the operator can allow it with "
            "KEDA_GPU_SCALER_OWN_PROMQL"
        )
    filled = text
    if values is not None and len(text) <= CHARACTERS:
        try:
            filled = placeholders.filled(text, values)
        except MisplacedError as error:
            raise _misplaced(text, error) from error
    # The places in its mistakes are those of what the user wrote.
    root = expression(text, wanted)
    if filled != text:
        root = expression(filled, wanted, FILLED_CHARACTERS)
    if tree.most_steps(root, _USUAL_STEP_SECONDS) > _STEPS:
        # A server would evaluate it for minutes, and it would be sent again meanwhile.
        raise ValueError(
            f"a PromQL expression whose subqueries take at most {_STEPS:,} steps, multiplied where "
            f"they are nested; one that names no step counts as if it were "
            f"{_USUAL_STEP_SECONDS:g}s"
        )
    if policy is Policy.ALLOW:
        return filled, root, tree.nothing
    functions = {node.name for node, _ in tree.nodes(root) if isinstance(node, tree.Call)}
    for name in sorted(functions & _UNCONFINED):
        raise ValueError(
            f"no {name}(), which reads series beside those it is given: custom PromQL is confined "
            "to the ScaledObject's namespace here (KEDA_GPU_SCALER_OWN_PROMQL)"
        )
    more = partial(_confining_matchers, namespace=namespace)
    return tree.text_of(root, more), root, more


def _confining_matchers(matchers: Sequence[tree.Matcher], namespace: str) -> list[tree.Matcher]:
    """Return what to add to a selector; if its own matchers contradict, it shows nothing."""
    labels = {matcher.label for matcher in matchers}
    pinned = next((label for label in _PODS if label in labels), _TARGETS_OWN)
    others = [tree.Matcher(label, "=~", f"|{namespace}") for label in _PODS if label != pinned]
    return [tree.Matcher(pinned, "=", namespace), *others]


def _longest_lookbacks(root: tree.Node, more: tree.More) -> dict[str, float]:
    longest: dict[str, float] = {}
    for selector, seconds in tree.lookbacks(root):
        text = tree.text_of(selector, more)
        longest[text] = max(seconds, longest.get(text, 0.0))
    if len(longest) > _SELECTORS:
        raise ValueError(f"a PromQL expression with at most {_SELECTORS} different selectors")
    if max(longest.values(), default=0.0) > _LONGEST_LOOKBACK_SECONDS:
        raise ValueError("a PromQL expression whose ranges, added up, reach back at most 1h")
    return longest


def expression(text: str, wanted: frozenset[tree.Type], longest: int = CHARACTERS) -> tree.Node:
    """Return the tree of an expression for what is wanted, of at most `longest` characters."""
    if not text:
        raise ValueError("a PromQL expression, such as sum(rate(http_requests_total[1m]))")
    if len(text) > longest:
        filled = "" if longest == CHARACTERS else " with its placeholders filled in"
        raise ValueError(f"a PromQL expression of at most {longest} characters{filled}")
    try:
        query_tokens = tokens(text)
        if len(query_tokens) > _TOKENS:
            raise ValueError(f"a PromQL expression of at most {_TOKENS} names, numbers and signs")
        check_numbers(query_tokens)
        root = _tree_of(query_tokens)
    except MisplacedError as error:
        raise _misplaced(text, error) from error
    if max(depth for _, depth in tree.nodes(root)) > _DEPTH:
        raise ValueError(f"a PromQL expression nested at most {_DEPTH} deep")
    _check_patterns(root)
    given = tree.kind(root)
    if given not in wanted:
        name = "one number" if wanted == NUMBER else "an instant vector"
        raise ValueError(f"a PromQL expression for {name}, and this is {_GIVEN[given]}")
    return root


def _tree_of(query_tokens: Sequence[Token]) -> tree.Node:
    """Return the tree of an expression; the parser's refusal in plain words, with a place."""
    from keda_gpu_scaler.promql import parsing  # noqa: PLC0415 - it loads the parser, for queries and matchers only

    try:
        return parsing.tree_of(query_tokens)
    except MisplacedError:
        raise
    except ValueError as error:
        words = str(error)
    function = _FUNCTION.search(words)
    if function is None:
        words, position = _QUOTED.sub("...", _REPEATED.sub("", words)), unmatched(query_tokens)
    else:
        pairs = ((token.start, token.text + after.text) for token, after in pairwise(query_tokens))
        position = next((start for start, text in pairs if text == f"{function[1]}("), None)
    if position is None:
        raise ValueError(f"a PromQL expression: {_PLAIN.get(words, words)}")
    raise MisplacedError(position, words)


def _check_patterns(root: tree.Node) -> None:
    """Refuse patterns that RE2 cannot read or that are huge, and selectors of everything."""
    patterns = _Patterns()
    for node, _ in tree.nodes(root):
        match node:
            case tree.Selector(alternatives):
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
            case tree.Call("label_replace", [*_, tree.Text(pattern)]):
                patterns.compiled(pattern)


class _Patterns:
    """The patterns of one expression, each compiled once, and of a usual size together."""

    def __init__(self) -> None:
        self._compiled: dict[str, Any] = {}
        self._large_parts = 0

    def takes_none(self, matcher: tree.Matcher) -> bool:
        if matcher.sign in {"=", "!="}:
            return (matcher.sign == "=") is (matcher.value == "")
        return (matcher.sign == "=~") is (self.compiled(matcher.value).search("") is not None)

    def compiled(self, pattern: str) -> Any:  # noqa: ANN401 - RE2 has no types
        if pattern not in self._compiled:
            import re2  # noqa: PLC0415 - it takes a MiB, and few processes read a pattern

            self._large_parts += len(_LARGE_PART.findall(pattern))
            if self._large_parts > _LARGE_PARTS:
                raise ValueError(_TOO_LARGE)
            options = re2.Options()
            options.max_mem = _PATTERN_BYTES
            options.log_errors, options.never_capture = False, True
            try:
                self._compiled[pattern] = re2.compile(f"^(?s:{pattern})$", options)
            except re2.error as error:
                is_large = "too large" in str(error)
                raise ValueError(_TOO_LARGE if is_large else _NO_PATTERN) from error
        return self._compiled[pattern]


def _misplaced(text: str, error: MisplacedError) -> ValueError:
    line = text.count("\n", 0, error.position) + 1
    column = error.position - text.rfind("\n", 0, error.position)
    return ValueError(f"a PromQL expression: line {line}, column {column}: {error}")
