"""The scaler's own queries as PromQL, for tests that look at the text."""

from collections.abc import Collection, Iterable

from keda_gpu_scaler.query import kube_state_texts, profiles, promql_texts
from keda_gpu_scaler.spec.spec import SnapshotQuery


def snapshot_text(
    wanted: SnapshotQuery,
    jobs: Iterable[str],
    step_seconds: float,
    found: Collection[str] = profiles.DETECTED,
) -> str:
    metric_sources = profiles.metric_sources(wanted.profile, wanted.signal, frozenset(found))
    return promql_texts.snapshot_text(
        metric_sources, frozenset(jobs), wanted.span_seconds, step_seconds, wanted.namespaces
    )


def ages_text(wanted: SnapshotQuery, found: Collection[str] = profiles.DETECTED) -> str:
    metric_sources = profiles.metric_sources(wanted.profile, wanted.signal, frozenset(found))
    return promql_texts.ages_text(metric_sources, wanted.namespaces)


reported_gpus_text = promql_texts.gpus_text


def kube_state_text(
    namespaces: Iterable[str], jobs: Iterable[str], new_namespaces: Iterable[str] = ()
) -> str:
    return kube_state_texts.kube_state_text(
        frozenset(jobs), frozenset(new_namespaces), (), frozenset(namespaces)
    )
