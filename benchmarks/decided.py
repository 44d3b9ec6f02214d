"""The rows of a score of decisions, what is committed of them, their table and their picture.

Pure, but for the file.
"""

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.drawings import picture, words

COMMITTED = Path(__file__).parent / "decisions.json"
START_SECONDS = 60, 120, 300
LOADING = 0, 100
USUAL = 70
OURS, MORE, DEMAND, SUM, AVERAGE, VALUE, FIXED = (
    "this scaler",
    "this scaler and one replica more",
    "this scaler with a demand",
    "`sum`, `AverageValue`",
    "`avg`, `AverageValue`",
    "`avg`, `Value`",
    "fixed size that knows the peak",
)


@dataclass(frozen=True, slots=True)
class Row:
    """What a way costs and gives with one setting: means over traces and seeds."""

    way: str
    setting: int
    loading: int
    start_seconds: int | None
    """None: the mean over all of them."""
    hours: float
    """Replica-hours, as a multiple of those of a clairvoyant."""
    overloaded: float
    """The part of the time with more work than replicas that are Ready can do, in percent."""
    changes: float
    """How often the replicas change in an hour."""


def overloaded_at(hours: float, curve: Iterable[Row]) -> float | None:
    """Return how long a way is overloaded at these hours, between two of its settings.

    None: it has no setting with as many, or none with as few.
    """
    ordered = sorted(curve, key=lambda row: row.hours)
    for low, high in itertools.pairwise(ordered):
        if low.hours <= hours <= high.hours and low.hours < high.hours:
            part = (hours - low.hours) / (high.hours - low.hours)
            return low.overloaded + part * (high.overloaded - low.overloaded)
    return None


THRESHOLDS_SHOWN = 60, USUAL, 80
SHOWN = {AVERAGE: (USUAL,), VALUE: (USUAL,), FIXED: (7, 8, 10)}
HEAD = [
    "way, threshold or replicas",
    "hours",
    "overloaded %",
    f"at a start-up of {'/'.join(map(str, START_SECONDS))} s",
    "changes an hour",
    "points more than `sum` at equal hours",
    "loading at 100 %: hours",
    "overloaded %",
]


def cells(found: Sequence[Row]) -> list[list[str]]:
    """Return a table's lines: pods that load at 0 %, and beside them those that load at 100 %.

    The recipes with an average have one, at the usual threshold; of the others, the picture has
    the settings at both ends.
    """
    of = {(row.way, row.setting, row.loading, row.start_seconds): row for row in found}
    curve = [row for row in found if (row.way, row.loading, row.start_seconds) == (SUM, 0, None)]
    lines = []
    for way, setting in dict.fromkeys((row.way, row.setting) for row in found):
        if setting not in SHOWN.get(way, THRESHOLDS_SHOWN):
            continue
        idle, busy = (of[way, setting, loading, None] for loading in LOADING)
        beside = overloaded_at(idle.hours, curve)
        each = (of[way, setting, LOADING[0], seconds] for seconds in START_SECONDS)
        lines.append(
            [
                f"{way}, {setting}",
                *_figures(idle),
                "/".join(f"{row.overloaded:.1f}" for row in each),
                f"{idle.changes:.1f}",
                "–" if beside is None else f"{idle.overloaded - beside:+.1f}",  # noqa: RUF001 - a dash
                *_figures(busy),
            ]
        )
    return lines


def _figures(row: Row) -> list[str]:
    return [f"{row.hours:.2f}", f"{row.overloaded:.1f}"]


WAYS_HEAD = ["way", "GPU-hours", "overloaded", "GPU-hours if models load at 100 %"]
WAYS = {OURS: OURS, SUM: "`sum()`", VALUE: "`avg()` as `Value`", AVERAGE: "`avg()`"}


def ways(found: Sequence[Row]) -> list[list[str]]:
    """Return a line for each way at the usual threshold."""
    of = {
        (row.way, row.loading): row
        for row in found
        if (row.setting, row.start_seconds) == (USUAL, None)
    }
    return [
        [name, f"{idle.hours:.2f}", f"{idle.overloaded:.1f} %", f"{of[way, LOADING[1]].hours:.2f}"]
        for way, name in WAYS.items()
        for idle in [of[way, LOADING[0]]]
    ]


CURVES = (
    ("this scaler", "o c", OURS, 0),
    ("this scaler with a demand", "l c", DEMAND, 0),
    ("the sum, pods that load at 0 %", "u c", SUM, 0),
    ("the sum, pods that load at 100 %", "u c", SUM, 100),
    ("a fixed size", "w c", FIXED, 0),
)


def curves(found: Sequence[Row]) -> str:
    """Return the overloaded share of the time over the replica-hours, by thresholds."""
    left, top, width, height = 64, 60, 760, 330
    drawn = {
        name: sorted(
            (row.hours, row.overloaded, row.setting)
            for row in found
            if (row.way, row.loading, row.start_seconds) == (way, loading, None)
        )
        for name, _, way, loading in CURVES
    }
    points = [point for curve in drawn.values() for point in curve]
    widest, highest = (math.ceil(max(point[axis] for point in points) / unit) * unit
                       for axis, unit in ((0, 0.5), (1, 10)))  # fmt: skip

    def place(hours: float, overloaded: float) -> tuple[float, float]:
        return left + width * hours / widest, top + height * (1 - overloaded / highest)

    parts = [words(12, 26, "Overloaded share of the time, over replica-hours ÷ clairvoyant", "t")]
    for percent in range(0, int(highest) + 1, 10):
        _, y = place(0, percent)
        parts.append(
            f'<path class="a" d="M{left} {y:.1f}h{width}"/>'
            f'<text class="q e" x="{left - 8}" y="{y + 4:.1f}">{percent} %</text>'
        )
    for half in range(int(2 * widest) + 1):
        x, _ = place(half / 2, 0)
        parts.append(f'<text class="q m" x="{x:.1f}" y="{top + height + 18}">{half / 2:g}</text>')
    for number, (name, kind, _, _) in enumerate(CURVES):
        places = [(*place(hours, over), setting) for hours, over, setting in drawn[name]]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in places)
        dashed = ' stroke-dasharray="6 5"' if name.endswith("100 %") else ""
        color, y = kind.split()[0], top + 16 + 20 * number
        parts.append(f'<path class="{kind}" d="M{path}"{dashed}/>')
        parts += [
            f'<circle class="{color}" cx="{x:.1f}" cy="{dot:.1f}" r="3"/>' for x, dot, _ in places
        ]
        parts.append(f'<path class="{kind}" d="M{left + 480} {y - 4}h30"{dashed}/>')
        parts.append(words(left + 520, y, name))
    title = (
        "For each way, five thresholds or sizes: the share of the time with more work than the "
        "replicas can do, over the replica-hours as a multiple of a clairvoyant's"
    )
    return picture(left + width + 30, top + height + 34, title, *parts)


def committed() -> list[Row]:
    """Return what is committed."""
    return [Row(**row) for row in json.loads(COMMITTED.read_text(encoding="utf-8"))["rows"]]
