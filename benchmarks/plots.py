"""The plots of docs/benchmarks.md, drawn from the committed figures. Pure."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log2
from xml.sax.saxutils import escape

from benchmarks import results
from benchmarks.comparison import Interval, Row
from benchmarks.results import Results
from benchmarks.tables import number
from tests.support.drawings import picture, words

_WIDTH, _LEFT, _RIGHT = 1000, 500, 960
_TOP, _LINE = 66, 24
_NAME_CHARS = 76
"""As many fit left of the axis."""
_MOST_TIMES = 5
"""A round in which the machine was busy must not press all others together."""


def _y(line: int) -> int:
    return _TOP + _LINE * line


def _name(row: Row) -> str:
    text = row.name.replace("`", "")
    return text if len(text) <= _NAME_CHARS else f"{text[: _NAME_CHARS - 1]}…"


def _label(line: int, text: str) -> str:
    return f'<text class="q e" x="{_LEFT - 14}" y="{_y(line) + 4}">{escape(text)}</text>'


def _upright(x: float, lines: int, text: str, kind: str = "a") -> str:
    """Return a line from top to bottom, with what it stands for above it."""
    bottom = _y(lines - 1) + _LINE // 2
    return (
        f'<path class="{kind}" d="M{x:.1f} {_TOP - 14}V{bottom}"/>'
        f'<text class="q m" x="{x:.1f}" y="{_TOP - 20}">{text}</text>'
    )


def _spread(line: int, ends: tuple[float, float, float], kind: str) -> str:
    """Return a line from the lower end to the upper one, with a dot at the median."""
    low, middle, high = ends
    y = _y(line)
    return (
        f'<path class="{kind} c" d="M{low:.1f} {y}H{high:.1f}"/>'
        f'<circle class="{kind}" cx="{middle:.1f}" cy="{y}" r="4"/>'
    )


def share_of_goal(row: Row) -> Interval:
    """Return how far a row is from its goal: 1 is the goal, and less is better.

    Raises:
        ValueError: the row has no goal.
    """
    if row.limit is None:
        raise ValueError(f"{row.key} has no goal")
    shown = row.judged
    if row.is_at_least:
        return Interval(*(row.limit / end for end in (shown.median, shown.high, shown.low)))
    return Interval(*(end / row.limit for end in (shown.median, shown.low, shown.high)))


def goals(found: Results) -> str:
    """Return every row with a goal, on one axis of what its goal is a multiple of."""
    rows = [row for row in results.rows(found) if row.limit is not None]
    shares = [share_of_goal(row) for row in rows]
    first = min(-1, floor(log2(max(2**-6, min(one.low for one in shares)))))
    last = max(1, ceil(log2(max(one.high for one in shares))))

    def x(share: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (log2(max(share, 2**first)) - first) / (last - first)

    marks = (
        _upright(x(2**power), len(rows), "goal" if power == 0 else f"{2.0**power:g} times",
                 "w" if power == 0 else "a")
        for power in range(first, last + 1)
    )  # fmt: skip
    drawn = (
        _label(line, _name(row))
        + _spread(line, (x(share.low), x(share.median), x(share.high)), "o" if row.is_met else "u")
        for line, (row, share) in enumerate(zip(rows, shares, strict=True))
    )
    met = sum(bool(row.is_met) for row in rows)
    return picture(
        _WIDTH,
        _y(len(rows)) + 4,
        f"{met} of {len(rows)} goals are met: the median and the 90 % interval of each, as a "
        "multiple of its goal",
        words(12, 26, "As a multiple of the goal: left of it is better, green is met", "t"),
        *marks,
        *drawn,
    )


def rounds(found: Results) -> str:
    """Return the ratio of each round, of what is compared with the echo server."""
    rows = [
        row
        for row in results.rows(found)
        if row.reference_name.startswith("echo server") and row.ratio is not None
    ]
    ratios = [
        [one / other for one, other in zip(row.measured, row.reference, strict=True)]
        for row in rows
    ]
    highest = max(map(max, ratios))
    last = min(max(2, ceil(highest)), _MOST_TIMES)

    def x(ratio: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * min(ratio, last) / last

    drawn = (
        _label(line, _name(row))
        + "".join(
            f'<circle class="l" cx="{x(each):.1f}" cy="{_y(line)}" r="3" fill-opacity="0.45"/>'
            for each in of_rounds
        )
        for line, (row, of_rounds) in enumerate(zip(rows, ratios, strict=True))
    )
    return picture(
        _WIDTH,
        _y(len(rows)) + 4,
        "The ratio to the echo server in each round",
        words(12, 26, "Scaler ÷ echo server, one dot for each round", "t"),
        *(_upright(
                x(each),
                len(rows),
                f"{each} or more" if highest > each == last else f"{each}",
                "w" if each == 1 else "a",
            )
          for each in range(last + 1)),
        *drawn,
    )  # fmt: skip


def bill(found: Results) -> str:
    """Return where the CPU time goes: of a scaler or echo server, and of its Prometheus."""
    (detail,) = (each for each in found["polling"].details if each.key == "bill")
    lines = [
        (cells[0].replace("`", ""), float(cells[1]), float(cells[2])) for cells in detail.cells
    ]
    most = max(server + prometheus for _, server, prometheus in lines)

    def wide(percent: float) -> float:
        return (_RIGHT - _LEFT - 60) * percent / most

    drawn = (
        _label(line, name)
        + f'<rect class="l" x="{_LEFT}" y="{_y(line) - 8}" width="{wide(server):.1f}" height="16"/>'
        f'<rect class="u" x="{_LEFT + wide(server):.1f}" y="{_y(line) - 8}" '
        f'width="{wide(prometheus):.1f}" height="16"/>'
        f'<text class="q" x="{_LEFT + wide(server + prometheus) + 8:.1f}" y="{_y(line) + 4}">'
        f"{number(server + prometheus)} %</text>"
        for line, (name, server, prometheus) in enumerate(lines)
    )
    return picture(
        _WIDTH,
        _y(len(lines)) + 4,
        "CPU time in percent of one core: scaler or echo server, and Prometheus",
        words(12, 26, f"CPU time: {detail.head[0]}", "t"),
        words(_LEFT, 46, "scaler or echo server", "l n"),
        words(_LEFT + 170, 46, "Prometheus", "u n"),
        *drawn,
    )


PLOTS: Mapping[str, Callable[[Results], str]] = {
    "benchmarks-goals.svg": goals,
    "benchmarks-rounds.svg": rounds,
    "benchmarks-cpu.svg": bill,
}


def texts(found: Results) -> Sequence[tuple[str, str]]:
    """Return the name and the text of every plot."""
    return [(name, draw(found)) for name, draw in PLOTS.items()]
