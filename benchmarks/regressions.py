"""Which rows of a run are worse than what is committed, beyond the noise. Pure.

A row is worse if its whole interval is on the worse side of the whole committed interval. Figures
in a unit of their own, such as CPU seconds of a start, depend on the machine: compare them on the
machine of the committed figures.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.comparison import Interval, Row


@dataclass(frozen=True, slots=True)
class Regression:
    """One row that is worse than it was."""

    row: Row
    committed: Row

    def __str__(self) -> str:
        """Return what it is now, what it was, and by how much it is worse."""
        now, then = self.row.judged, self.committed.judged
        share = now.median / then.median - 1 if then.median else float("inf")
        return f"{self.row.name}: {_text(now)}, committed {_text(then)}: {share:+.0%}"


def regressions(rows: Iterable[Row], committed: Iterable[Row]) -> list[Regression]:
    """Return the rows that are worse; a floor is none, and a row that only one of them has."""
    before = {row.key: row for row in committed}
    pairs = [(row, before[row.key]) for row in rows if row.is_ours and row.key in before]
    return [Regression(row, other) for row, other in pairs if is_worse(row, other)]


def is_worse(row: Row, committed: Row) -> bool:
    """Tell whether a row is worse than the committed one, beyond the noise of both."""
    now, then = row.judged, committed.judged
    return now.high < then.low if row.is_at_least else now.low > then.high


def _text(shown: Interval) -> str:
    return f"{shown.median:.3g} ({shown.low:.3g} to {shown.high:.3g})"
