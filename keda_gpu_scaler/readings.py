"""Raw rows of an exporter → one series per GPU and pod, in the signal's unit.

Pure. Both sources end here, so that a label scheme, a preferred metric or a refused number means
the same whether Prometheus stored the row or this process scraped it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from keda_gpu_scaler import profiles
from keda_gpu_scaler.observation import Row, Series, Target
from keda_gpu_scaler.profiles import Labels, Measure, Metric, Part, Way
from keda_gpu_scaler.spec import Signal

Points = Sequence[tuple[float, float]]
SHARE_LIMIT = 110
"""In percent. A limit on memory can be overshot a little; beyond that it is not this GPU's."""


class _Key(NamedTuple):
    namespace: str
    pod: str
    gpu: str
    target: Target


class _Reading(NamedTuple):
    """One row, recognised: whose it is and which metric of which measure it shows."""

    key: _Key
    way: Way
    metric: Metric
    points: Points


def series(rows: Iterable[Row], profile: str, signal: Signal) -> tuple[tuple[Series, ...], int]:
    """Return the GPU series among `rows`, and how many samples were refused as unbelievable."""
    candidates = _candidates(profiles.ways(profile, signal))
    read = [_recognised(row, candidates) for row in rows if row.points]
    grouped: dict[_Key, list[_Reading]] = defaultdict(list)
    for reading in _of_one_exporter([one for one in read if one is not None]):
        grouped[reading.key].append(reading)
    found = tuple(_combined(key, readings) for key, readings in grouped.items())
    return found, sum(_refused(readings) for readings in grouped.values())


def _candidates(ways: Iterable[Way]) -> Mapping[str, list[tuple[Way, Metric]]]:
    """Return, for each name of a metric, what it can be."""
    named: dict[str, list[tuple[Way, Metric]]] = defaultdict(list)
    for way in ways:
        for metric in way.measure.metrics:
            named[metric.name].append((way, metric))
    return named


def _recognised(row: Row, candidates: Mapping[str, list[tuple[Way, Metric]]]) -> _Reading | None:
    for way, metric in candidates.get(row.labels.get("__name__", ""), ()):
        if way.labels.fit(row.labels) and _is_meant(metric, way.labels, row.labels):
            return _Reading(_key(way.labels, way.measure, row.labels), way, metric, row.points)
    return None


def _is_meant(metric: Metric, labels: Labels, row: Mapping[str, str]) -> bool:
    whole = not metric.whole_gpus_only or row.get(labels.slice, "") in labels.whole
    return whole and all(row.get(label, "") in texts for label, texts in metric.where)


def _of_one_exporter(readings: list[_Reading]) -> list[_Reading]:
    """Return the readings of one exporter for each pod: two would count its GPUs twice.

    It is the preferred one of those that show the pod last.
    """
    if len({one.way.rank for one in readings}) <= 1:
        return readings
    last: dict[tuple[str, str], tuple[float, int]] = {}
    for one in readings:
        pod, shown = one.key[:2], (one.points[-1][0], -one.way.rank)
        last[pod] = max(shown, last.get(pod, shown))
    return [one for one in readings if -one.way.rank == last[one.key[:2]][1]]


def _key(labels: Labels, measure: Measure, row: Mapping[str, str]) -> _Key:
    target = Target(row.get("job", ""), row.get("instance", ""))
    return _Key(row[labels.namespace], row[labels.pod], _gpu(labels, measure, row, target), target)


def _gpu(labels: Labels, measure: Measure, row: Mapping[str, str], target: Target) -> str:
    """Identify a GPU by its UUID; where the exporter gives none, by its number on the target."""
    known = next((row[label] for label in labels.gpu if row.get(label)), "")
    board = known or f"{target.instance}#{row.get(labels.number, '')}"
    part = row.get(labels.slice, "")
    return board if measure.per_board or part in labels.whole else f"{board}/{part}"


def _combined(key: _Key, readings: list[_Reading]) -> Series:
    present = tuple(sorted({time for reading in readings for time, _ in reading.points}))
    measure = readings[0].way.measure
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
    """What is used of used + free, which leaves out what is reserved; else of the total."""
    used, free, total = (
        _part(part, measure, readings) for part in (Part.USED, Part.FREE, Part.TOTAL)
    )
    whole = total | {time: used[time] + value for time, value in free.items() if time in used}
    shares = {time: 100 * used[time] / whole[time] for time in used if whole.get(time, 0) > 0}
    return {time: share for time, share in shares.items() if share <= SHARE_LIMIT}, False


def _part(part: Part, measure: Measure, readings: list[_Reading]) -> dict[float, float]:
    found: dict[float, float] = {}
    for metric in measure.metrics:
        if metric.part is part:
            found = _largest(metric, readings) | found
    return found


def _largest(metric: Metric, readings: list[_Reading]) -> dict[float, float]:
    """Duplicates become one: the larger."""
    values: dict[float, float] = {}
    for reading in readings:
        if reading.metric is metric:
            for time, value in reading.points:
                if _believable(value, metric):
                    values[time] = max(value * metric.factor, values.get(time, 0.0))
    return values


def _refused(readings: list[_Reading]) -> int:
    return sum(
        not 0 <= value <= reading.metric.limit
        for reading in readings
        for _, value in reading.points
    )


def _believable(value: float, metric: Metric) -> bool:
    """NaN fails every comparison, and infinities one of these two."""
    return 0 <= value <= metric.limit and not (value == 0 and metric.zero_is_unknown)
