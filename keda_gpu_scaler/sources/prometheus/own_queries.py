"""A custom PromQL query to a Prometheus: its elements, their ages, their targets' health.

An element names its pod by the pod labels of any known exporter; its other labels tell the GPUs of
one pod apart. An element that names no pod counts for no workload. If a query itself leaves
elements out, absence proves nothing, so their targets are not queried: only the cluster can show
that a pod has ended.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import replace

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.query.promql_texts import (
    element_ages_text,
    element_targets_text,
    elements_text,
)
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.evidence import PodKey
from keda_gpu_scaler.snapshot.observation import Observation, Row, Series, Target
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.series import fill_gaps, known_age, scrape_times, target_of
from keda_gpu_scaler.spec.spec import OwnQuery

_LARGEST = 2.0**53
_POD_LABELS = frozenset({*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS})


def oldest_age(rows: Iterable[Row], pods: Iterable[PodKey]) -> dict[PodKey, float]:
    """Return the ages of pods: each is as old as the oldest sample behind its numbers.

    A row that names no pod is about all `pods`, which the query shows.
    """
    ages: dict[PodKey | None, float] = {}
    for row in rows:
        pod, age = profiles.pod_of(row.labels), known_age(row.points[-1][1])
        ages[pod] = max(age, ages.get(pod, age))
    age_of_all = ages.pop(None, 0.0)
    shown = dict.fromkeys(pods, age_of_all) if age_of_all else {}
    return shown | {pod: max(age, age_of_all) for pod, age in ages.items() if pod is not None}


def element_series(
    rows: Iterable[Row], namespaces: Collection[str]
) -> tuple[tuple[Series, ...], int, int]:
    """Return the elements as series of GPUs, and two counts of what is left out.

    They are the numbers that were refused, and the elements that name no pod of `namespaces`.
    """
    series: list[Series] = []
    refused = unmatched_elements = 0
    for row in rows:
        pod = profiles.pod_of(row.labels)
        if pod is None or pod[0] not in namespaces:
            unmatched_elements += 1
            continue
        series.append(_series(pod, row))
        refused += len(series[-1].present) - len(series[-1].times)
    return tuple(series), refused, unmatched_elements


def _series(pod: PodKey, row: Row) -> Series:
    # A pod's elements are told apart by their board, if they name one, and all other labels.
    labels = row.labels
    board = next((labels[name] for name in profiles.BOARD_LABELS if labels.get(name)), "")
    others = (f"{name}={text}" for name, text in sorted(labels.items()) if name not in _POD_LABELS)
    # NaN and infinities are not between 0 and the largest number.
    believed = [
        (time, value)
        for time, value in row.points
        if 0 <= value < _LARGEST and value not in dcgm.BLANKS
    ]
    return Series(
        *pod,
        f"{board}/{','.join(others)}",
        target_of(row),
        present=tuple(time for time, _ in row.points),
        times=tuple(time for time, _ in believed),
        values=tuple(value for _, value in believed),
        averaged=False,
        shown_by=("the query of the trigger",),
    )


OWN_BYTES = 2**20
"""The limit of an answer to a user's own query: 1,500 GPUs with the usual window. There
can be hundreds of such queries, and each is about one workload."""
JOBS = 20
"""The health of at most so many scrape jobs is queried; with more jobs it stays unknown."""


class OwnQueries:
    """Sends users' own queries to one server."""

    def __init__(self, client: PrometheusClient, collection_seconds: float) -> None:
        """Query one server; `collection_seconds`: how old a number can be when it is scraped."""
        self._client, self._collection_seconds = client, collection_seconds

    async def fetch(
        self, own: OwnQuery, snapshot_query: SnapshotQuery, at: float, step_seconds: float
    ) -> Observation:
        """Return the elements up to `at`, with the ages of the samples behind them."""
        observation = await self.fetch_elements("own", own, snapshot_query, at, step_seconds)
        text = element_ages_text(own, step_seconds)
        rows = await self._client.vector("own-age", text, at, OWN_BYTES)
        pods = {(series.namespace, series.pod) for series in observation.series}
        return replace(observation, sample_ages=oldest_age(rows, pods))

    async def fetch_elements(
        self,
        kind: str,
        own: OwnQuery,
        snapshot_query: SnapshotQuery,
        at: float,
        step_seconds: float,
    ) -> Observation:
        """Return the elements up to `at`."""
        span = snapshot_query.span_seconds
        times = evaluation_times.within(at, span, step_seconds)
        text = elements_text(own, span, step_seconds)
        answer = await self._client.matrix(kind, text, at, OWN_BYTES)
        rows = evaluation_times.between(times[0], times[-1], answer)
        good_scrapes: dict[Target, dict[float, float]] = {}
        jobs = {row.labels["job"] for row in rows if row.labels.get("job")}
        if own.is_complete and 0 < len(jobs) <= JOBS:
            text = element_targets_text(jobs, span, step_seconds)
            targets = await self._client.matrix("own-targets", text, at, OWN_BYTES)
            good_scrapes = {target_of(row): scrape_times(row.points) for row in targets}
        series, refused, unmatched_elements = await asyncio.to_thread(
            element_series, rows, snapshot_query.namespaces
        )
        return Observation(
            instants=times,
            series=fill_gaps(series, good_scrapes),
            good_scrapes=good_scrapes,
            refused_samples=refused,
            unmatched_elements=unmatched_elements,
            is_selective=not own.is_complete,
            collection_seconds=self._collection_seconds + own.lookback_seconds,
        )
