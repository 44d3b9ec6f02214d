"""Reads what `backtest` replays: an hour a query, slowly, and kept in a file to go on from."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import PrometheusSettings, Settings
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import TriggerSpec, snapshot_query_of
from keda_gpu_scaler.workbench.backtest.recorded import Chunk, chunk_of
from keda_gpu_scaler.workbench.cache import Cache
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS

CHUNK_SECONDS = 3600
"""Of the past that one query is about."""


async def pause() -> None:
    """Wait before a query: whoever else uses the Prometheus comes first."""
    await asyncio.sleep(0.5)


async def read_past(
    spec: TriggerSpec,
    settings: Settings,
    cache: Cache[Chunk],
    seconds: float,
    tell: Callable[[float], None],
) -> list[Chunk]:
    """Return the last whole hours of a trigger, and this one so far, from the source it names.

    `tell` gets the part that is done. SettingsError: the source has no past. SourceError: it does
    not answer.
    """
    source = settings.sources[spec.source]
    demand = None if spec.demand is None else spec.demand.text
    signal = spec.signal, spec.profile, spec.gpu_aggregation, spec.query
    what = repr((source, spec.pods, *signal, demand))
    key = hashlib.sha256(what.encode()).hexdigest()[:16]
    if not isinstance(source, PrometheusSettings):
        message = f"source {spec.source} shows only the present: expected a Prometheus"
        raise errors.SettingsError(message)
    client = PrometheusClient(spec.source, source, before_query=pause)
    if source.is_per_namespace:
        client = client.within(spec.pods.namespace)
    prometheus = PrometheusSource(client)

    async def fetch(at: float) -> Chunk:
        span_seconds = at - _begin(at)
        query = replace(snapshot_query_of(spec, STEP_SECONDS), span_seconds=span_seconds)
        observation = await prometheus.past(query, at, STEP_SECONDS)
        demands = None
        if demand is not None:
            demands = await prometheus.past_numbers(demand, span_seconds, at, STEP_SECONDS)
        chunk = chunk_of(spec, observation, demands)
        if span_seconds == CHUNK_SECONDS and any(chunk.covered):
            cache.add(key, chunk)
        return chunk

    try:
        await prometheus.synchronize()
        newest = prometheus.instant() // STEP_SECONDS * STEP_SECONDS
        end = newest // CHUNK_SECONDS * CHUNK_SECONDS
        hours = range(max(1, int(seconds // CHUNK_SECONDS)))
        ends = dict.fromkeys([newest, *(end - number * CHUNK_SECONDS for number in hours)])
        chunks: dict[float, Chunk] = {}
        blind, knows_jobs = list[float](), False
        # The newest hours first: they show which exporters and scrape jobs there are.
        for number, at in enumerate(ends, 1):
            chunk = cache.get(key, _begin(at) + STEP_SECONDS)
            if chunk is None:
                chunk = await fetch(at)
                knows_jobs = knows_jobs or any(chunk.covered)
                blind += [] if knows_jobs else [at]
            chunks[at] = chunk
            tell(number / len(ends))
        for at in blind if knows_jobs else ():  # it may be covered by the jobs that are known now
            chunks[at] = await fetch(at)
        return [chunks[at] for at in sorted(chunks)]
    finally:
        await prometheus.close()


def _begin(at: float) -> float:
    """Return the begin of the hour that an instant belongs to, which ends with its last instant."""
    return (at - STEP_SECONDS) // CHUNK_SECONDS * CHUNK_SECONDS
