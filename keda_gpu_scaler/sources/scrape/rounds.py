"""The data of the scrape source: its rounds of scrapes, for a bounded time.

Pure: instants are arguments. Scrapes are kept as they come.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Row, Target
from keda_gpu_scaler.sources.scrape.page_samples import PageSamples, PageSeries
from keda_gpu_scaler.sources.series import Exporters, observed
from keda_gpu_scaler.spec.spec import SnapshotQuery

OVERLOOKED_SECONDS = 3600.0
"""A listed target that has not answered for this long is taken to have no exporter."""
MOST_POINTS = 4 * 2**20
"""The points of all rounds in memory: 32 MiB. They are three thousand series for two hours at the
usual interval; for more series the time is shorter."""
NEW_SERIES_POINTS = 128
"""The labels of a series take as much memory as so many points; later scrapes share them."""


class Scrape(NamedTuple):
    """One good scrape: when it began, and its samples."""

    began: float
    samples: PageSamples


Scrapes = Mapping[Target, Scrape | None]
"""The scrape of every target in one round; None: it failed."""


class _Round(NamedTuple):
    at: float
    scrapes: Scrapes
    points: int
    """The memory that it takes, in points."""


@dataclass(slots=True)
class Rounds:
    """The rounds of the last `keep_seconds`, or of less where there are too many points.

    A copy stays as it is when rounds are added: what its fields hold is replaced, not changed.
    """

    keep_seconds: float
    collection_seconds: float = 30.0
    """How often the exporters read their GPUs."""
    most_points: int = MOST_POINTS
    """At most so many points are in memory beside those of the newest round."""
    sampled_since: float = float("-inf")
    """The instant of the first round."""
    rounds: tuple[_Round, ...] = ()
    silent_since: Mapping[Target, float] = field(default_factory=dict)
    """The targets of the newest round that never answered, and since when they are listed."""

    def add(self, at: float, scrapes: Scrapes) -> None:
        """Add the round of the instant `at`, and drop those that are too old or too much."""
        before = self.rounds[-1].scrapes if self.rounds else {}
        if not self.rounds:
            self.sampled_since = at
        self.silent_since = {
            target: self.silent_since.get(target, at)
            for target, scrape in scrapes.items()
            if scrape is None and (target in self.silent_since or target not in before)
        }
        points = 0
        for target, scrape in scrapes.items():
            if scrape is not None:
                series, known = scrape.samples.series, self.newest_series(target)
                new_series = 0 if series is known else len(set(series).difference(known))
                points += len(series) + NEW_SERIES_POINTS * new_series
        rounds = [round_ for round_ in self.rounds if round_.at >= at - self.keep_seconds]
        rounds.append(_Round(at, scrapes, points))
        points = sum(round_.points for round_ in rounds)
        while points > self.most_points and len(rounds) > 1:
            points -= rounds.pop(0).points
        self.rounds = tuple(rounds)

    def newest_series(self, target: Target) -> tuple[PageSeries, ...]:
        """Return the series of the newest scrape of a target, for the next one to share."""
        scrape = self.rounds[-1].scrapes.get(target) if self.rounds else None
        return scrape.samples.series if scrape else ()

    def observation(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        since = at - snapshot_query.span_seconds
        rounds = [round_ for round_ in self.rounds if since < round_.at <= at]
        scrapes: dict[Target, list[tuple[float, Scrape]]] = defaultdict(list)
        for round_ in rounds:
            for target, scrape in round_.scrapes.items():
                if scrape is not None:
                    scrapes[target].append((round_.at, scrape))
        good_scrapes = {
            target: {instant: scrape.began for instant, scrape in good}
            for target, good in scrapes.items()
        }
        exporters = Exporters(collection_seconds=self.collection_seconds, good_scrapes=good_scrapes)
        instants = tuple(round_.at for round_ in rounds)
        return replace(
            observed(_rows(scrapes, snapshot_query), snapshot_query, instants, exporters),
            absence_known=self._is_watched(at - snapshot_query.window_seconds),
            misses_targets=any(
                at - since < OVERLOOKED_SECONDS for since in self.silent_since.values()
            ),
            sampled_since=self.sampled_since,
        )

    def gpus(self, uuids: Iterable[str]) -> GpuReports:
        wanted = frozenset(uuids)
        reported: set[str] = set()
        mapped: set[tuple[str, str]] = set()
        loads: dict[tuple[str, str], dict[tuple[Target, PageSeries], float]] = defaultdict(dict)
        for target, scrape in self.rounds[-1].scrapes.items() if self.rounds else ():
            for labels, value in zip(*scrape.samples, strict=True) if scrape else ():
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
        listed = self.rounds[-1].scrapes if self.rounds else {}
        if not listed or self.rounds[0].at > since:
            return False
        watched = [round_.scrapes for round_ in self.rounds if round_.at >= since]
        return all(scrapes.get(target) for scrapes in watched for target in listed)


def _rows(
    scrapes: Mapping[Target, list[tuple[float, Scrape]]], snapshot_query: SnapshotQuery
) -> Iterator[Row]:
    names = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
    namespaces = snapshot_query.namespaces
    for target, good in scrapes.items():
        runs_by_series: dict[PageSeries, list[Row]] = defaultdict(list)
        named = target._asdict()
        for _, run in groupby(good, key=lambda timed: id(timed[1].samples.series)):
            instants, same = zip(*run, strict=True)
            columns = [scrape.samples.values for scrape in same]
            for position, labels in enumerate(same[0].samples.series):
                if labels.name in names and labels.pod and labels.pod[0] in namespaces:
                    values = array("d", [column[position] for column in columns])
                    row = Row({**dict(labels.pairs), **named}, instants, values)
                    runs_by_series[labels].append(row)
        for runs in runs_by_series.values():
            if len(runs) == 1:
                yield runs[0]
                continue
            # A series that is twice on one page has two points at one instant.
            points = chain.from_iterable(run.points for run in runs)
            yield Row.of(runs[0].labels, sorted(points, key=itemgetter(0)))
