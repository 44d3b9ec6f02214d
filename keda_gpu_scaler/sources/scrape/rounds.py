"""The data of the scrape source: samples and its targets' good scrapes, for a bounded time.

Pure: instants are arguments.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Row, Target
from keda_gpu_scaler.sources.scrape.exposition import Sample
from keda_gpu_scaler.sources.series import fill_gaps, read_series

OVERLOOKED_SECONDS = 3600.0
"""A listed target that has not answered for this long is taken to have no exporter."""
MOST_LABEL_BYTES = 48 * 2**20
"""The labels of one target in memory: ten thousand series, which a thousand GPUs have. They become
more only with labels that are new at each scrape."""
MOST_POINTS = 4 * 2**20
"""The points of all targets in memory, 64 MiB: three thousand series for two hours at the usual
interval. For more series the time is shorter."""


class Scrape(NamedTuple):
    """One good scrape: when it began, and its samples."""

    began: float
    samples: list[Sample]


Scrapes = Mapping[Target, Scrape | None]
"""The newest scrape of every target at one instant; None: it failed, or there is none yet."""

_Labels = frozenset[tuple[str, str]]


@dataclass(slots=True)
class _Points:
    """The points of one series, without the overhead of an object for each."""

    times: "array[float]" = field(default_factory=lambda: array("d"))
    values: "array[float]" = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class History:
    """The rounds of the last `keep_seconds`, or of less where there are too many points."""

    keep_seconds: float
    most_points: int = MOST_POINTS
    instants: deque[float] = field(default_factory=deque)
    sampled_since: float = float("-inf")
    """The instant of the first round."""
    good: dict[Target, deque[tuple[float, float]]] = field(default_factory=dict)
    """The instants at which a target's newest scrape was good, and when that scrape began."""
    listed: dict[Target, float] = field(default_factory=dict)
    """The targets of the newest round, good or not, and since when they are listed."""
    silent: frozenset[Target] = frozenset()
    """The targets among them that were never scraped successfully."""
    points: int = 0
    """How many points are in memory, at most `most_points` beside those of the newest round."""
    _series: dict[Target, dict[_Labels, _Points]] = field(default_factory=dict)

    def add(self, at: float, scrapes: Scrapes) -> None:
        """Add the round of the instant `at`, and drop data that is too old or too much."""
        if not self.instants:
            self.sampled_since = at
        self.instants.append(at)
        known = self.listed.keys() - self.silent
        self.listed = {target: self.listed.get(target, at) for target in scrapes}
        self.silent = frozenset(
            target for target, scrape in scrapes.items() if scrape is None and target not in known
        )
        for target, scrape in scrapes.items():
            if scrape is not None:
                self.good.setdefault(target, deque()).append((at, scrape.began))
                kept = self._series.setdefault(target, {})
                for labels, value in scrape.samples:
                    points = kept.setdefault(_key(labels), _Points())
                    points.times.append(at)
                    points.values.append(value)
                self.points += len(scrape.samples)
        self._forget(at - self.keep_seconds)
        while self.points > self.most_points and len(self.instants) > 1:
            self._forget(self.instants[1])

    def has_room(self, target: Target, samples: Iterable[Sample]) -> bool:
        """Tell whether the labels of a target's samples can be kept beside its earlier ones."""
        kept = self._series.get(target, {}).keys()
        keys = {_key(labels) for labels, _ in samples}
        return keys <= kept or sum(map(_label_bytes, keys | kept)) <= MOST_LABEL_BYTES

    def observation(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the samples of the query up to `at`."""
        since = at - snapshot_query.span_seconds
        series, refused = read_series(
            self._rows(snapshot_query, since, at), snapshot_query.profile, snapshot_query.signal
        )
        good_scrapes = {
            target: {instant: began for instant, began in good if since < instant <= at}
            for target, good in self.good.items()
        }
        return Observation(
            instants=tuple(instant for instant in self.instants if since < instant <= at),
            series=fill_gaps(series, good_scrapes),
            good_scrapes=good_scrapes,
            absence_known=self._watched(at - snapshot_query.window_seconds),
            misses_targets=self._overlooks(at),
            refused_samples=refused,
            sampled_since=self.sampled_since,
        )

    def _rows(self, snapshot_query: SnapshotQuery, since: float, at: float) -> Iterator[Row]:
        names = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
        for target, kept in self._series.items():
            for key, points in kept.items():
                if points.times[-1] > since and not names.isdisjoint(key):
                    labels = {**dict(key), **target._asdict()}
                    if _is_asked(labels, snapshot_query):
                        span = slice(
                            bisect_right(points.times, since), bisect_right(points.times, at)
                        )
                        times, values = points.times[span], points.values[span]
                        yield Row(labels, list(zip(times, values, strict=True)))

    def _overlooks(self, at: float) -> bool:
        """Tell whether a target was never good and has been listed for less than an hour."""
        return any(at - self.listed[target] < OVERLOOKED_SECONDS for target in self.silent)

    def gpus(self, uuids: Iterable[str]) -> GpuReports:
        """Return which of these GPUs the newest round shows, and which are busy without a pod."""
        wanted, newest = frozenset(uuids), self.instants[-1]
        reported: set[str] = set()
        mapped: set[tuple[str, str]] = set()
        loads: dict[tuple[str, str], list[float]] = defaultdict(list)
        for key, points in self._all_series():
            labels = dict(key)
            uuid = next((labels[name] for name in profiles.BOARD_LABELS if labels.get(name)), "")
            if uuid in wanted and points.times[-1] == newest:
                reported.add(uuid)
                part = uuid, labels.get("GPU_I_ID", "")
                if profiles.pod_of(labels) is not None:
                    mapped.add(part)
                elif labels["__name__"] in profiles.UTILIZATION_METRICS:
                    loads[part].append(points.values[-1])
        # One whose load is not known counts as busy: only a number can show that it is idle.
        busy = {
            part
            for part, values in loads.items()
            if 0 not in values or any(value > 0 for value in values)
        }
        return GpuReports(frozenset(reported), frozenset(uuid for uuid, _ in busy - mapped))

    def _watched(self, since: float) -> bool:
        """Tell whether rounds reach back to `since` and every target was good in all of them."""
        rounds = [instant for instant in self.instants if instant >= since]
        if not self.listed or self.instants[0] > since:
            return False
        return all(
            set(rounds) <= {instant for instant, _ in self.good.get(target, ())}
            for target in self.listed
        )

    def _all_series(self) -> Iterator[tuple[_Labels, _Points]]:
        for kept in self._series.values():
            yield from kept.items()

    def _forget(self, before: float) -> None:
        while self.instants and self.instants[0] < before:
            self.instants.popleft()
        for target, good in list(self.good.items()):
            while good and good[0][0] < before:
                good.popleft()
            if not good:
                del self.good[target]
        for target, kept in list(self._series.items()):
            for key, points in list(kept.items()):
                old = bisect_left(points.times, before)
                del points.times[:old], points.values[:old]
                self.points -= old
                if not points.times:
                    del kept[key]
            if not kept:
                del self._series[target]


def _key(labels: Mapping[str, str]) -> _Labels:
    # The target's own labels take the place of these, as they do in a Prometheus.
    return frozenset((name, text) for name, text in labels.items() if name not in Target._fields)


def _label_bytes(key: _Labels) -> int:
    """Return about what the labels of a series take in memory, the objects that hold them too."""
    return 800 + sum(len(name) + len(text) + 250 for name, text in key)


def _is_asked(labels: Mapping[str, str], snapshot_query: SnapshotQuery) -> bool:
    pod = profiles.pod_of(labels)
    return pod is not None and pod[0] in snapshot_query.namespaces
