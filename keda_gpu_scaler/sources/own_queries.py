"""A user's own PromQL, asked of a Prometheus: its elements, their ages, and their targets' health.

Whose absence means nothing is never looked for: of a query that leaves elements out by itself, only
the cluster can say that a pod has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from keda_gpu_scaler import elements, sharing
from keda_gpu_scaler.observation import Need, Observation, Row, Target
from keda_gpu_scaler.own_query import OwnQuery
from keda_gpu_scaler.sources import instants

JOBS = 20
"""The health of so many scrape jobs is asked for; elements of more have no evidence of theirs."""

Ask = Callable[[str, str, float], Awaitable[list[Row]]]
"""Kind of question, text and instant → rows."""


class OwnQueries:
    """Asks one server."""

    def __init__(self, matrix: Ask, vector: Ask, collection_seconds: float) -> None:
        """Ask nothing yet.

        Args:
            matrix: asks for a range of points.
            vector: asks for one instant.
            collection_seconds: how old an exporter's number can be when it is scraped.
        """
        self._matrix, self._vector = matrix, vector
        self._collection_seconds = collection_seconds

    async def fetch(self, own: OwnQuery, need: Need, at: float, step_seconds: float) -> Observation:
        """Return the elements up to `at`, with the ages of what they are made of."""
        observation = await self.observed("own", own, need, at, step_seconds)
        rows = await self._vector("own-age", elements.ages(own, step_seconds), at)
        pods = {(one.namespace, one.pod) for one in observation.series}
        return replace(observation, sample_ages=elements.oldest(rows, pods))

    async def observed(
        self, kind: str, own: OwnQuery, need: Need, at: float, step_seconds: float
    ) -> Observation:
        """Return the elements up to `at`."""
        text = elements.snapshot(own, need.span_seconds, step_seconds)
        times = instants.within(at, need.span_seconds, step_seconds)
        rows = instants.since(times[0], await self._matrix(kind, text, at))
        good = await self._good_scrapes(own, rows, need.span_seconds, at, step_seconds)
        found, refused, strangers = await asyncio.to_thread(elements.series, rows, need.namespaces)
        return Observation(
            instants=times,
            series=sharing.steadied(found, good),
            good_scrapes=good,
            refused_samples=refused,
            strangers=strangers,
            is_selective=not own.faithful,
            collection_seconds=self._collection_seconds + own.reach_seconds,
        )

    async def _good_scrapes(
        self, own: OwnQuery, rows: list[Row], span_seconds: float, at: float, step_seconds: float
    ) -> dict[Target, dict[float, float]]:
        jobs = {row.labels["job"] for row in rows if row.labels.get("job")}
        if not own.faithful or not 0 < len(jobs) <= JOBS:
            return {}
        text = elements.targets(jobs, span_seconds, step_seconds)
        return {
            Target(row.labels.get("job", ""), row.labels.get("instance", "")): dict(row.points)
            for row in await self._matrix("own-targets", text, at)
        }
