"""What several triggers ask of a source, and how a text about many names is sent in parts. Pure."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache

from keda_gpu_scaler.spec.spec import WINDOW_SECONDS, OwnQuery, Signal, TriggerSpec


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """The data that a set of triggers shares."""

    signal: Signal
    profile: str
    namespaces: frozenset[str]
    span_seconds: float
    """How far back the samples must reach."""
    window_seconds: float
    """The longest window of the triggers; idleness and absence need one that samples cover."""
    query: OwnQuery | None = None
    """Custom PromQL, in place of the metrics of the profile and the signal."""


def merged(snapshot_queries: Collection[SnapshotQuery]) -> SnapshotQuery:
    """Return the query that covers them all; they share one signal, profile and own query."""
    first = next(iter(snapshot_queries))
    return SnapshotQuery(
        first.signal,
        first.profile,
        frozenset().union(*(snapshot_query.namespaces for snapshot_query in snapshot_queries)),
        max(snapshot_query.span_seconds for snapshot_query in snapshot_queries),
        max(snapshot_query.window_seconds for snapshot_query in snapshot_queries),
        query=first.query,
    )


def snapshot_query_of(spec: TriggerSpec, step_seconds: float) -> SnapshotQuery:
    """Return what one trigger asks of its source, which has new samples once per step."""
    window = spec.window_seconds if spec.window_seconds is not None else WINDOW_SECONDS
    shared = _one_for_all(
        spec.shared_signal,
        spec.profile,
        frozenset({spec.pods.namespace}),
        span_seconds=spec.reach_seconds + step_seconds,
        window_seconds=max(window, spec.activation_window_seconds),
    )
    return shared if spec.query is None else replace(shared, query=spec.query)


_one_for_all = lru_cache(maxsize=1024)(SnapshotQuery)
"""Triggers that ask the same share one object: each call finds it in a dictionary."""


def texts_about(
    names: frozenset[str], write: Callable[[Collection[str]], str], longest_bytes: float
) -> list[str]:
    """Return one text about all names, as `write` makes it, or several about parts of them.

    The names are namespaces or GPUs; the answer is the sum of the answers about the parts. One name
    is never split.
    """
    text = write(names)
    if len(names) <= 1 or len(text.encode()) <= longest_bytes:
        return [text]
    ordered = sorted(names)
    middle = len(ordered) // 2
    return [
        part_text
        for part in (ordered[:middle], ordered[middle:])
        for part_text in texts_about(frozenset(part), write, longest_bytes)
    ]
