"""Raw rows of an exporter → one series per GPU and pod, in the signal's unit. Pure.

Every source uses this module, so that label conventions, preferred metrics and refused numbers mean
the same whether Prometheus stored the row or this process scraped it.

Without its virtual mode dcgm-exporter names one pod per GPU: on a time-sliced GPU it names the pod
that it reads last (dcgm-exporter issues 307, 340). Each scrape then seems to end one pod and to
begin another; the gaps are filled here.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.profiles import Labels, Measure, Metric, MetricSource, Part
from keda_gpu_scaler.query.profiles.model import SHARE_LIMIT
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import (
    Observation,
    Points,
    Row,
    Series,
    Target,
    is_ascending,
)
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.spec.spec import Signal

_BOARD_LABELS = frozenset(profiles.BOARD_LABELS)


class _Key(NamedTuple):
    namespace: str
    pod: str
    gpu: str
    target: Target


class _Shown(NamedTuple):
    """One metric under one convention of labels, with what is the same for all its rows."""

    way: MetricSource
    metric: Metric
    is_ratio: bool
    shows_free_gpus: bool
    naming: str


class _Reading(NamedTuple):
    """One recognised row: its pod and GPU, and which metric of which measure it shows."""

    key: _Key
    shown: _Shown
    points: Points


LARGEST_GPUS = 20_000
"""Reading one takes 2 KiB, and keeping one as much."""


def read_series(
    rows: Iterable[Row], profile: str, signal: Signal
) -> tuple[tuple[Series, ...], int]:
    """Return the GPU series among `rows`, and how many samples were refused as unbelievable.

    Raises:
        errors.SourceMalformedError: there are more GPUs than any cluster has.
    """
    candidates = _candidates(profiles.metric_sources(profile, signal))
    targets: dict[tuple[str, str], Target] = {}
    recognised = (_recognised(row, candidates, targets) for row in rows)
    read = [one for one in recognised if one is not None]
    grouped: dict[_Key, list[_Reading]] = defaultdict(list)
    for reading in _of_one_exporter(read):
        grouped[reading.key].append(reading)
    if len(grouped) > LARGEST_GPUS:
        raise errors.SourceMalformedError(
            f"an answer with {len(grouped):,} GPUs of pods; expected at most {LARGEST_GPUS:,}: "
            "spread the triggers over several sources"
        )
    found, refused = list[Series](), 0
    for key, readings in grouped.items():
        series, more = _series(key, readings)
        found.append(series)
        refused += more
    return tuple(found), refused


def _candidates(metric_sources: Iterable[MetricSource]) -> Mapping[str, list[_Shown]]:
    """Return the possible metrics for each metric name."""
    named: dict[str, list[_Shown]] = defaultdict(list)
    for way in metric_sources:
        is_ratio = way.measure.is_ratio
        shows_free_gpus = not _BOARD_LABELS.isdisjoint(way.labels.gpu)
        for metric in way.measure.metrics:
            naming = way.labels.naming(metric)
            named[metric.name].append(_Shown(way, metric, is_ratio, shows_free_gpus, naming))
    return named


def _recognised(
    row: Row, candidates: Mapping[str, list[_Shown]], targets: dict[tuple[str, str], Target]
) -> _Reading | None:
    """Return what a row shows; None: nothing. Its target is one of `targets`, or becomes one.

    Every pod of a target has the same object.
    """
    found, points = row.labels, Points.of(row.points)
    if not points.times:
        return None
    for shown in candidates.get(found.get("__name__", ""), ()):
        labels, measure, _ = shown.way
        if labels.fit(found) and _is_meant(shown.metric, labels, found):
            named = found.get("job", ""), found.get("instance", "")
            target = targets.get(named) or targets.setdefault(named, Target(*named))
            gpu = _gpu(labels, measure, found, target)
            key = _Key(found[labels.namespace], found[labels.pod], gpu, target)
            return _Reading(key, shown, points)
    return None


def _is_meant(metric: Metric, labels: Labels, row: Mapping[str, str]) -> bool:
    if metric.whole_gpus_only and row.get(labels.slice, "") not in labels.whole:
        return False
    return not metric.where or all(row.get(label, "") in texts for label, texts in metric.where)


def _of_one_exporter(readings: list[_Reading]) -> list[_Reading]:
    """Return the readings of one exporter for each pod: two would count its GPUs twice.

    It is the preferred exporter of those that showed the pod last.
    """
    if len({one.shown.way.rank for one in readings}) <= 1:
        return readings
    last: dict[tuple[str, str], tuple[float, int]] = {}
    for one in readings:
        pod, shown = one.key[:2], (one.points.times[-1], -one.shown.way.rank)
        last[pod] = max(shown, last.get(pod, shown))
    return [one for one in readings if -one.shown.way.rank == last[one.key[:2]][1]]


def _gpu(labels: Labels, measure: Measure, row: Mapping[str, str], target: Target) -> str:
    """Identify a GPU by its UUID, or without one by its number on the target."""
    for label in labels.gpu:
        if board := row.get(label, ""):
            break
    else:
        board = f"{target.instance}#{row.get(labels.number, '')}"
    part = row.get(labels.slice, "")
    return board if measure.per_board or part in labels.whole else f"{board}/{part}"


def _series(key: _Key, readings: list[_Reading]) -> tuple[Series, int]:
    """Return the series of a GPU and pod, and how many of its samples were refused."""
    first, *others = readings
    if others or first.shown.is_ratio or not is_ascending(first.points.times):
        return _combined(key, readings), sum(map(_refused, readings))
    return _alone(first)


def _alone(reading: _Reading) -> tuple[Series, int]:
    """Return what `_combined` does of one reading, which most GPUs have."""
    metric, times = reading.shown.metric, reading.points.times
    present, believed = times, reading.points.values.tolist()
    refused = len(believed) - len([value for value in believed if 0 <= value <= metric.limit])
    if refused or (metric.zero_is_unknown and 0 in believed):
        known = [one for one in reading.points if _believable(one[1], metric)]
        times, believed = tuple(time for time, _ in known), [value for _, value in known]
    if metric.factor != 1:
        believed = [value * metric.factor for value in believed]
    series = Series(
        *reading.key,
        present=present,
        times=times,
        values=tuple(believed),
        averaged=metric.averaged or not times,
        shows_free_gpus=reading.shown.shows_free_gpus,
        shown_by=(reading.shown.naming,) if times else (),
    )
    return series, refused


def _combined(key: _Key, readings: list[_Reading]) -> Series:
    present = tuple(sorted({time for reading in readings for time in reading.points.times}))
    way, _, is_ratio, shows_free_gpus, _ = readings[0].shown
    read = _ratio if is_ratio else _preferred
    values, used = read(way.measure, readings)
    times = tuple(sorted(values))
    return Series(
        *key,
        present=present,
        times=times,
        values=tuple(values[time] for time in times),
        averaged=all(metric.averaged for metric in used),
        shows_free_gpus=shows_free_gpus,
        shown_by=tuple(way.labels.naming(metric) for metric in used),
    )


_Read = tuple[dict[float, float], list[Metric]]
"""The values by their instants, and the metrics that they come from."""


def _preferred(measure: Measure, readings: list[_Reading]) -> _Read:
    """Return the measure's first present metric at each instant."""
    values: dict[float, float] = {}
    used: list[Metric] = []
    for metric in measure.metrics:
        found = _largest(metric, readings)
        added = {time: value for time, value in found.items() if time not in values}
        values |= added
        if added:
            used.append(metric)
    return values, used


def _ratio(measure: Measure, readings: list[_Reading]) -> _Read:
    """Return used / (used + free) in percent, which leaves out reserved memory; else used / total.

    A limit on memory can be exceeded a little; a share above SHARE_LIMIT is not that of this GPU.
    """
    used, free, total = (
        _part(part, measure, readings) for part in (Part.USED, Part.FREE, Part.TOTAL)
    )
    whole = total | {time: used[time] + value for time, value in free.items() if time in used}
    shares = {time: 100 * used[time] / whole[time] for time in used if whole.get(time, 0) > 0}
    shown = {reading.shown.metric for reading in readings}
    values = {time: share for time, share in shares.items() if share <= SHARE_LIMIT}
    return values, [metric for metric in measure.metrics if metric in shown]


def _part(part: Part, measure: Measure, readings: list[_Reading]) -> dict[float, float]:
    found: dict[float, float] = {}
    for metric in measure.metrics:
        if metric.part is part:
            found = _largest(metric, readings) | found
    return found


def _largest(metric: Metric, readings: list[_Reading]) -> dict[float, float]:
    """Return one value per instant: the larger one of duplicates."""
    values: dict[float, float] = {}
    for reading in readings:
        if reading.shown.metric is metric:
            for time, value in reading.points:
                if _believable(value, metric):
                    values[time] = max(value * metric.factor, values.get(time, 0.0))
    return values


def _refused(reading: _Reading) -> int:
    values, limit = reading.points.values, reading.shown.metric.limit
    return len(values) - len([value for value in values if 0 <= value <= limit])


def _believable(value: float, metric: Metric) -> bool:
    """Tell whether a value is usable; NaN and infinities fail one of these comparisons."""
    return 0 <= value <= metric.limit and not (value == 0 and metric.zero_is_unknown)


GAPS = 2
"""A pod replaced by one of the same name leaves one gap; two gaps mean that pods take turns."""

TURNS_SECONDS = 300.0
"""Turns change at every other scrape; older gaps come from pods that were replaced."""

_Holders = Mapping[tuple[Target, str], Sequence[frozenset[float]]]


def fill_gaps(
    series: Iterable[Series], good_scrapes: Mapping[Target, Mapping[float, float]]
) -> tuple[Series, ...]:
    """Return the series; those that take turns are made present at every recent good scrape.

    At the filled instants the pod is present without a value, because its load is unknown. The end
    of such a pod is believed only after `TURNS_SECONDS`.
    """
    found = tuple(series)
    good = {target: _of_late(scrapes) for target, scrapes in good_scrapes.items()}
    gaps = [_gaps(one, good.get(one.target, ())) for one in found]
    if not any(gaps):
        return found
    holders = _holders(found)
    return tuple(
        replace(one, present=_since_first(one, good[one.target]))
        if _takes_turns(one, missed, holders)
        else one
        for one, missed in zip(found, gaps, strict=True)
    )


def _of_late(scrapes: Iterable[float]) -> tuple[float, ...]:
    instants = sorted(scrapes)
    return tuple(at for at in instants if at > instants[-1] - TURNS_SECONDS)


def _gaps(one: Series, good: tuple[float, ...]) -> list[set[float]]:
    """Return the runs of good scrapes without the series, between its first and last point."""
    if one.present[-len(good) :] == good:
        return []
    present, gaps, gap = frozenset(one.present), [], set[float]()
    for instant in good:
        if instant not in present:
            gap.add(instant)
            continue
        if gap and min(gap) > one.present[0]:
            gaps.append(gap)
        gap = set()
    return gaps


def _takes_turns(one: Series, gaps: list[set[float]], holders: _Holders) -> bool:
    """Tell whether the series came back twice, or once after a gap that another pod filled."""
    present, missed = frozenset(one.present), set[float]().union(*gaps)
    others = (other for other in holders[one.target, one.gpu] if not present & other)
    return len(gaps) >= GAPS or any(missed & other for other in others)


def _holders(series: Iterable[Series]) -> _Holders:
    held: dict[tuple[Target, str], list[frozenset[float]]] = defaultdict(list)
    for one in series:
        held[one.target, one.gpu].append(frozenset(one.present))
    return held


def _since_first(one: Series, good: Sequence[float]) -> tuple[float, ...]:
    return tuple(sorted({*one.present, *(at for at in good if at > one.present[0])}))


def read_observation(
    rows: list[Row], snapshot_query: SnapshotQuery, at: float, step: float
) -> Observation:
    """Return the observation in the rows of a snapshot.

    Args:
        rows: GPUs with their pods, and the good scrapes of their targets.
        snapshot_query: the query that was sent.
        at: the newest instant.
        step: the seconds between two instants.
    """
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    inside = evaluation_times.between(times[0], times[-1], rows)
    targets = [row for row in inside if profiles.pod_of(row.labels) is None]
    series, refused = read_series(inside, snapshot_query.profile, snapshot_query.signal)
    good_scrapes = {
        Target(row.labels.get("job", ""), row.labels.get("instance", "")): scrape_times(row.points)
        for row in targets
    }
    return Observation(
        instants=times,
        series=fill_gaps(series, good_scrapes),
        good_scrapes=good_scrapes,
        refused_samples=refused,
    )


SCRAPED_SECONDS = 3600.0
"""No server shows a sample for longer; five minutes are usual."""


def scrape_times(points: Iterable[tuple[float, float]]) -> dict[float, float]:
    """Return the instants with the time of a scrape, of those that can be one.

    Another number there, such as NaN, proves nothing: that scrape does not count as a good one.
    """
    return {time: scrape for time, scrape in points if 0 <= time - scrape <= SCRAPED_SECONDS}


def known_age(seconds: float) -> float:
    """Return the age of a sample; infinite for a number that is none, such as NaN."""
    return seconds if seconds >= 0 else math.inf


def sample_ages(rows: list[Row]) -> dict[tuple[str, str], float]:
    """Return the age of each pod's newest sample, that of its freshest series."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        pod = profiles.pod_of(row.labels)
        if pod is not None:
            age = known_age(row.points[0][1])
            found[pod] = min(age, found.get(pod, age))
    return found
