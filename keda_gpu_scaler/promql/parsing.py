"""Tokens → a tree, by way of the parser. Pure, and the only place that knows the parser.

The parser is foreign, holds the interpreter while it works, and panics. It would compile every
pattern, by other rules than Prometheus and for seconds, so it never sees what stands in quotes:
each literal is replaced by its number, in quotes, and a `!=`, `=~` or `!~` before it by `=`. No
name begins with a digit: what does so in the parser's tree, where a name can stand, is a literal.

What is left takes time by its tokens and by how deep they are nested: the lexer and the tables
look at each token once, there is no recovery from mistakes, and at each level the tree below is
copied and its types are found again. The slowest 400 tokens that were found, 399 minuses before a
name, take 5 ms; 800 take four times as long.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import promql_parser as parser

from keda_gpu_scaler.promql import tree
from keda_gpu_scaler.promql.lexer import MisplacedError, Token, unquoted
from keda_gpu_scaler.promql.tree import LabelList, Matcher, Node, Shift, Type

_SIGNS = frozenset({"!=", "=~", "!~"})
# The parser's enumerations have no hash.
_KINDS = {
    str(parser.ValueType.Vector): Type.VECTOR,
    str(parser.ValueType.Scalar): Type.SCALAR,
    str(parser.ValueType.Matrix): Type.MATRIX,
    str(parser.ValueType.String): Type.STRING,
}
_GROUPS = {
    str(parser.VectorMatchCardinality.ManyToOne): "group_left",
    str(parser.VectorMatchCardinality.OneToMany): "group_right",
}
_TIMES = {
    str(parser.AtModifierType.Start): "start()",
    str(parser.AtModifierType.End): "end()",
}


class _Literal(NamedTuple):
    sign: str
    """What compares a label with it, where it is the value of a matcher."""
    text: str


def tree_of(query_tokens: Sequence[Token]) -> Node:
    """Return the tree of an expression; ValueError if it is not PromQL, in the parser's words."""
    text, hidden = _without_literals(query_tokens)
    try:
        return _Reader(hidden).node(parser.parse(text))
    except (ValueError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic is no Exception
        raise ValueError("a text that the parser cannot read") from error


def _without_literals(query_tokens: Sequence[Token]) -> tuple[str, list[_Literal]]:
    pieces: list[str] = []
    hidden: list[_Literal] = []
    end = 0
    for place, token in enumerate(query_tokens):
        piece = token.text
        if token.kind == "literal":
            sign = query_tokens[place - 1].text if place else ""
            if sign in _SIGNS:
                pieces[-1] = pieces[-1].replace(sign, "=")
            try:
                literal = unquoted(token.text)
            except ValueError as error:
                raise MisplacedError(token.start, str(error)) from error
            hidden.append(_Literal(sign if sign in _SIGNS else "=", literal))
            piece = f'"{len(hidden) - 1}"'
        pieces.append(f" {piece}" if token.start > end else piece)
        end = token.end
    return "".join(pieces), hidden


class _Reader:
    """Makes nodes of the parser's, with the literals in their places."""

    def __init__(self, hidden: Sequence[_Literal]) -> None:
        self._hidden = hidden

    def node(self, given: Any) -> Node:  # noqa: ANN401, PLR0911 - the parser's own classes, one by one
        match given:
            case parser.ParenExpr():
                return self.node(given.expr)
            case parser.VectorSelector():
                return self._selector(given)
            case parser.MatrixSelector():
                selector = self._selector(given.vector_selector)
                return tree.Range(selector, _seconds(given.range))
            case parser.SubqueryExpr():
                step = None if given.step is None else _seconds(given.step)
                operand, seconds = self.node(given.expr), _seconds(given.range)
                return tree.Subquery(operand, seconds, step, _shift(given))
            case parser.NumberLiteral():
                return tree.Number(given.val)
            case parser.StringLiteral():
                return tree.Text(self._text(given.val))
            case parser.UnaryExpr():
                return tree.Negative(self.node(given.expr))
            case parser.Call():
                gives = _KINDS[str(given.func.return_type)]
                return tree.Call(given.func.name, tuple(map(self.node, given.args)), gives)
            case parser.AggregateExpr():
                return self._aggregation(given)
            case _:
                return self._operation(given)

    def _selector(self, given: Any) -> tree.Selector:  # noqa: ANN401
        name = () if given.name is None else (Matcher("__name__", "=", given.name),)
        always = (*name, *map(self._matcher, given.matchers.matchers))
        alternatives = [
            (*always, *map(self._matcher, matchers)) for matchers in given.matchers.or_matchers
        ]
        return tree.Selector(tuple(alternatives) or (always,), _shift(given))

    def _matcher(self, given: Any) -> Matcher:  # noqa: ANN401
        value = self._hidden[int(given.value)]
        return Matcher(self._name(given.name), value.sign, value.text)

    def _aggregation(self, given: Any) -> tree.Aggregation:  # noqa: ANN401
        grouping = None
        if given.modifier is not None:
            word = "by" if given.modifier.type == parser.AggModifierType.By else "without"
            grouping = self._labels(word, given.modifier.labels)
        parameter = None if given.param is None else self.node(given.param)
        return tree.Aggregation(str(given.op), grouping, parameter, self.node(given.expr))

    def _operation(self, given: Any) -> tree.Operation:  # noqa: ANN401
        sign, left, right = str(given.op), self.node(given.lhs), self.node(given.rhs)
        modifier = given.modifier
        if modifier is None:
            return tree.Operation(sign, left, right)
        lists = []
        if modifier.matching is not None:
            is_on = modifier.matching.type == parser.LabelModifierType.Include
            lists.append(self._labels("on" if is_on else "ignoring", modifier.matching.labels))
        group = _GROUPS.get(str(modifier.card))
        if group is not None:
            lists.append(self._labels(group, modifier.group_labels or ()))
        sides = {"fill_left": modifier.fill_values.lhs, "fill_right": modifier.fill_values.rhs}
        fills = tuple((word, value) for word, value in sides.items() if value is not None)
        return tree.Operation(sign, left, right, modifier.return_bool, tuple(lists), fills)

    def _labels(self, word: str, names: Sequence[str]) -> LabelList:
        return LabelList(word, tuple(map(self._name, names)))

    def _name(self, given: str) -> str:
        return self._text(given) if given[0].isdigit() else given

    def _text(self, number: str) -> str:
        return self._hidden[int(number)].text


def _shift(given: Any) -> Shift:  # noqa: ANN401
    offset = _seconds(given.offset)
    if given.at is None:
        return Shift(None, offset)
    at = given.at.at
    return Shift(_TIMES[str(given.at.type)] if at is None else at.timestamp(), offset)


def _seconds(span: Any) -> float:  # noqa: ANN401 - a timedelta, and the core imports no clock
    return 0.0 if span is None else float(span.total_seconds())
