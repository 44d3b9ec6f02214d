"""Rows and details as cells of tables, for the terminal and for the page. Pure."""

from collections.abc import Iterable, Sequence
from statistics import median

from benchmarks.comparison import Goal, Row

HEAD = ["what", "figure", "next to", "its figure", "ratio", "90 % interval", "goal", "met"]
_DASH = "\N{EN DASH}"
_GOALS = {
    Goal.RATIO_AT_MOST: "≤ {limit:g}",
    Goal.FIGURE_AT_MOST: "≤ {limit:g} {unit}",
}


def cells(rows: Iterable[Row]) -> list[list[str]]:
    """Return one line of cells for each row."""
    return [_cells(row) for row in rows]


def _cells(row: Row) -> list[str]:
    ratio = row.ratio
    is_of_figure = row.goal is Goal.FIGURE_AT_MOST
    shown = row.judged
    unit = f" {row.unit}" if is_of_figure else ""
    # A count is the same in every round: it has no interval.
    ends = _DASH if len(row.measured) == 1 else f"{number(shown.low)} to {number(shown.high)}{unit}"
    return [
        row.name,
        f"{number(row.figure.median)} {row.unit}",
        row.reference_name,
        number(median(row.reference)) if any(row.reference) else _DASH,
        _DASH if ratio is None else number(ratio.median),
        ends,
        _GOALS[row.goal].format(limit=row.limit, unit=row.unit),
        "yes" if row.is_met else "no",
    ]


def number(value: float) -> str:
    """Return a number with as many digits as it deserves: three, or two of a small one."""
    size = abs(value)
    for least, digits in ((100, 0), (10, 1), (0.1, 2)):
        if size >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.2g}"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of a page."""
    rule = ["---"] * len(head)
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *lines))
