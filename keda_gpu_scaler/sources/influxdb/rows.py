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


def rows(fields: Iterable[Series], schema: Schema, snapshot_query: SnapshotQuery) -> list[Row]:
    """Return the points with the labels that an exporter would show."""
    known = {
        metric.name: source.labels
        for source in reversed(
            profiles.metric_sources(snapshot_query.profile, snapshot_query.signal)
        )
        for metric in source.measure.metrics
    }
    named = ((schema.metric(field.measurement, field.field), field) for field in fields)
    return [
        Row({**schema.labels(field.tags, known[metric]), "__name__": metric}, field.points)
        for metric, field in named
        if metric in known
    ]


def samples(raw: list[Row], snapshot_query: SnapshotQuery, at: float, step: float) -> Observation:
    """Return the observation at each instant up to `at`, from points at any time."""
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    placed = [Row(row.labels, at_instants(row.points, times, step)) for row in raw]
    ages = sample_ages([Row(row.labels, [(at, at - row.points[-1][0])]) for row in raw])
    return replace(_observation(placed, snapshot_query, times), sample_ages=ages)


def record(raw: list[Row], snapshot_query: SnapshotQuery, at: float, step: float) -> Observation:
    """Return the same for points that are dated at the beginning of the step they stand for."""
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    ended = [Row(row.labels, [(time + step, value) for time, value in row.points]) for row in raw]
    return _observation(ended, snapshot_query, times)


def _observation(
    placed: list[Row], snapshot_query: SnapshotQuery, times: tuple[float, ...]
) -> Observation:
    series, refused = read_series(placed, snapshot_query.profile, snapshot_query.signal)
    return Observation(times, series, good_scrapes={}, refused_samples=refused)


def at_instants(points: Points, times: Iterable[float], step: float) -> list[tuple[float, float]]:
    """Return the value of a series at every instant at which it is present."""
    point_times = [time for time, _ in points]
    gaps = (later - earlier for earlier, later in itertools.pairwise(point_times))
    interval = max(step, min(gaps, default=step))
    reach = min(_INTERVALS * interval, lookback_seconds(step))
    values = list[tuple[float, float]]()
    for time in times:
        newest = bisect_right(point_times, time) - 1
        if newest >= 0 and time - point_times[newest] < reach:
            values.append((time, points[newest][1]))
    return values


def reports(
    fields: Iterable[Series], schema: Schema, uuids: Collection[str], at: float, step: float
) -> GpuReports:
    """Return which of these GPUs are shown at an instant, and which are busy without a pod."""
    busy: set[tuple[str, str]] = set()
    mapped: set[tuple[str, str]] = set()
    reported: set[str] = set()
    for field in fields:
        uuid, present = field.tags.get(schema.gpu_tag, ""), at_instants(field.points, (at,), step)
        if present and uuid in uuids:
            reported.add(uuid)
            part = uuid, field.tags.get(_SLICE, "")
            if field.tags.get(schema.pod_tag):
                mapped.add(part)
            elif present[0][1] > 0:
                busy.add(part)
    return GpuReports(frozenset(reported), frozenset(uuid for uuid, _ in busy - mapped))
