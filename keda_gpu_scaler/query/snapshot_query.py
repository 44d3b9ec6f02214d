"""What triggers ask of a source together: one signal by one profile, for some namespaces. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from keda_gpu_scaler.spec.spec import WINDOW_SECONDS, OwnQuery, Signal, TriggerSpec


@dataclass(frozen=True, slots=True)
class Need:
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


def merged(needs: Collection[Need]) -> Need:
    """Return the one need that covers `needs`, which are all of one signal, profile and query."""
    first = next(iter(needs))
    return Need(
        first.signal,
        first.profile,
        frozenset().union(*(need.namespaces for need in needs)),
        max(need.span_seconds for need in needs),
        max(need.window_seconds for need in needs),
        query=first.query,
    )


def need_of(spec: TriggerSpec, step_seconds: float) -> Need:
    """Return what one trigger wants of its source, which has something new once per step."""
    window = spec.window_seconds if spec.window_seconds is not None else WINDOW_SECONDS
    reach = max(window + spec.warmup_seconds, spec.activation_window_seconds, spec.max_age_seconds)
    return Need(
        spec.shared_signal,
        spec.profile,
        frozenset({spec.pods.namespace}),
        span_seconds=reach + step_seconds,
        window_seconds=max(window, spec.activation_window_seconds),
        query=spec.query,
    )
