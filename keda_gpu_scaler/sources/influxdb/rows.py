"""Points of an InfluxDB → the observation of pods at the instants of a snapshot.

Pure. InfluxDB shows neither that a series has ended nor whether an exporter is up. A series counts
as present until its newest point is older than two of its own intervals. A series that is absent
proves nothing.
"""

import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.influxql import Schema
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Row
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.sources.influxdb.api import Series
from keda_gpu_scaler.sources.series import read_series, sample_ages

_INTERVALS = 2
"""Points come a little late, and one lost point must not make a pod absent."""
_LONGEST_SECONDS = 120.0
_SLICE = "GPU_I_ID"

Points = Sequence[tuple[float, float]]


def lookback_seconds(step: float) -> float:
    """Return how far back to look for a point at most."""
    return max(_LONGEST_SECONDS, _INTERVALS * step)


def rows(found: Iterable[Series], schema: Schema, asked: SnapshotQuery) -> list[Row]:
    """Return the points with the labels that an exporter would show."""
    known = {
        metric.name: way.labels
        for way in reversed(profiles.metric_sources(asked.profile, asked.signal))
        for metric in way.measure.metrics
    }
    named = ((schema.metric(one.measurement, one.field), one) for one in found)
    return [
        Row({**schema.labels(one.tags, known[metric]), "__name__": metric}, one.points)
        for metric, one in named
        if metric in known
    ]


def samples(
    found: Iterable[Series], schema: Schema, asked: SnapshotQuery, at: float, step: float
) -> Observation:
    """Return the observation at each instant, from points at any time.

    Args:
        found: the series with those points.
        schema: how they are laid out.
        asked: the query that was sent.
        at: the newest instant.
        step: the seconds between two instants.
    """
    times = evaluation_times.within(at, asked.span_seconds, step)
    raw = rows(found, schema, asked)
    placed = [Row(row.labels, at_instants(row.points, times, step)) for row in raw]
    newest = [Row(row.labels, [(at, at - row.points[-1][0])]) for row in raw]
    return replace(_observation(placed, asked, times), sample_ages=sample_ages(newest))


def record(
    found: Iterable[Series], schema: Schema, asked: SnapshotQuery, at: float, step: float
) -> Observation:
    """Return the same for points that are dated at the beginning of the step they stand for."""
    ended = [
        Row(row.labels, [(time + step, value) for time, value in row.points])
        for row in rows(found, schema, asked)
    ]
    return _observation(ended, asked, evaluation_times.within(at, asked.span_seconds, step))


def _observation(placed: list[Row], asked: SnapshotQuery, times: tuple[float, ...]) -> Observation:
    series, refused = read_series(placed, asked.profile, asked.signal)
    return Observation(times, series, good_scrapes={}, refused_samples=refused)


def at_instants(points: Points, times: Iterable[float], step: float) -> list[tuple[float, float]]:
    """Return the value of a series at every instant at which it is present."""
    taken = [time for time, _ in points]
    gaps = (later - earlier for earlier, later in itertools.pairwise(taken))
    interval = max(step, min(gaps, default=step))
    reach = min(_INTERVALS * interval, lookback_seconds(step))
    found = ((time, bisect_right(taken, time) - 1) for time in times)
    return [
        (time, points[newest][1])
        for time, newest in found
        if newest >= 0 and time - taken[newest] < reach
    ]


def reports(
    found: Iterable[Series], schema: Schema, uuids: Collection[str], at: float, step: float
) -> GpuReports:
    """Return which of these GPUs are shown at an instant, and which are busy without a pod."""
    busy: set[tuple[str, str]] = set()
    mapped: set[tuple[str, str]] = set()
    reported: set[str] = set()
    for one in found:
        uuid, now = one.tags.get(schema.gpu_tag, ""), at_instants(one.points, (at,), step)
        if now and uuid in uuids:
            reported.add(uuid)
            part = uuid, one.tags.get(_SLICE, "")
            if one.tags.get(schema.pod_tag):
                mapped.add(part)
            elif now[0][1] > 0:
                busy.add(part)
    return GpuReports(frozenset(reported), frozenset(uuid for uuid, _ in busy - mapped))
