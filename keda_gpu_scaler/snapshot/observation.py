"""What a source returned, and when the absence of a series in it means something.

Pure. A source reports in *instants*: ascending points in time at which all its series are evaluated
together. At one instant a GPU series is there or not, and a target's latest scrape was good or not.
Only both together give absence a meaning: a pod is absent only in an unbroken run of good scrapes
of its target.
"""

import operator
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from keda_gpu_scaler.times import LEAST_GRACE_SECONDS


class Target(NamedTuple):
    """One scrape target, which is one exporter, as Prometheus labels it."""

    job: str
    instance: str


def is_ascending(times: tuple[float, ...]) -> bool:
    """Tell whether each time is later than the one before."""
    return all(map(operator.lt, times, times[1:]))


class Row(NamedTuple):
    """One raw series in little memory: those of one answer mostly share their times."""

    labels: Mapping[str, str]
    """Of a series of Prometheus with its `__name__`."""
    times: tuple[float, ...]
    """In the order of the answer, which is mostly ascending."""
    values: "array[float]"

    @classmethod
    def of(cls, labels: Mapping[str, str], points: Collection[tuple[float, float]]) -> Self:
        values = array("d", [value for _, value in points])
        return cls(labels, tuple(time for time, _ in points), values)

    @property
    def points(self) -> Iterator[tuple[float, float]]:
        return zip(self.times, self.values, strict=True)

    @property
    def target(self) -> Target:
        return Target(self.labels.get("job", ""), self.labels.get("instance", ""))


SCRAPED_SECONDS = 3600.0
"""No server shows a sample for longer; five minutes are usual."""


def scrape_times(points: Iterable[tuple[float, float]]) -> dict[float, float]:
    """Return the instants with the time of a scrape, of those that can be one.

    Another number there, such as NaN, proves nothing: that scrape does not count as a good one.
    """
    return {time: scrape for time, scrape in points if 0 <= time - scrape <= SCRAPED_SECONDS}


@dataclass(frozen=True, slots=True)
class Series:
    """One GPU of one pod as one target reported it, in the signal's unit."""

    namespace: str
    pod: str
    gpu: str
    target: Target
    present: tuple[float, ...]
    """The instants at which the series was there, believable or not."""
    times: tuple[float, ...]
    values: tuple[float, ...]
    averaged: bool
    shows_free_gpus: bool = False
    """Its exporter shows GPUs without a pod as well."""
    shown_by: tuple[str, ...] = ()
    """The metrics that its values come from, with the labels that name the pod: for people."""
    stuck: str = ""
    """Which metric is stuck at 0, and which is read instead, as a clause; empty: none is."""
    contradicted_at: float = float("-inf")
    """The newest instant at which one metric was 0 beside work of another, and neither is read."""
    rivals: tuple[tuple[str, str], ...] = ()
    """The other pods that it may be about by its labels, each with its namespace."""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.pod


@dataclass(frozen=True, slots=True)
class Observation:
    """What one fetch returned."""

    instants: tuple[float, ...]
    series: tuple[Series, ...]
    good_scrapes: Mapping[Target, Mapping[float, float]]
    """For each target, the instants at which its latest scrape was good, and that scrape's time."""
    sample_ages: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Seconds from the newest sample of a (namespace, pod) to the last instant, only where long."""
    targets_own: frozenset[tuple[str, str]] | None = None
    """The labels of the targets themselves, as far as such labels can name pods; None: no target is
    known."""
    overruled: Mapping[str, str] = field(default_factory=dict)
    """The scrape jobs of which series do not count, because a wider job shows the same pods."""
    absence_known: bool = False
    """The source has been watching long enough for absence to mean something."""
    misses_targets: bool = False
    """A target that should report never has: its pods are not seen."""
    refused_samples: int = 0
    unmatched_elements: int = 0
    """Elements of a user's own query that name no pod in the queried namespaces."""
    unmatched_labels: frozenset[str] = frozenset()
    """The labels of the first of them."""
    is_selective: bool = False
    """It may leave out existing pods, so absence from it proves nothing."""
    collection_seconds: float = 0.0
    """How old a number can be when it is scraped: how often the exporter reads its GPUs."""
    sampled_since: float = float("-inf")
    """The source has no samples from before: exporters that are scraped directly have no past."""

    @property
    def at(self) -> float:
        return self.instants[-1]

    def by_pod(self) -> dict[tuple[str, str], list[Series]]:
        """Return the series of each pod."""
        groups: dict[tuple[str, str], list[Series]] = defaultdict(list)
        for series in self.series:
            groups[series.key].append(series)
        return groups


@dataclass(frozen=True, slots=True)
class GpuReports:
    """Where GPUs are now that disappeared together with their pods (by UUID)."""

    reported: frozenset[str] = frozenset()
    """An exporter reports the GPU, with another pod or none."""
    busy_without_pod: frozenset[str] = frozenset()
    """Under load without a pod: the exporter lost its mapping to pods; the pod still runs."""


def uuid_of(gpu: str) -> str:
    """Return the board's UUID of a GPU or of one of its MIG instances (`UUID/instance`)."""
    return gpu.partition("/")[0]


UpIntervals = Mapping[float, float]
"""For each newly observed instant at which a target was good: when that unbroken run began."""


def grace_seconds(scrape_interval_seconds: float) -> float:
    """Return how long silence, a gap, or the time after a gap lasts before it is acted on."""
    return max(LEAST_GRACE_SECONDS, 2 * scrape_interval_seconds)


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """What is known of one target."""

    good_since: float
    """When its current or last unbroken run of good scrapes began."""
    last_good: float
    returned_at: float | None = None
    """`good_since`, if the target had been good before this run: series that begin then have
    only come back."""
    interval_seconds: float = 0.0
    """How often it is scraped, as observed; 0 when not known yet."""


def advance_targets(
    known: Mapping[Target, TargetHealth], known_at: float, observation: Observation
) -> tuple[dict[Target, UpIntervals], dict[Target, TargetHealth]]:
    """Return each target's new runs, and the health of every target that was ever good.

    `known` holds up to `known_at`.
    """
    up_intervals: dict[Target, UpIntervals] = {}
    states, instants = dict(known), observation.instants
    is_seamless = known_at >= instants[0]
    new = [instant for instant in instants if instant > known_at]
    for target, scrapes in observation.good_scrapes.items():
        runs, state = dict[float, float](), known.get(target)
        was_good = is_seamless and state is not None and state.last_good == known_at
        for instant in new:
            if instant in scrapes:
                if state is None:
                    state = TargetHealth(instant, instant)
                elif not was_good:
                    state = replace(state, good_since=instant, returned_at=instant)
                state = replace(state, last_good=instant)
                runs[instant] = state.good_since
            was_good = instant in scrapes
        up_intervals[target] = runs
        if state is not None:
            # With too few scrapes the known interval stays.
            gaps = map(operator.sub, (times := sorted(set(scrapes.values())))[1:], times)
            interval = min(gaps, default=state.interval_seconds)
            states[target] = replace(state, interval_seconds=interval)
    return up_intervals, states


def absent_from_good_scrape(
    up_intervals: UpIntervals, last_seen: float, settle_seconds: float
) -> bool:
    """Tell whether a good scrape after `last_seen` counts as one that lacks the pod.

    Within the run in which it was seen, at once; in a later run only after the settling time.
    """
    return any(
        instant > last_seen and (start <= last_seen or instant - start >= settle_seconds)
        for instant, start in up_intervals.items()
    )
