"""Raw rows of an exporter → one series per GPU and pod, in the signal's unit.

Pure. Both sources end here, so that a label scheme, a preferred metric or a refused number means
the same whether Prometheus stored the row or this process scraped it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from keda_gpu_scaler import profiles
from keda_gpu_scaler.observation import Row, Series, Target
from keda_gpu_scaler.profiles import Labels, Measure, Metric
from keda_gpu_scaler.spec import Signal

Points = Sequence[tuple[float, float]]


class _Key(NamedTuple):
    namespace: str
    pod: str
    gpu: str
    target: Target


class _Reading(NamedTuple):
    """One row, recognised: whose it is and which metric of which measure it shows."""

    key: _Key
    measure: Measure
    metric: Metric
    points: Points


def series(rows: Iterable[Row], profile: str, signal: Signal) -> tuple[tuple[Series, ...], int]:
    """Return the GPU series among `rows`, and how many samples were refused as unbelievable."""
    ways = profiles.measures(profile, signal)
    grouped: dict[_Key, list[_Reading]] = defaultdict(list)
    for row in rows:
        reading = _recognised(row, ways)
        if reading is not None and row.points:
            grouped[reading.key].append(reading)
    found = tuple(_combined(key, readings) for key, readings in grouped.items())
    points = sum(len(reading.points) for readings in grouped.values() for reading in readings)
    kept = sum(_kept(readings) for readings in grouped.values())
    return found, points - kept


def pod_of(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the namespace and the name of the pod that a row of any label scheme is about."""
    for scheme in (profiles.EXPORTED, profiles.OLD, profiles.PLAIN):
        if _applies(scheme, labels):
            return labels[scheme.namespace], labels[scheme.pod]
    return None


def _recognised(row: Row, ways: Sequence[tuple[Labels, Measure]]) -> _Reading | None:
    name = row.labels.get("__name__")
    for labels, measure in ways:
        if not _applies(labels, row.labels):
            continue
        for metric in measure.metrics:
            if metric.name == name and not (metric.whole_gpus_only and row.labels.get("GPU_I_ID")):
                return _Reading(_key(labels, measure, row.labels), measure, metric, row.points)
    return None


def _applies(labels: Labels, row: Mapping[str, str]) -> bool:
    named = row.get(labels.pod) and row.get(labels.namespace)
    return bool(named) and not any(row.get(label) for label in labels.absent)


def _key(labels: Labels, measure: Measure, row: Mapping[str, str]) -> _Key:
    target = Target(row.get("job", ""), row.get("instance", ""))
    return _Key(row[labels.namespace], row[labels.pod], _gpu(labels, measure, row, target), target)


def _gpu(labels: Labels, measure: Measure, row: Mapping[str, str], target: Target) -> str:
    """Identify a GPU by its UUID; where the exporter gives none, by its number on the target."""
    board = row.get(labels.gpu) or f"{target.instance}#{row.get('gpu', '')}"
    instance = "" if measure.per_board else row.get("GPU_I_ID", "")
    return f"{board}/{instance}" if instance else board


def _combined(key: _Key, readings: list[_Reading]) -> Series:
    present = tuple(sorted({time for reading in readings for time, _ in reading.points}))
    measure = readings[0].measure
    read = _ratio if measure.is_ratio else _preferred
    values, averaged = read(measure, readings)
    times = tuple(sorted(values))
    return Series(
        *key,
        present=present,
        times=times,
        values=tuple(values[time] for time in times),
        averaged=averaged,
    )


def _preferred(measure: Measure, readings: list[_Reading]) -> tuple[dict[float, float], bool]:
    """At each instant the measure's first metric that is there; are only averages among them?"""
    values: dict[float, float] = {}
    averaged = True
    for metric in measure.metrics:
        found = _largest(metric, readings)
        added = {time: value for time, value in found.items() if time not in values}
        values |= added
        averaged = averaged and (metric.averaged or not added)
    return values, averaged


def _ratio(measure: Measure, readings: list[_Reading]) -> tuple[dict[float, float], bool]:
    used, free = (_largest(metric, readings) for metric in measure.metrics)
    values = {
        time: 100 * used[time] / (used[time] + free[time])
        for time in used
        if time in free and used[time] + free[time] > 0
    }
    return values, False


def _largest(metric: Metric, readings: list[_Reading]) -> dict[float, float]:
    """Duplicates become one: the larger."""
    values: dict[float, float] = {}
    for reading in readings:
        if reading.metric is metric:
            for time, value in reading.points:
                if _believable(value, metric):
                    values[time] = max(value * metric.factor, values.get(time, 0.0))
    return values


def _kept(readings: list[_Reading]) -> int:
    return sum(
        _believable(value, reading.metric) for reading in readings for _, value in reading.points
    )


def _believable(value: float, metric: Metric) -> bool:
    """NaN fails every comparison, and infinities one of these two."""
    return math.isfinite(value) and 0 <= value <= metric.limit
