"""What can be said of a formula of `scalingModifiers`: its names, and its value. Pure.

KEDA reads it as expr-lang. Numbers, names, + - * /, `max` and `min` look the same in Python.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

_LONGEST = 1000
"""Deeper nesting than this many characters allow could exceed the parser's stack."""
_SIGNS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def names(formula: str) -> set[str]:
    """Return the names in a formula, those of functions included."""
    return set(re.findall(r"[A-Za-z_]\w*", formula))


def value(formula: str, numbers: Mapping[str, float]) -> float | None:
    """Return its value where its triggers have these numbers; None: it is more than arithmetic."""
    if len(formula) > _LONGEST:
        return None
    try:
        found = _value(ast.parse(formula.strip(), mode="eval").body, numbers)
    except (ArithmeticError, KeyError, RecursionError, SyntaxError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _value(node: ast.expr, numbers: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(int() | float() as number):
            return float(number)
        case ast.Name(name):
            return numbers[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, numbers)
        case ast.BinOp(left, sign, right):
            return _SIGNS[type(sign)](_value(left, numbers), _value(right, numbers))
        case ast.Call(ast.Name(name), [_, *_] as arguments, []):
            return {"max": max, "min": min}[name](_value(each, numbers) for each in arguments)
    raise ValueError
