"""A parsed expression as text, with more matchers for each of its selectors. Pure.

Every operand is in parentheses and every metric name in a matcher, so that neither precedence nor a
keyword can change the meaning. Every string gets into a text by one function.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from promql_parser import (
    AggModifierType,
    AggregateExpr,
    AtModifier,
    AtModifierType,
    BinaryExpr,
    BinModifier,
    Call,
    Expr,
    LabelModifierType,
    Matcher,
    MatchOp,
    MatrixSelector,
    NumberLiteral,
    ParenExpr,
    StringLiteral,
    SubqueryExpr,
    UnaryExpr,
    VectorMatchCardinality,
    VectorSelector,
)

from keda_gpu_scaler.query.promql_texts import quoted

_PLAIN_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def label(name: str) -> str:
    """Return the name of a label: as it is, or quoted where only Prometheus 3 allows it."""
    return name if _PLAIN_LABEL.fullmatch(name) else quoted(name)


def labels(names: Iterable[str]) -> str:
    """Return a list of labels in parentheses."""
    return f"({', '.join(label(name) for name in names)})"


def duration(seconds: float) -> str:
    """Return a duration in one unit that every server reads: whole seconds or milliseconds."""
    return f"{seconds:.0f}s" if seconds == round(seconds) else f"{round(seconds * 1000)}ms"


More = Callable[[Sequence[Matcher]], Sequence[str]]
"""Returns the matchers to add behind those of a selector."""

# The parser's enumerations have no hash.
OPERATORS = {
    str(MatchOp.Equal): "=",
    str(MatchOp.NotEqual): "!=",
    str(MatchOp.Re): "=~",
    str(MatchOp.NotRe): "!~",
}
"""PromQL's comparison operators, by the parser's name for each."""
_GROUPS = {
    str(VectorMatchCardinality.ManyToOne): "group_left",
    str(VectorMatchCardinality.OneToMany): "group_right",
}


def nothing(matchers: Sequence[Matcher]) -> Sequence[str]:
    """Add no matcher."""
    del matchers
    return ()


def written(node: Expr, more: More = nothing) -> str:  # noqa: C901, PLR0911 - one for each kind of node
    """Return an expression as text.

    Args:
        node: the expression.
        more: adds matchers to every selector, and to each alternative within a selector.
    """
    match node:
        case VectorSelector():
            return selector(node, more) + _shift(node.at, _seconds(node.offset))
        case MatrixSelector():
            inner = node.vector_selector
            span = duration(node.range.total_seconds())
            shift = _shift(inner.at, _seconds(inner.offset))
            return f"{selector(inner, more)}[{span}]{shift}"
        case SubqueryExpr():
            return f"({written(node.expr, more)}){_steps(node)}"
        case ParenExpr():
            return f"({written(node.expr, more)})"
        case UnaryExpr():
            return f"-({written(node.expr, more)})"
        case NumberLiteral():
            return _number(node.val)
        case StringLiteral():
            return quoted(node.val)
        case Call():
            arguments = ", ".join(written(argument, more) for argument in node.args)
            return f"{node.func.name}({arguments})"
        case AggregateExpr():
            return _aggregate(node, more)
        case BinaryExpr():
            return f"({written(node.lhs, more)}) {_operator(node)} ({written(node.rhs, more)})"
        case _:
            raise TypeError(node)


def selector(node: VectorSelector, more: More = nothing) -> str:
    """Return a selector in braces, without `offset` and `@`."""
    name = [] if node.name is None else [Matcher(MatchOp.Equal, "__name__", node.name)]
    always = [*name, *node.matchers.matchers]
    alternatives = [[*always, *one] for one in node.matchers.or_matchers] or [always]
    return f"{{{' or '.join(_matchers(one, more) for one in alternatives)}}}"


def _matchers(matchers: Sequence[Matcher], more: More) -> str:
    return ",".join([*map(_matcher, matchers), *more(matchers)])


def _matcher(one: Matcher) -> str:
    return f"{label(one.name)}{OPERATORS[str(one.op)]}{quoted(one.value)}"


def _aggregate(node: AggregateExpr, more: More) -> str:
    grouping = ""
    if node.modifier is not None:
        word = "by" if node.modifier.type == AggModifierType.By else "without"
        grouping = f" {word} {labels(node.modifier.labels)} "
    param = "" if node.param is None else f"{written(node.param, more)}, "
    return f"{node.op}{grouping}({param}{written(node.expr, more)})"


def _operator(node: BinaryExpr) -> str:
    return " ".join([str(node.op), *_modifiers(node.modifier)])


def _modifiers(modifier: BinModifier | None) -> list[str]:
    if modifier is None:
        return []
    found = ["bool"] if modifier.return_bool else []
    if modifier.matching is not None:
        is_on = modifier.matching.type == LabelModifierType.Include
        found.append(f"{'on' if is_on else 'ignoring'} {labels(modifier.matching.labels)}")
    group = _GROUPS.get(str(modifier.card))
    if group is not None:
        found.append(f"{group} {labels(modifier.group_labels or [])}")
    fills = {"fill_left": modifier.fill_values.lhs, "fill_right": modifier.fill_values.rhs}
    given = {word: value for word, value in fills.items() if value is not None}
    return found + [f"{word} ({_number(value)})" for word, value in given.items()]


def _steps(node: SubqueryExpr) -> str:
    span = "" if node.range is None else duration(node.range.total_seconds())
    step = "" if node.step is None else duration(node.step.total_seconds())
    return f"[{span}:{step}]{_shift(node.at, _seconds(node.offset))}"


def _seconds(offset: Any) -> float:  # noqa: ANN401 - a timedelta, and the core imports no clock
    return 0.0 if offset is None else float(offset.total_seconds())


def _shift(at: AtModifier | None, offset_seconds: float) -> str:
    """Return `@` and `offset`; an offset of 0 is left out."""
    moved = f" offset {duration(offset_seconds)}" if offset_seconds else ""
    if at is None:
        return moved
    if at.at is not None:
        return f" @ {at.at.timestamp():.3f}{moved}"
    return f" @ {'start' if at.type == AtModifierType.Start else 'end'}(){moved}"


def _number(value: float) -> str:
    if math.isfinite(value) or math.isnan(value):
        return repr(value) if math.isfinite(value) else "NaN"
    return "Inf" if value > 0 else "-Inf"
