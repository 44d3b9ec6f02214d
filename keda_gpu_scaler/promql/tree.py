"""What a query consists of, and its text with more matchers for each of its selectors. Pure.

Parentheses are no nodes: they are in the tree's shape. In the text, every operand is in parentheses
and every metric name in a matcher, so that neither precedence nor a keyword can change the meaning.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from keda_gpu_scaler.promql.lexer import label
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql_texts import quoted

_DROPPING = frozenset(
    {"topk", "bottomk", "limitk", "limit_ratio", "and", "or", "unless", "count_values"}
)
_EVIDENCE = frozenset({"job", "instance", *profiles.BOARD_LABELS})
"""The labels that tell whether a pod that is not shown any more has ended."""
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})


class Type(Enum):
    """What an expression gives, in Prometheus' words."""

    VECTOR = auto()
    SCALAR = auto()
    MATRIX = auto()
    STRING = auto()


class Matcher(NamedTuple):
    """One condition on a label."""

    label: str
    sign: str
    """How it is compared: =, !=, =~ or !~."""
    value: str

    def __str__(self) -> str:
        return f"{label(self.label)}{self.sign}{quoted(self.value)}"


class Shift(NamedTuple):
    """At which time a selector or subquery looks."""

    at: float | str | None = None
    """Seconds since 1970, or `start()` or `end()`; None: the time of the query."""
    offset: float = 0.0
    """Seconds before that."""


_UNSHIFTED = Shift()


class LabelList(NamedTuple):
    """A list of labels, and the word before it."""

    word: str
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector of instant vectors; the metric's name is a matcher."""

    alternatives: Sequence[Sequence[Matcher]]
    """One list of matchers, of which all apply; several only where they are joined with `or`."""
    shift: Shift = _UNSHIFTED


@dataclass(frozen=True, slots=True)
class Range:
    """A selector with a range."""

    selector: Selector
    seconds: float


@dataclass(frozen=True, slots=True)
class Subquery:
    """An expression that is evaluated at every step of a range."""

    operand: "Node"
    seconds: float
    step_seconds: float | None
    """None: the server's default."""
    shift: Shift


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Text:
    """A text in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Negative:
    """An expression behind a minus."""

    operand: "Node"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    name: str
    arguments: Sequence["Node"]
    gives: Type


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation over the elements of a vector."""

    name: str
    grouping: LabelList | None
    """By or without which labels."""
    parameter: "Node | None"
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Operation:
    """Two operands and what is between them."""

    sign: str
    left: "Node"
    right: "Node"
    is_bool: bool = False
    """Whether a comparison gives 0 and 1, and does not filter."""
    lists: Sequence[LabelList] = ()
    """On or ignoring which labels elements match, and those of the group."""
    fills: Sequence[tuple[str, float]] = ()
    """Each word for a side, and the number for elements that it lacks."""


Node: TypeAlias = (
    Selector | Range | Subquery | Number | Text | Negative | Call | Aggregation | Operation
)


def children(node: Node) -> Sequence[Node]:
    match node:
        case Aggregation():
            return [node.operand] if node.parameter is None else [node.parameter, node.operand]
        case Operation():
            return [node.left, node.right]
        case Call():
            return node.arguments
        case Range():
            return [node.selector]
        case Subquery() | Negative():
            return [node.operand]
        case _:
            return []


def matchers(node: Node) -> list[Matcher]:
    """Return the conditions of a selector, in all its alternatives; of other nodes none."""
    alternatives = node.alternatives if isinstance(node, Selector) else ()
    return [matcher for given in alternatives for matcher in given]


def nodes(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node with its depth, from the top."""
    left = [(root, 1)]
    while left:
        node, depth = left.pop()
        yield node, depth
        left.extend((child, depth + 1) for child in children(node))


def kind(node: Node) -> Type:  # noqa: PLR0911 - one for each kind of node
    match node:
        case Negative():
            return kind(node.operand)
        case Operation():
            return kind(node.right) if kind(node.left) is Type.SCALAR else Type.VECTOR
        case Call():
            return node.gives
        case Range() | Subquery():
            return Type.MATRIX
        case Number():
            return Type.SCALAR
        case Text():
            return Type.STRING
        case _:
            return Type.VECTOR


def lookbacks(node: Node, outer_seconds: float = 0.0) -> Iterator[tuple[Selector, float]]:
    """Yield every selector with the ranges around it added up: as far back the expression looks."""
    match node:
        case Selector():
            yield node, outer_seconds
        case Range() | Subquery():
            outer_seconds += node.seconds
    for child in children(node):
        yield from lookbacks(child, outer_seconds)


def most_steps(node: Node, step_seconds: float) -> float:
    """Return how often the innermost expression of nested subqueries is evaluated, at most.

    A subquery that names no step has one of `step_seconds`.
    """
    below = max((most_steps(child, step_seconds) for child in children(node)), default=1.0)
    if not isinstance(node, Subquery):
        return below
    step = step_seconds if node.step_seconds is None else node.step_seconds
    return below * max(1.0, node.seconds / step)


def is_complete(root: Node) -> bool:
    """Tell whether a series that exists always shows as an element: then absence means something.

    A comparison, a set operation, `topk` or a join can leave out existing series. With one selector
    and none of these, an element is missing only where a series is. The labels of targets and GPUs
    must be real, not written by the query.
    """
    all_nodes = [node for node, _ in nodes(root)]
    selectors = sum(isinstance(node, Selector) for node in all_nodes)
    return selectors == 1 and not any(map(_may_drop, all_nodes))


def _may_drop(node: Node) -> bool:
    match node:
        case Aggregation():
            return node.name in _DROPPING
        case Operation():
            return node.sign in _DROPPING or (node.sign in _COMPARISONS and not node.is_bool)
        case Call("label_replace" | "label_join", [_, written, *_]):  # it may forge evidence
            return not isinstance(written, Text) or written.value in _EVIDENCE
        case Call():
            return node.name.startswith("absent")
        case Selector() | Subquery():
            return node.shift != _UNSHIFTED
        case _:
            return False


More = Callable[[Sequence[Matcher]], Sequence[Matcher]]
"""Returns the matchers to add behind those of a selector."""


def nothing(matchers: Sequence[Matcher]) -> Sequence[Matcher]:
    del matchers
    return ()


def text_of(node: Node, more: More = nothing) -> str:  # noqa: PLR0911 - one for each kind of node
    """Return an expression as text, with more matchers in each alternative of its selectors."""
    match node:
        case Selector():
            return _selector(node, more) + _shift(node.shift)
        case Range():
            span = f"[{_duration(node.seconds)}]"
            return _selector(node.selector, more) + span + _shift(node.selector.shift)
        case Subquery():
            step = "" if node.step_seconds is None else _duration(node.step_seconds)
            span = f"[{_duration(node.seconds)}:{step}]"
            return f"({text_of(node.operand, more)}){span}{_shift(node.shift)}"
        case Number():
            return _number(node.value)
        case Text():
            return quoted(node.value)
        case Negative():
            return f"-({text_of(node.operand, more)})"
        case Call():
            arguments = ", ".join(text_of(argument, more) for argument in node.arguments)
            return f"{node.name}({arguments})"
        case Aggregation():
            grouping = "" if node.grouping is None else f" {_labels(node.grouping)} "
            parameter = "" if node.parameter is None else f"{text_of(node.parameter, more)}, "
            return f"{node.name}{grouping}({parameter}{text_of(node.operand, more)})"
        case _:
            comparison = ["bool"] if node.is_bool else []
            fills = [f"{word} ({_number(value)})" for word, value in node.fills]
            between = " ".join([node.sign, *comparison, *map(_labels, node.lists), *fills])
            return f"({text_of(node.left, more)}) {between} ({text_of(node.right, more)})"


def _selector(node: Selector, more: More) -> str:
    alternatives = ([*given, *more(given)] for given in node.alternatives)
    return f"{{{' or '.join(','.join(map(str, matchers)) for matchers in alternatives)}}}"


def _labels(given: LabelList) -> str:
    return f"{given.word} ({', '.join(map(label, given.names))})"


def _shift(given: Shift) -> str:
    at = f"{given.at:.3f}" if isinstance(given.at, float) else given.at
    moved = f" offset {_duration(given.offset)}" if given.offset else ""
    return moved if at is None else f" @ {at}{moved}"


def _duration(seconds: float) -> str:
    """Return a duration in one unit that every server reads: whole seconds or milliseconds."""
    return f"{seconds:.0f}s" if seconds == round(seconds) else f"{round(seconds * 1000)}ms"


def _number(value: float) -> str:
    if math.isfinite(value) or math.isnan(value):
        return repr(value) if math.isfinite(value) else "NaN"
    return "Inf" if value > 0 else "-Inf"
