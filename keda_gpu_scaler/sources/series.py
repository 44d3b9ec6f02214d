"""Raw rows of an exporter → one series per GPU and pod, in the signal's unit. Pure.

Every source uses this module, so that label conventions, preferred metrics and refused numbers mean
the same whether Prometheus stored the row or this process scraped it.

Without its virtual mode dcgm-exporter names one pod per GPU: on a time-sliced GPU it names the pod
that it reads last (dcgm-exporter issues 307, 340). Each scrape then seems to end one pod and to
begin another; the gaps are filled here.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles, promql_texts
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.query.profiles.model import (
    IDLE_LIMIT,
    SHARE_LIMIT,
    GpuMetric,
    Measure,
    MetricSource,
    Part,
    naming,
)
from keda_gpu_scaler.snapshot.attribution import Breadth, Showing, believed
from keda_gpu_scaler.snapshot.evidence import PodKey
from keda_gpu_scaler.snapshot.observation import (
    Observation,
    Row,
    Series,
    Target,
    is_ascending,
    scrape_times,
)
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery

_BOARD_LABELS = frozenset(profiles.BOARD_LABELS)


_Key = tuple[tuple[PodKey, ...], str, Target]
"""The pods that it may be about, GPU and target."""


class _Recognized(NamedTuple):
    """One recognised row: its pod and GPU, and which metric of which measure it shows."""

    key: _Key
    source: MetricSource
    metric: GpuMetric
    row: Row
    labels: tuple[str, str]
    """Those that name the namespace and the pod."""
    place: tuple[str, str, str]
    """The host that shows the GPU, the GPU's number there, and the slice of it."""
    names_board: bool


LARGEST_GPUS = 20_000
"""Reading one takes 2 KiB, and keeping one as much."""


STUCK_COLLECTIONS = 1.5
"""Two metrics of a GPU are not collected at the same time: where work begins, one can be 0 beside
the other until its next collection. Beyond that it is stuck; the half is for collections that are
late."""
_Scrapes = Mapping[Target, Mapping[float, float]]
"""For each target, the instants at which its latest scrape was good, and that scrape's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporters:
    """What is known of the targets whose rows are read, and of their jobs."""

    collection_seconds: float
    """How often they read their GPUs."""
    good_scrapes: _Scrapes = field(default_factory=dict)
    own_labels: Mapping[Target, Collection[tuple[str, str]]] = field(default_factory=dict)
    """The labels of a target itself; of one that is not there they are not known."""
    breadths: Mapping[str, Breadth] = field(default_factory=dict)
    """How much each job shows; nothing is known of one that is not there."""


def read_series(
    rows: Iterable[Row], profile: str, signal: Signal, exporters: Exporters
) -> tuple[tuple[Series, ...], int, Mapping[str, str]]:
    """Return the GPU series among `rows`, how many samples were refused, and overruled jobs.

    Samples are refused as unbelievable; each overruled job has the one that is read instead.
    """
    candidates: dict[str, list[tuple[MetricSource, GpuMetric]]] = defaultdict(list)
    for source in profiles.metric_sources(profile, signal):
        for metric in source.measure.metrics:
            candidates[metric.name].append((source, metric))
    targets: dict[Target, Target] = {}
    readings = list[_Recognized]()
    for row in rows:
        metrics = candidates.get(row.labels.get("__name__", ""))
        if metrics is None:
            continue
        target = row.target
        target = targets.setdefault(target, target)  # every pod of it has the same object
        named = profiles.namings(row.labels, exporters.own_labels.get(target))
        reading = _recognize(row, named, target, metrics)
        if reading is not None and reading.row.times:
            readings.append(reading)
    grouped: dict[_Key, list[_Recognized]] = defaultdict(list)
    refused = 0
    readings, overruled = _of_one_job(readings, exporters.breadths)
    readings, doubtful = _each_gpu_once(readings)
    for reading in readings:
        grouped[reading.key].append(reading)
        values, limit = reading.row.values, reading.metric.limit
        refused += len(values) - len([value for value in values if 0 <= value <= limit])
    if len(grouped) > LARGEST_GPUS:
        raise errors.SourceMalformedError(
            f"an answer with {len(grouped):,} GPUs of pods; expected at most {LARGEST_GPUS:,}: "
            "spread the triggers over several sources"
        )
    gpus = [
        _series(
            readings,
            exporters.good_scrapes.get(key[-1], {}),
            STUCK_COLLECTIONS * exporters.collection_seconds,
            doubtful.get(key, ()),
        )
        for key, readings in grouped.items()
    ]
    return tuple(gpus), refused, overruled


def _recognize(
    row: Row,
    named: list[profiles.Naming],
    target: Target,
    candidates: Iterable[tuple[MetricSource, GpuMetric]],
) -> _Recognized | None:
    """Return what a row shows, by the first of the candidates that fits it; None: nothing."""
    texts = row.labels
    for source, metric in candidates if named else ():
        labels, measure, _ = source
        part = texts.get(labels.slice, "")
        if metric.whole_gpus_only and part not in labels.whole:
            continue
        if not all(texts.get(label, "") in wanted for label, wanted in metric.where):
            continue
        board = next((texts[label] for label in labels.gpu if texts.get(label)), "")
        gpu = board or f"{target.instance}#{texts.get(labels.number, '')}"
        if not measure.per_board and part not in labels.whole:
            gpu = f"{gpu}/{part}"
        pods = tuple([each[:2] for each in named])
        return _Recognized(
            (pods, gpu, target),
            source,
            metric,
            row,
            named[0][2:],
            (target.instance.rsplit(":", 1)[0], texts.get(labels.number, ""), part),
            bool(board),
        )
    return None


def _of_one_job(
    readings: list[_Recognized], breadths: Mapping[str, Breadth]
) -> tuple[list[_Recognized], Mapping[str, str]]:
    """Return for each pod the readings that count: two jobs or exporters would count GPUs twice."""

    def shown_by(reading: _Recognized) -> tuple[str, int]:
        return reading.key[-1].job, reading.source.rank

    if len({shown_by(reading) for reading in readings}) <= 1:
        return readings, {}
    spans: dict[PodKey, dict[tuple[str, int], tuple[float, float]]] = defaultdict(dict)
    for reading in readings:
        times = reading.row.times
        for pod in reading.key[0]:
            first, last = spans[pod].get(shown_by(reading), (times[0], times[-1]))
            spans[pod][shown_by(reading)] = min(first, times[0]), max(last, times[-1])
    counting: dict[PodKey, Collection[tuple[str, int]]] = {}
    overruled: dict[str, str] = {}
    for pod, spans_of_pod in spans.items():
        counting[pod] = spans_of_pod
        if len(spans_of_pod) > 1:
            showings = [Showing(*by, *span) for by, span in spans_of_pod.items()]
            counting[pod], losers = believed(showings, breadths)
            overruled |= losers
    # A row that may be about one of several pods has to count for each of them.
    kept = [
        reading
        for reading in readings
        if all(shown_by(reading) in counting[pod] for pod in reading.key[0])
    ]
    return kept, overruled


def _each_gpu_once(
    readings: list[_Recognized],
) -> tuple[list[_Recognized], Mapping[_Key, Collection[float]]]:
    """Return the readings with one name for each GPU, and the instants at which that is not known.

    A row that names no board is about the board that another row of its pod names, if both have the
    same host, number and slice; about another one, if only the number or the slice differs. Nothing
    else proves whether it is one GPU or two.
    """
    kept, doubtful = list[_Recognized](), defaultdict[_Key, set[float]](set)
    of_pods = {each.key[0]: list[_Recognized]() for each in readings if not each.names_board}
    for each in readings:
        of_pods.get(each.key[0], kept).append(each)
    for of_pod in of_pods.values():
        boards, named = defaultdict[object, set[str]](set), list[_Recognized]()
        for each in sorted(of_pod, key=lambda each: (not each.names_board, each.key[1])):
            here, (pods, gpu, target) = boards[each.place], each.key
            if each.names_board or (each.place[1] and not here):
                here.add(gpu)
            is_alike = not each.names_board and len(here) == 1
            named.append(each._replace(key=(pods, min(here), target)) if is_alike else each)
        kept += named
        for one, other in itertools.combinations(named, 2):
            (host, number, _), (others_host, others_number, _) = one.place, other.place
            is_same_host = (host, not number) == (others_host, not others_number)
            is_known = one.key[1] == other.key[1] or (is_same_host and one.place != other.place)
            if not (is_known or (one.names_board and other.names_board)):
                both = set(one.row.times).intersection(other.row.times)
                doubtful[one.key] |= both
                doubtful[other.key] |= both
    return kept, doubtful


def _series(
    readings: list[_Recognized],
    scrapes: Mapping[float, float],
    stuck_seconds: float,
    doubtful: Collection[float],
) -> Series:
    (((namespace, pod), *rivals), gpu, target), source, metric, _, labels, *_ = readings[0]
    stuck, contradicted_at = "", float("-inf")
    if source.measure.is_ratio:
        values, used = _ratio(source.measure, readings)
    else:
        metrics = (metric,) if len(readings) == 1 else source.measure.metrics
        values, used = _preferred(metrics, readings)
        twin = source.measure.twin
        if twin is not None and len(metrics) > 1 and 0 in values.values():
            first, twins = _largest(metrics[0], readings), _largest(twin, readings)
            shown = {time for each in readings if each.metric is twin for time in each.row.times}
            refused = shown - twins.keys()
            for zeros, busy, is_stuck in _contradictions(first, twins, scrapes, stuck_seconds):
                if is_stuck:
                    values |= {time: twins[time] for time in busy}
                    values = {
                        time: values[time] for time in values.keys() - refused.intersection(zeros)
                    }
                    stuck, used = f"{metrics[0].name} is stuck at 0, so {twin.name} is read", [twin]
                else:
                    values = {time: value for time, value in values.items() if time not in busy}
                    contradicted_at = busy[-1]
    present = readings[0].row.times  # shared by most GPUs, in memory as well
    if len(readings) > 1 or not is_ascending(present):
        present = tuple(sorted({time for reading in readings for time in reading.row.times}))
    if doubtful:
        values = {time: value for time, value in values.items() if time not in doubtful}
    times = present if len(values) == len(present) else tuple(sorted(values))
    return Series(
        namespace,
        pod,
        gpu,
        target,
        present=present,
        times=times,
        values=tuple([values[time] for time in times]),
        averaged=all(metric.averaged for metric in used),
        shows_free_gpus=not _BOARD_LABELS.isdisjoint(source.labels.gpu),
        shown_by=tuple([naming(metric, *labels) for metric in used]),
        stuck=stuck,
        contradicted_at=contradicted_at,
        rivals=tuple(rivals),
    )


def _contradictions(
    first: Mapping[float, float],
    twins: Mapping[float, float],
    scrapes: Mapping[float, float],
    stuck_seconds: float,
) -> Iterator[tuple[list[float], list[float], bool]]:
    """Yield each run of zeros of `first`, those beside work of the other one, and if it is stuck.

    It is stuck if that is so in scrapes further apart than `stuck_seconds`, and it is 0 all the
    time between. If not, its 0 may be older than the work, and the load is not known. Nor is it
    while one that is stuck stands beside a number that is refused.
    """
    for is_zero, run in itertools.groupby(sorted(first), key=lambda time: first[time] == 0):
        zeros = list(run) if is_zero else []
        busy = [time for time in zeros if twins.get(time, 0.0) > IDLE_LIMIT]
        if busy:
            began, ended = [scrapes.get(time, time) for time in (busy[0], busy[-1])]
            yield zeros, busy, ended - began >= stuck_seconds


_ValuesAndMetrics = tuple[dict[float, float], list[GpuMetric]]
"""The values by their instants, and the metrics that they come from."""


def _preferred(metrics: Iterable[GpuMetric], readings: list[_Recognized]) -> _ValuesAndMetrics:
    """Return the first present one of these metrics at each instant."""
    values: dict[float, float] = {}
    used: list[GpuMetric] = []
    for metric in metrics:
        largest = _largest(metric, readings)
        if not values.keys() >= largest.keys():
            values = largest | values
            used.append(metric)
    return values, used


def _ratio(measure: Measure, readings: list[_Recognized]) -> _ValuesAndMetrics:
    """Return used / (used + free) in percent, which leaves out reserved memory; else used / total.

    A limit on memory can be exceeded a little; a share above SHARE_LIMIT is not that of this GPU.
    """
    parts = []
    for part in (Part.USED, Part.FREE, Part.TOTAL):
        metrics = [metric for metric in measure.metrics if metric.part is part]
        parts.append(_preferred(metrics, readings)[0])
    used, free, total = parts
    whole = total | {time: used[time] + value for time, value in free.items() if time in used}
    shares = {time: 100 * used[time] / whole[time] for time in used if whole.get(time, 0) > 0}
    shown = {reading.metric for reading in readings}
    values = {time: share for time, share in shares.items() if share <= SHARE_LIMIT}
    return values, [metric for metric in measure.metrics if metric in shown]


def _largest(metric: GpuMetric, readings: list[_Recognized]) -> dict[float, float]:
    """Return one value per instant, the larger one of duplicates.

    NaN and infinities are not between 0 and the limit.
    """
    limit, factor, takes_zero = metric.limit, metric.factor, not metric.zero_is_unknown
    believed = [
        (time, value * factor)
        for reading in readings
        if reading.metric is metric
        for time, value in reading.row.points
        if 0 <= value <= limit and (value or takes_zero)
    ]
    values = dict(believed)
    if len(values) < len(believed):
        values = dict(sorted(believed))  # of two at an instant the larger one comes last
    return values


GAPS = 2
"""A pod replaced by one of the same name leaves one gap; two gaps mean that pods take turns."""

TURNS_SECONDS = 300.0
"""Turns change at every other scrape; older gaps come from pods that were replaced."""


def fill_gaps(
    series: Iterable[Series], good_scrapes: Mapping[Target, Mapping[float, float]]
) -> tuple[Series, ...]:
    """Return the series; those that take turns are made present at every recent good scrape.

    At the filled instants the pod is present without a value, because its load is unknown. The end
    of such a pod is believed only after `TURNS_SECONDS`.
    """
    filled = list(series)
    good: dict[Target, tuple[float, ...]] = {}
    for target, scrapes in good_scrapes.items():
        instants = sorted(scrapes)
        good[target] = tuple(at for at in instants if at > instants[-1] - TURNS_SECONDS)
    gaps = {index: _gaps(gpu, good.get(gpu.target, ())) for index, gpu in enumerate(filled)}
    gaps = {index: runs for index, runs in gaps.items() if runs}
    if not gaps:
        return tuple(filled)
    holders: dict[tuple[Target, str], list[frozenset[float]]] = defaultdict(list)
    for gpu in filled:
        holders[gpu.target, gpu.gpu].append(frozenset(gpu.present))
    for index, runs in gaps.items():
        gpu = filled[index]
        # It came back twice, or once after a gap that another pod filled.
        present, missed = frozenset(gpu.present), set[float]().union(*runs)
        others = (other for other in holders[gpu.target, gpu.gpu] if not present & other)
        if len(runs) >= GAPS or any(missed & other for other in others):
            since = {at for at in good[gpu.target] if at > gpu.present[0]}
            filled[index] = replace(gpu, present=tuple(sorted({*gpu.present, *since})))
    return tuple(filled)


def _gaps(series: Series, good: tuple[float, ...]) -> list[set[float]]:
    """Return the runs of good scrapes without the series, between its first and last point."""
    if series.present[-len(good) :] == good:
        return []
    present, gaps, gap = frozenset(series.present), [], set[float]()
    for instant in good:
        if instant not in present:
            gap.add(instant)
            continue
        if gap and min(gap) > series.present[0]:
            gaps.append(gap)
        gap = set()
    return gaps


def read_observation(
    rows: list[Row],
    snapshot_query: SnapshotQuery,
    at: float,
    step: float,
    exporters: Exporters,
) -> Observation:
    """Return the observation in the rows of a snapshot, up to `at`, every `step` seconds.

    The rows are GPUs with their pods, and the good scrapes of their targets with their own labels.
    """
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    inside = evaluation_times.between(times[0], times[-1], rows)
    good_scrapes: dict[Target, dict[float, float]] = defaultdict(dict)
    own_labels: dict[Target, set[tuple[str, str]]] = defaultdict(set)
    for row in inside:
        if "__name__" not in row.labels:
            target = row.target
            good_scrapes[target] |= scrape_times(row.points)
            own_labels[target].update(row.labels.items())
    exporters = replace(exporters, good_scrapes=good_scrapes, own_labels=own_labels)
    targets_own = frozenset().union(*own_labels.values()) if own_labels else None
    return replace(observed(inside, snapshot_query, times, exporters), targets_own=targets_own)


def observed(
    rows: Iterable[Row],
    snapshot_query: SnapshotQuery,
    instants: tuple[float, ...],
    exporters: Exporters,
) -> Observation:
    """Return what rows of GPUs with their pods show of the namespaces, without false gaps."""
    series, refused, overruled = read_series(
        rows, snapshot_query.profile, snapshot_query.signal, exporters
    )
    here = snapshot_query.namespaces
    series = tuple(
        each
        for each in series
        if each.namespace in here or any(namespace in here for namespace, _ in each.rivals)
    )
    return Observation(
        instants=instants,
        series=fill_gaps(series, exporters.good_scrapes),
        good_scrapes=exporters.good_scrapes,
        overruled=overruled,
        refused_samples=refused,
        collection_seconds=exporters.collection_seconds,
    )


def breadths(rows: Iterable[Row]) -> dict[str, Breadth]:
    """Return how much each job shows, from the rows of `promql_texts.breadth_text`."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        if math.isfinite(count := row.values[0]):
            what = row.labels.get(promql_texts.BREADTH_LABEL, "")
            counts[row.labels.get("job", "")][what] = round(count)
    return {
        job: Breadth(count.get(promql_texts.TARGETS, 0), count.get(promql_texts.NAMESPACES, 0))
        for job, count in counts.items()
    }


def known_age(seconds: float) -> float:
    """Return the age of a sample; infinite for a number that is none, such as NaN."""
    return seconds if seconds >= 0 else math.inf


def sample_ages(
    rows: list[Row], targets_own: Collection[tuple[str, str]] | None = None
) -> dict[tuple[str, str], float]:
    """Return the age of each pod's newest sample, that of its freshest series.

    `targets_own` are the labels of any of the targets; None: they are not known.
    """
    ages: dict[tuple[str, str], float] = {}
    for row in rows:
        for namespace, pod, *_ in profiles.namings(row.labels, targets_own):
            age = known_age(row.values[0])
            ages[namespace, pod] = min(age, ages.get((namespace, pod), age))
    return ages


_LARGEST = 2.0**53
_POD_LABELS = frozenset({*profiles.NAMESPACE_LABELS, *profiles.POD_LABELS})


def oldest_ages(rows: Iterable[Row], pods: Iterable[PodKey]) -> dict[PodKey, float]:
    """Return the ages of pods: each is as old as the oldest sample behind its numbers.

    A row of a custom query that names no pod is about all `pods`, which the query shows.
    """
    ages: dict[PodKey | None, float] = {}
    for row in rows:
        pod, age = profiles.pod_of(row.labels), known_age(row.values[-1])
        ages[pod] = max(age, ages.get(pod, age))
    age_of_all = ages.pop(None, 0.0)
    shown = dict.fromkeys(pods, age_of_all) if age_of_all else {}
    return shown | {pod: max(age, age_of_all) for pod, age in ages.items() if pod is not None}


def read_elements(
    rows: Iterable[Row], namespaces: Collection[str]
) -> tuple[tuple[Series, ...], int, list[Row]]:
    """Return the elements of a custom query as series, and what is left out.

    That is how many numbers were refused, and the elements that name no pod of `namespaces`. An
    element names its pod by the pod labels of any known exporter.
    """
    elements: list[Series] = []
    refused, unmatched = 0, list[Row]()
    for row in rows:
        pod = profiles.pod_of(row.labels)
        if pod is None or pod[0] not in namespaces:
            unmatched.append(row)
            continue
        # A pod's elements are told apart by their board, if they name one, and all other labels.
        labels = row.labels
        board = profiles.board_of(labels)
        others = [f"{name}={text}" for name, text in labels.items() if name not in _POD_LABELS]
        # NaN and infinities are not between 0 and the largest number.
        believed = [
            (time, value)
            for time, value in row.points
            if 0 <= value < _LARGEST and value not in dcgm.BLANKS
        ]
        refused += len(row.times) - len(believed)
        element = Series(
            *pod,
            f"{board}/{','.join(sorted(others))}",
            row.target,
            present=row.times,
            times=tuple(time for time, _ in believed),
            values=tuple(value for _, value in believed),
            averaged=False,
            shown_by=("the query of the trigger",),
        )
        elements.append(element)
    return tuple(elements), refused, unmatched
