"""What the operator lets users ask of a Prometheus; confines their PromQL to that. Pure.

A series can name two namespaces: that of the pod it is about and, where its target was scraped
without `honor_labels`, the target's own. Then `namespace` is the target's, and the pod's is in
another label, such as `exported_namespace`. Neither may name another namespace:

- a selector that has a matcher on one of these other labels gets that label pinned;
- every other selector gets `namespace` pinned, and the other labels must be empty or the same, so
  that the tenant that runs an exporter does not see other tenants' pods on it.

A series that names no namespace at all is not shown.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql import placeholders, reading, tree, writing
from keda_gpu_scaler.query.promql.placeholders import Values
from keda_gpu_scaler.query.promql.tokens import MisplacedError
from keda_gpu_scaler.query.promql.tree import Call, Matcher, Node
from keda_gpu_scaler.spec.spec import Origin, OwnQuery

TARGETS_OWN = "namespace"
"""The label with the namespace of the pod or of the scrape target."""
_PODS = tuple(label for label in profiles.NAMESPACE_LABELS if label != TARGETS_OWN)


def confining_matchers(given: Sequence[Matcher], namespace: str) -> list[Matcher]:
    """Return the matchers to add to a selector to confine it.

    All matchers apply: if a user's matcher contradicts them, the selector shows nothing.

    Args:
        given: the selector's own matchers.
        namespace: the only one that may be read.
    """
    named = {one.label for one in given}
    pinned = next((label for label in _PODS if label in named), TARGETS_OWN)
    others = [Matcher(label, "=~", f"|{namespace}") for label in _PODS if label != pinned]
    return [Matcher(pinned, "=", namespace), *others]


LARGEST_REACH_SECONDS = 3600.0
"""Limited, because every query is sent again and again."""
_SELECTORS = 20
_STEPS = 10_000
"""An hour in steps of a second, with room; nested subqueries multiply theirs."""
_USUAL_STEP_SECONDS = 1.0
"""The step of a subquery that names none: the server's default, which is hardly ever shorter."""
_UNCONFINED = frozenset({"info"})
"""Functions that read series which no selector names."""


class Policy(StrEnum):
    """What custom PromQL may read."""

    ALLOW = "allow"
    NAMESPACED = "namespaced"
    DENY = "deny"


class Allowed(NamedTuple):
    """A user's PromQL that may be sent."""

    root: Node
    """The expression."""
    text: str
    """The text that is sent."""
    more: writing.More
    """The matchers that confine its selectors."""


def allowed(
    text: str,
    read: Callable[..., Node],
    policy: Policy,
    namespace: str,
    values: Values | None = None,
) -> Allowed:
    """Return an expression as it may be sent.

    Args:
        text: what the user wrote.
        read: returns its tree; one of `reading`.
        policy: what the operator has decided.
        namespace: the only one that may be read, if the policy is `namespaced`.
        values: what is filled in for placeholders; None: there are none.

    Raises:
        ValueError: it cannot or may not be sent; the words follow "expected".
    """
    _check_not_denied(policy)
    written, text = text, _filled(text, values)
    root = read(written)  # its mistakes are told by their places in what the user wrote
    if text != written:
        root = read(text, reading.FILLED_CHARACTERS)
    _check_affordable(root)
    if policy is Policy.ALLOW:
        return Allowed(root, text, writing.nothing)
    _check_confinable(root)
    more = functools.partial(confining_matchers, namespace=namespace)
    return Allowed(root, writing.written(root, more), more)


def own(text: str, policy: Policy, namespace: str, values: Values | None = None) -> OwnQuery:
    """Return a query for elements that name their pods, as it is sent.

    Args:
        text: what the user wrote: an expression for an instant vector.
        policy: what the operator has decided.
        namespace: the namespace of the measured pods.
        values: what is filled in for placeholders; None: there are none.

    Raises:
        ValueError: it cannot or may not be sent; the words follow "expected".
    """
    asked = allowed(text, reading.instant_vector, policy, namespace, values)
    return OwnQuery(
        text=asked.text,
        origins=tuple(_origins(tree.lookbacks(asked.root), asked.more)),
        is_complete=tree.is_complete(asked.root),
    )


def number(text: str, policy: Policy, namespace: str, values: Values | None = None) -> str:
    """Return an expression for one number, as it is sent.

    Args:
        text: what the user wrote: an expression for a scalar or an instant vector.
        policy: what the operator has decided.
        namespace: the ScaledObject's.
        values: what is filled in for placeholders; None: there are none.

    Raises:
        ValueError: it cannot or may not be sent; the words follow "expected".
    """
    asked = allowed(text, reading.number, policy, namespace, values)
    _longest_lookbacks(tree.lookbacks(asked.root), asked.more)
    return asked.text


def _filled(text: str, values: Values | None) -> str:
    if values is None or len(text) > reading.CHARACTERS:
        return text
    try:
        return placeholders.filled(text, values)
    except MisplacedError as error:
        raise reading.misplaced(text, error) from error


def _check_not_denied(policy: Policy) -> None:
    if policy is Policy.DENY:
        raise ValueError(
            "none: custom PromQL is denied here; the operator can allow it with "
            "KEDA_GPU_SCALER_OWN_PROMQL"
        )


def _check_affordable(root: Node) -> None:
    """Refuse a query that takes a server minutes: it would be sent again meanwhile."""
    if tree.most_steps(root, _USUAL_STEP_SECONDS) > _STEPS:
        raise ValueError(
            f"a PromQL expression whose subqueries take at most {_STEPS:,} steps, multiplied where "
            f"they are nested; one that names no step counts as if it were "
            f"{_USUAL_STEP_SECONDS:g}s"
        )


def _check_confinable(root: Node) -> None:
    called = {node.name for node, _ in tree.nodes(root) if isinstance(node, Call)}
    for name in sorted(called & _UNCONFINED):
        raise ValueError(
            f"no {name}(), which reads series beside those it is given: custom PromQL is confined "
            "to the ScaledObject's namespace here (KEDA_GPU_SCALER_OWN_PROMQL)"
        )


def _origins(found: Iterable[tree.Lookback], more: writing.More) -> list[Origin]:
    longest = _longest_lookbacks(found, more)
    if not longest:
        raise ValueError("an expression with a metric in it: without one it says nothing of a pod")
    return [Origin(text, seconds) for text, seconds in longest.items()]


def _longest_lookbacks(found: Iterable[tree.Lookback], more: writing.More) -> dict[str, float]:
    """Return each distinct selector with the longest time it reaches back."""
    longest: dict[str, float] = {}
    for selector, seconds in found:
        text = writing.written(selector, more)
        longest[text] = max(seconds, longest.get(text, 0.0))
    if len(longest) > _SELECTORS:
        raise ValueError(f"a PromQL expression with at most {_SELECTORS} different selectors")
    if max(longest.values(), default=0.0) > LARGEST_REACH_SECONDS:
        raise ValueError("a PromQL expression whose ranges, added up, reach back at most 1h")
    return longest
