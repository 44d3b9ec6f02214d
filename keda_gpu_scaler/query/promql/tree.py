"""What a parsed expression consists of.

Pure. A tree is only read here: the parser's nodes cannot be changed or created.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    Expr,
    MatrixSelector,
    NumberLiteral,
    ParenExpr,
    StringLiteral,
    SubqueryExpr,
    UnaryExpr,
    ValueType,
    VectorSelector,
)

from keda_gpu_scaler.query import profiles

_DROPPING = frozenset(
    {"topk", "bottomk", "limitk", "limit_ratio", "and", "or", "unless", "count_values"}
)
_RELABELLING = frozenset({"label_replace", "label_join"})
_EVIDENCE = frozenset({"job", "instance", *profiles.BOARD_LABELS})
"""The labels that tell whether a pod that is not shown any more has ended."""
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})


class Kind(Enum):
    """What an expression gives, in Prometheus' words."""

    VECTOR = auto()
    SCALAR = auto()
    MATRIX = auto()
    STRING = auto()


# The parser's enumerations have no hash.
_KINDS = {
    str(ValueType.Vector): Kind.VECTOR,
    str(ValueType.Scalar): Kind.SCALAR,
    str(ValueType.Matrix): Kind.MATRIX,
    str(ValueType.String): Kind.STRING,
}


class Lookback(NamedTuple):
    """A selector, and how far back before the time of its samples the expression looks."""

    selector: VectorSelector
    seconds: float


def children(node: Expr) -> list[Expr]:
    """Return the nodes right below a node, in the order in which they are written."""
    match node:
        case AggregateExpr():
            return [node.expr] if node.param is None else [node.param, node.expr]
        case BinaryExpr():
            return [node.lhs, node.rhs]
        case Call():
            return list(node.args)
        case MatrixSelector():
            return [node.vector_selector]
        case ParenExpr() | SubqueryExpr() | UnaryExpr():
            return [node.expr]
        case VectorSelector() | NumberLiteral() | StringLiteral():
            return []
        case _:
            raise TypeError(node)


def nodes(root: Expr) -> Iterator[tuple[Expr, int]]:
    """Yield every node with its depth, from the top."""
    left = [(root, 1)]
    while left:
        node, depth = left.pop()
        yield node, depth
        left.extend((child, depth + 1) for child in children(node))


def kind(node: Expr) -> Kind:  # noqa: PLR0911 - one for each kind of node
    """Return what an expression gives."""
    match node:
        case ParenExpr() | UnaryExpr():
            return kind(node.expr)
        case BinaryExpr():
            return kind(node.rhs) if kind(node.lhs) is Kind.SCALAR else Kind.VECTOR
        case Call():
            return _KINDS[str(node.func.return_type)]
        case MatrixSelector() | SubqueryExpr():
            return Kind.MATRIX
        case NumberLiteral():
            return Kind.SCALAR
        case StringLiteral():
            return Kind.STRING
        case _:
            return Kind.VECTOR


def lookbacks(node: Expr, outer_seconds: float = 0.0) -> Iterator[Lookback]:
    """Yield every selector with the ranges around it added up."""
    match node:
        case VectorSelector():
            yield Lookback(node, outer_seconds)
            return
        case MatrixSelector():
            outer_seconds += node.range.total_seconds()
        case SubqueryExpr() if node.range is not None:
            outer_seconds += node.range.total_seconds()
    for child in children(node):
        yield from lookbacks(child, outer_seconds)


def most_steps(node: Expr, step_seconds: float) -> float:
    """Return how often the innermost expression of nested subqueries is evaluated, at most.

    Args:
        node: the expression.
        step_seconds: the step of a subquery that names none.
    """
    below = max((most_steps(child, step_seconds) for child in children(node)), default=1.0)
    if not isinstance(node, SubqueryExpr) or node.range is None:
        return below
    step = node.step.total_seconds() if node.step is not None else step_seconds
    return below * max(1.0, node.range.total_seconds() / step)


def is_complete(root: Expr) -> bool:
    """Tell whether a series that exists always shows as an element: then absence means something.

    A comparison, a set operation, `topk` or a join can leave out existing series. With one selector
    and none of these, an element is missing only where a series is. The labels of targets and GPUs
    must be real, not written by the query.
    """
    found = [node for node, _ in nodes(root)]
    selectors = sum(isinstance(node, VectorSelector) for node in found)
    return selectors == 1 and not any(map(_may_drop, found))


def _may_drop(node: Expr) -> bool:
    match node:
        case AggregateExpr():
            return str(node.op) in _DROPPING
        case BinaryExpr():
            is_filter = node.modifier is None or not node.modifier.return_bool
            return str(node.op) in _DROPPING or (str(node.op) in _COMPARISONS and is_filter)
        case Call():
            return node.func.name.startswith("absent") or _forges(node)
        case VectorSelector():
            return node.offset is not None or node.at is not None
        case SubqueryExpr():
            return node.offset is not None or node.at is not None
        case _:
            return False


def _forges(call: Call) -> bool:
    """Tell whether a call may write a label that is used as evidence."""
    if call.func.name not in _RELABELLING:
        return False
    target = call.args[1]
    return not isinstance(target, StringLiteral) or target.val in _EVIDENCE
