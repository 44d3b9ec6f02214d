"""A tree as text, with more matchers for each of its selectors. Pure.

Every operand is in parentheses and every metric name in a matcher, so that neither precedence nor a
keyword can change the meaning.
"""

import math
from collections.abc import Callable, Sequence

from keda_gpu_scaler.query.promql import literals, tree
from keda_gpu_scaler.query.promql.tree import Labels, Matcher, Node, Selector, Shift

More = Callable[[Sequence[Matcher]], Sequence[Matcher]]
"""Returns the matchers to add behind those of a selector."""


def nothing(matchers: Sequence[Matcher]) -> Sequence[Matcher]:
    """Add no matcher."""
    del matchers
    return ()


def written(node: Node, more: More = nothing) -> str:  # noqa: PLR0911 - one for each kind of node
    """Return an expression as text.

    Args:
        node: the expression.
        more: adds matchers to every selector, and to each alternative within a selector.
    """
    match node:
        case Selector():
            return selector(node, more) + _shift(node.shift)
        case tree.Range():
            span = f"[{_duration(node.seconds)}]"
            return selector(node.selector, more) + span + _shift(node.selector.shift)
        case tree.Subquery():
            step = "" if node.step_seconds is None else _duration(node.step_seconds)
            span = f"[{_duration(node.seconds)}:{step}]"
            return f"({written(node.operand, more)}){span}{_shift(node.shift)}"
        case tree.Number():
            return _number(node.value)
        case tree.Text():
            return literals.quoted(node.value)
        case tree.Negative():
            return f"-({written(node.operand, more)})"
        case tree.Call():
            arguments = ", ".join(written(argument, more) for argument in node.arguments)
            return f"{node.name}({arguments})"
        case tree.Aggregation():
            grouping = "" if node.grouping is None else f" {_labels(node.grouping)} "
            parameter = "" if node.parameter is None else f"{written(node.parameter, more)}, "
            return f"{node.name}{grouping}({parameter}{written(node.operand, more)})"
        case _:
            return f"({written(node.left, more)}) {_between(node)} ({written(node.right, more)})"


def selector(node: Selector, more: More = nothing) -> str:
    """Return a selector in braces, without `offset` and `@`."""
    alternatives = ([*given, *more(given)] for given in node.alternatives)
    return f"{{{' or '.join(','.join(map(str, matchers)) for matchers in alternatives)}}}"


def _between(node: tree.Operation) -> str:
    """Return what stands between two operands."""
    comparison = ["bool"] if node.is_bool else []
    fills = [f"{word} ({_number(value)})" for word, value in node.fills]
    return " ".join([node.sign, *comparison, *map(_labels, node.lists), *fills])


def _labels(given: Labels) -> str:
    return f"{given.word} ({', '.join(map(literals.label, given.names))})"


def _shift(given: Shift) -> str:
    """Return `@` and `offset`; an offset of 0 is left out."""
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
