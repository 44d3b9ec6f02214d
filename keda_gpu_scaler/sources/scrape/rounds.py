"""The data of the scrape source: its targets' good scrapes, for a bounded time.

Pure: instants are arguments. Scrapes are kept as they come, and those with the same series share
them.
"""

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Points, Row, Target
from keda_gpu_scaler.sources.scrape.exposition import Labels, Samples
from keda_gpu_scaler.sources.series import fill_gaps, read_series

OVERLOOKED_SECONDS = 3600.0
"""A listed target that has not answered for this long is taken to have no exporter."""
MOST_SERIES = 10_000
"""Of one target in memory, as many as one page may have: they become more only with labels that are
new at each scrape."""
MOST_POINTS = 4 * 2**20
"""The points of all targets in memory: 32 MiB, and twice that if the series are other ones at each
scrape. They are three thousand series for two hours at the usual interval; for more series the time
is shorter."""


class Scrape(NamedTuple):
    """One good scrape: when it began, and its samples."""

    began: float
    samples: Samples


Scrapes = Mapping[Target, Scrape | None]
"""The newest scrape of every target at one instant; None: it failed, or there is none yet."""


@dataclass(slots=True)
class _Kept:
    """The good scrapes of one target."""

    scrapes: deque[tuple[float, Scrape]] = field(default_factory=deque)
    """With the instants of their rounds."""
    _uses: Counter[Labels] = field(default_factory=Counter)
    """In how many of these scrapes a series is."""

    def add(self, at: float, scrape: Scrape) -> None:
        """Add the newest scrape."""
        series, values = scrape.samples
        if self.scrapes and self.scrapes[-1][1].samples.series == series:
            series = self.scrapes[-1][1].samples.series
        self._uses.update(series)
        self.scrapes.append((at, Scrape(scrape.began, Samples(series, values))))

    def forget_oldest(self) -> int:
        """Forget the oldest scrape, and return how many points it had."""
        _, oldest = self.scrapes.popleft()
        for labels in oldest.samples.series:
            self._uses[labels] -= 1
            if not self._uses[labels]:
                del self._uses[labels]
        return len(oldest.samples.series)

    def has_room(self, series: Iterable[Labels]) -> bool:
        """Tell whether these series can be kept as well."""
        return len(self._uses.keys() | set(series)) <= MOST_SERIES

    def series(
        self, names: Collection[str], namespaces: Collection[str], since: float, at: float
    ) -> Iterator[tuple[Labels, Sequence[tuple[float, float]]]]:
        """Yield the points, after `since` and up to `at`, of these metrics and these pods."""
        points_by_series: dict[Labels, list[Points]] = defaultdict(list)
        inside = [
            (instant, scrape.samples) for instant, scrape in self.scrapes if since < instant <= at
        ]
        for _, run in groupby(inside, key=lambda timed: id(timed[1].series)):
            instants, samples = zip(*run, strict=True)
            columns = [scraped.values for scraped in samples]
            for position, labels in enumerate(samples[0].series):
                if labels.name in names and labels.pod and labels.pod[0] in namespaces:
                    values = array("d", [column[position] for column in columns])
                    points_by_series[labels].append(Points(instants, values))
        for labels, runs in points_by_series.items():
            # A series that is twice on one page has two points at one instant.
            yield labels, runs[0] if len(runs) == 1 else sorted(chain(*runs), key=itemgetter(0))


@dataclass(slots=True)
class History:
    """The rounds of the last `keep_seconds`, or of less where there are too many points."""

    keep_seconds: float
    most_points: int = MOST_POINTS
    instants: deque[float] = field(default_factory=deque)
    sampled_since: float = float("-inf")
    """The instant of the first round."""
    listed: dict[Target, float] = field(default_factory=dict)
    """The targets of the newest round, good or not, and since when they are listed."""
    silent: frozenset[Target] = frozenset()
    """The targets among them that were never scraped successfully."""
    points: int = 0
    """How many points are in memory, at most `most_points` beside those of the newest round."""
    _kept: dict[Target, _Kept] = field(default_factory=dict)

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
                self._kept.setdefault(target, _Kept()).add(at, scrape)
                self.points += len(scrape.samples.series)
        self._forget(at - self.keep_seconds)
        while self.points > self.most_points and len(self.instants) > 1:
            self._forget(self.instants[1])

    def has_room(self, target: Target, samples: Samples) -> bool:
        """Tell whether the labels of a target's samples can be kept beside its earlier ones."""
        return self._kept.get(target, _Kept()).has_room(samples.series)

    def observation(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the samples of the query up to `at`."""
        since = at - snapshot_query.span_seconds
        series, refused = read_series(
            self._rows(snapshot_query, since, at), snapshot_query.profile, snapshot_query.signal
        )
        good_scrapes = {
            target: {
                instant: scrape.began for instant, scrape in kept.scrapes if since < instant <= at
            }
            for target, kept in self._kept.items()
        }
        return Observation(
            instants=tuple(instant for instant in self.instants if since < instant <= at),
            series=fill_gaps(series, good_scrapes),
            good_scrapes=good_scrapes,
            absence_known=self._is_watched(at - snapshot_query.window_seconds),
            misses_targets=any(
                at - self.listed[target] < OVERLOOKED_SECONDS for target in self.silent
            ),
            refused_samples=refused,
            sampled_since=self.sampled_since,
        )

    def copied(self) -> "History":
        """Return a copy that later rounds leave as it is; only the scrapes are the same objects."""
        kept = {target: _Kept(deque(kept.scrapes)) for target, kept in self._kept.items()}
        return replace(self, instants=deque(self.instants), _kept=kept)

    def _rows(self, snapshot_query: SnapshotQuery, since: float, at: float) -> Iterator[Row]:
        pairs = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
        names = frozenset(name for _, name in pairs)
        for target, kept in self._kept.items():
            named = target._asdict()
            for labels, points in kept.series(names, snapshot_query.namespaces, since, at):
                yield Row({**dict(labels.pairs), **named}, points)

    def gpus(self, uuids: Iterable[str]) -> GpuReports:
        """Return which of these GPUs the newest round shows, and which are busy without a pod."""
        wanted = frozenset(uuids)
        reported: set[str] = set()
        mapped: set[tuple[str, str]] = set()
        loads: dict[tuple[str, str], dict[tuple[Target, Labels], float]] = defaultdict(dict)
        for target, kept in self._kept.items():
            instant, scrape = kept.scrapes[-1]
            if instant != self.instants[-1]:
                continue
            for labels, value in zip(*scrape.samples, strict=True):
                if labels.board in wanted:
                    reported.add(labels.board)
                    part = labels.board, dict(labels.pairs).get("GPU_I_ID", "")
                    if labels.pod is not None:
                        mapped.add(part)
                    elif labels.name in profiles.UTILIZATION_METRICS:
                        loads[part][target, labels] = value
        # One whose load is not known counts as busy: only a number can show that it is idle.
        busy = {
            part
            for part, values in loads.items()
            if 0 not in values.values() or any(value > 0 for value in values.values())
        }
        return GpuReports(frozenset(reported), frozenset(uuid for uuid, _ in busy - mapped))

    def _is_watched(self, since: float) -> bool:
        """Tell whether rounds reach back to `since` and every target was good in all of them."""
        if not self.listed or self.instants[0] > since:
            return False
        rounds = {instant for instant in self.instants if instant >= since}
        return all(
            rounds <= {instant for instant, _ in self._kept.get(target, _Kept()).scrapes}
            for target in self.listed
        )

    def _forget(self, before: float) -> None:
        while self.instants and self.instants[0] < before:
            self.instants.popleft()
        for target, kept in list(self._kept.items()):
            while kept.scrapes and kept.scrapes[0][0] < before:
                self.points -= kept.forget_oldest()
            if not kept.scrapes:
                del self._kept[target]
