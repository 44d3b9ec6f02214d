"""Figures → rows: what was measured, next to what, against which goal. Pure.

Two runs one after the other saw the same machine, more or less, so a ratio is taken within each
round; the median of the rounds is the result, and its interval says how far to trust it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import comb
from statistics import median

CONFIDENCE = 0.9
"""How likely an interval has to contain the real median."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A median over rounds, and where the real one is with 90 % confidence."""

    median: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """Return the median of rounds and its interval, from order statistics.

    The interval goes from the k-th smallest to the k-th largest value, with the largest k of which
    the exact coverage, by the binomial distribution, is at least 90 %. It assumes nothing about
    how the noise is distributed. For ten rounds it is the second of each end (97.9 %: the third
    would be 89.1 %). Below five rounds not even the whole range reaches 90 %; it is the range then.

    Raises:
        ValueError: there is no round.
    """
    if not values:
        raise ValueError("nothing was measured")
    ordered = sorted(values)
    rank = _rank(len(ordered))
    return Interval(median(ordered), ordered[rank], ordered[-1 - rank])


def _rank(count: int) -> int:
    """Return how many values may be left out at each end."""
    outside, rank = 0.0, 0
    for cut in range((count - 1) // 2 + 1):
        outside += 2 * comb(count, cut) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        rank = cut
    return rank


class Goal(StrEnum):
    """What of a row its goal limits."""

    RATIO_AT_MOST = "ratio at most"
    FIGURE_AT_MOST = "figure at most"
    """For what is limited in its own unit, such as memory; the ratio is shown beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table: one quantity next to its reference, round by round."""

    key: str
    """A stable name, `module.what`."""
    name: str
    """What was measured, for people."""
    unit: str
    """Of each figure: `requests per second`, `% of a core`, `MiB`, `CPU ms a call`."""
    measured: Sequence[float]
    """One figure for each round."""
    reference_name: str
    """What it is compared with, for people: `bare grpc.aio server at the same rate`."""
    reference: Sequence[float]
    """Its figures, in the same rounds and the same unit. 0: it cannot be compared as a ratio."""
    goal: Goal
    limit: float

    def __post_init__(self) -> None:
        """Refuse rounds that are not pairs."""
        if not self.measured or len(self.measured) != len(self.reference):
            raise ValueError(f"{self.key}: a figure and a reference for each round, at least one")

    @property
    def figure(self) -> Interval:
        """What was measured, in its unit."""
        return interval(self.measured)

    @property
    def ratio(self) -> Interval | None:
        """The ratio to the reference; None: a reference was 0."""
        if not all(self.reference):
            return None
        pairs = zip(self.measured, self.reference, strict=True)
        return interval([one / other for one, other in pairs])

    @property
    def judged(self) -> Interval:
        """What the goal is about."""
        return self.figure if self.goal is Goal.FIGURE_AT_MOST else self.ratio or self.figure

    @property
    def is_met(self) -> bool:
        """Whether the whole interval is on the goal's side."""
        return self.judged.high <= self.limit


@dataclass(frozen=True, slots=True)
class Detail:
    """A table of figures beside the rows, as it is shown."""

    key: str
    """A stable name: the page has the table between the marks of this name."""
    title: str
    head: Sequence[str]
    cells: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one benchmark found."""

    rows: Sequence[Row] = ()
    details: Sequence[Detail] = ()
    raw: Mapping[str, object] = field(default_factory=dict)
    """Everything else that can be written as JSON, for the file of the run."""
