"""PromQL → what is known of the numbers that it gives, by the metrics that it reads. Pure.

What is not known is taken for right: a metric without a row may be anything.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import re2

from keda_gpu_scaler.demand import known_metrics
from keda_gpu_scaler.demand.known_metrics import Known, MetricOwner, Unit
from keda_gpu_scaler.promql import policy, tree
from keda_gpu_scaler.query import profiles

_ANY_KIND = frozenset(tree.Type)
_OF_SERIES = frozenset({tree.Type.VECTOR, tree.Type.MATRIX})
PER_POD = frozenset({"instance", *profiles.POD_LABELS, *profiles.BOARD_LABELS})
"""Labels by which the elements of two pods differ."""
OTHERS = frozenset({"labels that pods share"})
"""In place of names that are not known: those that `without` leaves."""
_AVERAGES = {
    "avg": "an average",
    "quantile": "a quantile",
    "stddev": "a deviation",
    "stdvar": "a deviation",
}
_EXTREMES = {"max": "a maximum", "min": "a minimum", "topk": "a maximum", "bottomk": "a minimum"}
"""Of a queue that several exporters show, these are right."""
_DROPPING = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
_TOTALS = frozenset({"sum", "count", "group"})
_RATES = frozenset({"rate", "irate", "increase", "delta", "idelta", "deriv"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^", "atan2"})
_REMEMBERED = 32
"""Each rule reads the same few texts."""
LATENCY = "a latency"
RATIO = "a ratio"
_TIMES = ("seconds", "latency", "duration", "time_to", "time_per")
_NO_TIMES = ("_count", "_total")
_OF_HISTOGRAMS = frozenset(
    {"histogram_quantile", "histogram_avg", "histogram_fraction", "histogram_stddev"}
)


class Meaning(NamedTuple):
    """What is known of the numbers of an expression."""

    names: frozenset[str] = frozenset()
    """The metrics that it reads; those with no name are left out."""
    labels: frozenset[str] | None = frozenset()
    """The labels of its elements; none: there is one element; None: all labels of series."""
    unlike_sum: str = ""
    """Why it does not add up over replicas, as a noun; empty: it does, as far as is known."""
    unit: Unit | None = None

    @property
    def known(self) -> list[Known]:
        """What is known of its metrics; one of which nothing is known is left out."""
        return [row for name in self.names if (row := known_metrics.known(name))]

    @property
    def is_known(self) -> bool:
        """Whether something is known of each of its metrics, and there are some."""
        return 0 < len(self.names) == len(self.known)

    def is_of(self, *owners: MetricOwner) -> bool:
        """Tell whether it reads a metric of one of these."""
        return any(row.owner in owners for row in self.known)

    @property
    def is_per_pod(self) -> bool:
        return self.labels is None or not PER_POD.isdisjoint(self.labels)

    @property
    def is_several(self) -> bool:
        """Whether there are several elements as soon as there are several pods."""
        is_of_pods = self.is_per_pod and self.is_of(MetricOwner.SERVER, MetricOwner.EXPORTER)
        return is_of_pods and not self.unlike_sum  # that is the cause then


@lru_cache(_REMEMBERED)
def parsed(query: str) -> tree.Node | None:
    """Return the tree of PromQL; None if it cannot be read."""
    try:
        return policy.expression(query, _ANY_KIND)
    except ValueError:
        return None


def is_no_promql(query: str) -> bool:
    """Tell whether a text breaks PromQL's grammar; other servers may have more functions."""
    try:
        policy.expression(query, _ANY_KIND)
    except ValueError as error:
        return str(error).startswith("a PromQL expression: ") and "function" not in str(error)
    return False


def nodes(query: str) -> list[tree.Node]:
    """Return what PromQL consists of, from the top; nothing if it cannot be read."""
    root = parsed(query)
    return [] if root is None else [node for node, _ in tree.nodes(root)]


def names(selector: tree.Selector) -> frozenset[str]:
    """Return the metrics of a selector; of a pattern those that are known."""
    found = set[str]()
    for matcher in tree.matchers(selector):
        if matcher.label == "__name__" and matcher.sign == "=":
            found.add(matcher.value)
        elif matcher.label == "__name__" and matcher.sign == "=~":
            pattern = re2.compile(matcher.value)  # it was compiled before, with a limit
            found |= {name for name in known_metrics.METRICS if pattern.fullmatch(name)}
    return frozenset(found)


def of(node: tree.Node) -> Meaning:  # noqa: PLR0911 - one for each kind of node
    match node:
        case tree.Selector():
            return _of_selector(node)
        case tree.Range(selector):
            return of(selector)
        case tree.Negative() | tree.Subquery():
            return of(node.operand)
        case tree.Call():
            return _of_call(node)
        case tree.Aggregation():
            return _of_aggregation(node)
        case tree.Operation():
            return _of_operation(node)
        case _:
            return Meaning()


def _of_selector(node: tree.Selector) -> Meaning:
    reading = Meaning(names(node), None)
    units = {row.unit for row in reading.known}
    unlike = "" if all(row.adds_up for row in reading.known) else "a mean of the router's pool"
    is_sure = reading.is_known and len(units) == 1
    return reading._replace(unlike_sum=unlike, unit=units.pop() if is_sure else None)


def _of_call(node: tree.Call) -> Meaning:
    reading = next(
        (of(argument) for argument in node.arguments if tree.kind(argument) in _OF_SERIES),
        Meaning(),
    )
    if node.name in _OF_HISTOGRAMS:
        labels = None if reading.labels is None else reading.labels - {"le"}
        unlike = LATENCY if _is_of_time(reading.names) else "a quantile"
        return Meaning(reading.names, labels, unlike)
    if node.name in _RATES:
        unit = Unit.AMOUNT if reading.unit is Unit.COUNTER else None
        return reading._replace(unit=unit)
    if node.name == "scalar" or node.name.startswith("absent"):
        return Meaning(reading.names, unlike_sum=reading.unlike_sum, unit=reading.unit)
    if node.name in {"label_replace", "label_join"} and reading.labels is not None:
        written = {text.value for text in node.arguments[1:2] if isinstance(text, tree.Text)}
        return reading._replace(labels=reading.labels | written)
    return reading


def _is_of_time(read: Iterable[str]) -> bool:
    return any(word in name for name in read for word in _TIMES if not name.endswith(_NO_TIMES))


def _of_aggregation(node: tree.Aggregation) -> Meaning:
    inner = of(node.operand)
    labels = frozenset[str]() if node.grouping is None else frozenset(node.grouping.names)
    outer = inner._replace(labels=labels)
    if node.grouping is not None and node.grouping.word == "without":
        left = OTHERS if {"pod", "instance"} <= labels else None
        outer = inner._replace(labels=left if inner.labels is None else inner.labels - labels)
    if node.name in {"count", "group", "count_values"}:
        return outer._replace(unlike_sum="", unit=None)
    unlike = _AVERAGES.get(node.name, "")
    if inner.is_of(MetricOwner.SERVER, MetricOwner.EXPORTER):
        unlike = unlike or _EXTREMES.get(node.name, "")
    elif inner.is_known:
        unlike = ""  # a router's number is the same for any number of replicas
    if inner.unlike_sum or not inner.is_per_pod or outer.is_per_pod:
        unlike = inner.unlike_sum
    elif unlike and _is_of_time(inner.names):
        unlike = LATENCY
    if node.name in _DROPPING:  # the elements that it keeps are as they were
        is_one = node.parameter == tree.Number(1)
        return inner._replace(unlike_sum=unlike if is_one else inner.unlike_sum)
    return outer._replace(unlike_sum=unlike)


def constant(node: tree.Node) -> float | None:
    match node:
        case tree.Number(value):
            return value
        case tree.Negative(operand):
            number = constant(operand)
            return None if number is None else -number
        case tree.Call("vector" | "scalar", [operand]):
            return constant(operand)
        case _:
            return None


def _of_operation(node: tree.Operation) -> Meaning:
    left, right = of(node.left), of(node.right)
    factors = constant(node.left), constant(node.right)
    if node.sign not in _ARITHMETIC | {"or"} or (node.sign == "or" and factors[1] is not None):
        kept = left if factors[0] is None else right
        return kept._replace(unit=None if node.is_bool else kept.unit)
    if factors[1] is not None:
        number = 1 / factors[1] if node.sign == "/" and factors[1] else factors[1]
        return left._replace(unit=_scaled(node.sign, left.unit, number))
    if factors[0] is not None:
        unlike = RATIO if node.sign == "/" else right.unlike_sum
        return right._replace(unlike_sum=unlike, unit=_scaled(node.sign, right.unit, factors[0]))
    unlike, unit = left.unlike_sum or right.unlike_sum, left.unit
    unit = unit if unit is right.unit else None
    if node.sign == "*":
        other = node.right if left.unlike_sum else node.left
        is_mean_of = not (left.unlike_sum and right.unlike_sum) and _has(other, *_TOTALS)
        unlike, unit = "" if is_mean_of else unlike, None
    labels = _joined(node, left.labels, right.labels)
    reading = Meaning(left.names | right.names, labels, unlike, unit)
    return _quotient(node, left, right, reading) if node.sign == "/" else reading


def _scaled(sign: str, unit: Unit | None, factor: float) -> Unit | None:
    if sign in {"+", "-"} or unit in {Unit.AMOUNT, Unit.COUNTER} or factor == 1:
        return unit
    changes = {(Unit.SHARE, 100): Unit.PERCENT, (Unit.PERCENT, 0.01): Unit.SHARE}
    return changes.get((unit, factor)) if unit and sign in {"*", "/"} else None


def _quotient(node: tree.Operation, left: Meaning, right: Meaning, reading: Meaning) -> Meaning:
    unlike, unit = left.unlike_sum, None
    is_of_replicas = any("replicas" in name for name in right.names)
    if _is_of_time(left.names) and any(name.endswith("_count") for name in right.names):
        unlike = LATENCY
    elif not (unlike or right.unlike_sum or reading.is_per_pod) and (
        is_of_replicas or _has(node.right, *_TOTALS)
    ):
        unlike = LATENCY if _is_of_time(left.names) else RATIO
    if is_of_replicas or counts(node.right):
        unit = left.unit
    elif left.names and left.names <= right.names:
        unit = Unit.SHARE
    return reading._replace(unlike_sum=unlike, unit=unit)


def counts(node: tree.Node) -> bool:
    """Tell whether it has a number of elements in it."""
    return _has(node, "count", "count_over_time", "group")


def _has(node: tree.Node, *names: str) -> bool:
    return any(
        isinstance(inner, tree.Aggregation | tree.Call) and inner.name in names
        for inner, _ in tree.nodes(node)
    )


def _joined(
    node: tree.Operation, left: frozenset[str] | None, right: frozenset[str] | None
) -> frozenset[str] | None:
    """Return the labels of elements that are made of one of each side."""
    lists = {labels.word: frozenset(labels.names) for labels in node.lists}
    if node.sign == "or":
        return None if left is None or right is None else left | right
    for word, many, other in (("group_left", left, node.right), ("group_right", right, node.left)):
        if word in lists or tree.kind(other) is tree.Type.SCALAR:
            return None if many is None else many | lists.get(word, frozenset())
    if "on" in lists:
        return lists["on"]
    return right if left is None else left if right is None else left & right


def without_pods(  # noqa: PLR0911 - one for each kind of node
    node: tree.Node, shown: Callable[[tree.Selector], int | None]
) -> int | None:
    """Return what an expression gives while the workload has no pods, by what its selectors do.

    1: something above 0, where there is work; 0: not above 0; None: no element.
    """
    number = constant(node)
    if number is not None:
        return int(number > 0)
    is_operation = isinstance(node, tree.Operation)
    operands = [
        operand
        for operand in tree.children(node)
        if is_operation or tree.kind(operand) in _OF_SERIES
    ]
    given = [without_pods(operand, shown) for operand in operands]
    found = [sign for sign in given if sign is not None]
    are_both = len(found) == len(given)
    match node:
        case tree.Selector():
            return shown(node)
        case tree.Operation("or"):
            return max(found, default=None)
        case tree.Operation("+") if are_both:
            return max(found)
        case tree.Operation("*" | "and") if are_both:
            return min(found)
        case tree.Operation(sign) if sign != "unless" and not are_both:
            return None
        case tree.Call(name) if name.startswith("absent"):
            return 1
    return given[0] if given else 1
