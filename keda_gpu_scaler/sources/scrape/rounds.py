"""The data of the scrape source: samples and its targets' good scrapes, for a bounded time.

Pure: instants are arguments.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Row, Target
from keda_gpu_scaler.sources.scrape.exposition import Sample
from keda_gpu_scaler.sources.series import fill_gaps, read_series

Labels = frozenset[tuple[str, str]]
Scrapes = Mapping[Target, list[Sample] | None]
"""The samples of every target in one round; None: the scrape failed."""

OVERLOOKED_SECONDS = 3600.0
"""A listed target that has not answered for this long is taken to have no exporter."""


@dataclass(slots=True)
class History:
    """The rounds of the last `keep_seconds`."""

    keep_seconds: float
    instants: deque[float] = field(default_factory=deque)
    good: dict[Target, deque[float]] = field(default_factory=dict)
    listed: dict[Target, float] = field(default_factory=dict)
    """The targets of the newest round, good or not, and since when they are listed."""
    silent: frozenset[Target] = frozenset()
    """The targets among them that were never scraped successfully."""
    _series: dict[Labels, deque[tuple[float, float]]] = field(default_factory=dict)

    def add(self, at: float, scrapes: Scrapes) -> None:
        """Add the round of the instant `at`, and drop data that is too old."""
        self.instants.append(at)
        known = self.listed.keys() - self.silent
        self.listed = {target: self.listed.get(target, at) for target in scrapes}
        self.silent = frozenset(
            target for target, shown in scrapes.items() if shown is None and target not in known
        )
        for target, samples in scrapes.items():
            if samples is not None:
                self.good.setdefault(target, deque()).append(at)
                for labels, value in samples:
                    key = frozenset({**labels, **target._asdict()}.items())
                    self._series.setdefault(key, deque()).append((at, value))
        self._forget(at - self.keep_seconds)

    def observation(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the samples of the query up to `at`."""
        since = at - snapshot_query.span_seconds
        series, refused = read_series(
            self._rows(snapshot_query, since, at), snapshot_query.profile, snapshot_query.signal
        )
        good_scrapes = {
            target: {instant: instant for instant in instants if since < instant <= at}
            for target, instants in self.good.items()
        }
        return Observation(
            instants=tuple(instant for instant in self.instants if since < instant <= at),
            series=fill_gaps(series, good_scrapes),
            good_scrapes=good_scrapes,
            absence_known=self._watched(at - snapshot_query.window_seconds),
            misses_targets=self._overlooks(at),
            refused_samples=refused,
        )

    def _rows(self, snapshot_query: SnapshotQuery, since: float, at: float) -> Iterator[Row]:
        names = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
        for key, points in self._series.items():
            if points[-1][0] > since and not names.isdisjoint(key):
                labels = dict(key)
                if _is_asked(labels, snapshot_query):
                    yield Row(labels, [point for point in points if since < point[0] <= at])

    def _overlooks(self, at: float) -> bool:
        """Tell whether a target was never good and has been listed for less than an hour."""
        return any(at - self.listed[target] < OVERLOOKED_SECONDS for target in self.silent)

    def gpus(self, uuids: Iterable[str]) -> GpuReports:
        """Return which of these GPUs the newest round shows, and which are busy without a pod."""
        wanted, newest = frozenset(uuids), self.instants[-1]
        reported: set[str] = set()
        busy: set[tuple[str, str]] = set()
        mapped: set[tuple[str, str]] = set()
        for key, points in self._series.items():
            labels, (instant, value) = dict(key), points[-1]
            uuid = next((labels[name] for name in profiles.BOARD_LABELS if labels.get(name)), "")
            if uuid in wanted and instant == newest:
                reported.add(uuid)
                part = uuid, labels.get("GPU_I_ID", "")
                if profiles.pod_of(labels) is not None:
                    mapped.add(part)
                elif labels["__name__"] in profiles.UTILIZATION_METRICS and value > 0:
                    busy.add(part)
        return GpuReports(frozenset(reported), frozenset(uuid for uuid, _ in busy - mapped))

    def _watched(self, since: float) -> bool:
        """Tell whether rounds reach back to `since` and every target was good in all of them."""
        rounds = [instant for instant in self.instants if instant >= since]
        if not self.listed or self.instants[0] > since:
            return False
        return all(set(rounds) <= set(self.good.get(target, ())) for target in self.listed)

    def _forget(self, before: float) -> None:
        _drop(self.instants, before)
        for target in list(self.good):
            _drop(self.good[target], before)
            if not self.good[target]:
                del self.good[target]
        for key in list(self._series):
            points = self._series[key]
            while points and points[0][0] < before:
                points.popleft()
            if not points:
                del self._series[key]


def _is_asked(labels: Mapping[str, str], snapshot_query: SnapshotQuery) -> bool:
    pod = profiles.pod_of(labels)
    return pod is not None and pod[0] in snapshot_query.namespaces


def _drop(instants: deque[float], before: float) -> None:
    while instants and instants[0] < before:
        instants.popleft()
