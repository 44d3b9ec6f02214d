"""The scaler's own queries as PromQL, for tests that look at the text."""

from collections.abc import Iterable

from keda_gpu_scaler.query.kube_state_metrics import KubeStatePromql
from keda_gpu_scaler.query.promql_texts import GpusPromql, ages_promql, snapshot_promql
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery


def snapshot_text(snapshot_query: SnapshotQuery, jobs: Iterable[str], step_seconds: float) -> str:
    """Return the text of a snapshot query."""
    return snapshot_promql(snapshot_query, jobs, step_seconds).text


def ages_text(snapshot_query: SnapshotQuery) -> str:
    """Return the text of the query for ages."""
    return ages_promql(snapshot_query).text


def reported_gpus_text(uuids: Iterable[str]) -> str:
    """Return the text of the query about GPUs."""
    return GpusPromql(frozenset(uuids)).text


def kube_state_text(
    namespaces: Iterable[str], jobs: Iterable[str], new_namespaces: Iterable[str] = ()
) -> str:
    """Return the text of the query about pods."""
    return KubeStatePromql(frozenset(namespaces), frozenset(jobs), frozenset(new_namespaces)).text
