"""What triggers ask of a source together: one signal by one profile, for some namespaces. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

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
    """The longest window that is looked at: idleness and absence need one that is covered."""
    found: frozenset[str] = frozenset()
    """What a source has found of exporters beside dcgm-exporter, for the profile `auto`."""
    query: OwnQuery | None = None
    """The user's own PromQL, in place of what the profile and the signal stand for."""


def merged(snapshot_queries: Collection[SnapshotQuery]) -> SnapshotQuery:
    """Return the one that covers them all; they are of one signal, profile and own query."""
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
    """Return what one trigger wants of its source, which has something new once per step."""
    window = spec.window_seconds if spec.window_seconds is not None else WINDOW_SECONDS
    reach = max(window + spec.warmup_seconds, spec.activation_window_seconds, spec.max_age_seconds)
    return SnapshotQuery(
        spec.shared_signal,
        spec.profile,
        frozenset({spec.pods.namespace}),
        span_seconds=reach + step_seconds,
        window_seconds=max(window, spec.activation_window_seconds),
        query=spec.query,
    )
