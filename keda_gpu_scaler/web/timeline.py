"""The timeline of a trigger: what was active, its load and its replicas over the same time. Pure.

A decision holds until the next one, so a curve goes in steps, and each step is one rectangle. A
value that is not known is a shaded one of full height, and a zero is a thin line.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from keda_gpu_scaler.telemetry.history import Change

SHOWN_SECONDS = 6 * 3600.0
"""What a timeline shows at the most."""
MOST_TICKS = 7
"""As many labels as a phone has room for."""
_TICK_SECONDS = (60, 300, 900, 1800, 3600)
_HIGHEST_PERCENT = 90.0
"""The largest value does not touch the row above."""

Value = Callable[[Change], float | None]


class Bar(NamedTuple):
    """What held for some time; places and sizes are percents of the row."""

    x: float
    width: float
    y: float
    height: float
    value: float | None


class TimelineRow(NamedTuple):
    """One number over the time."""

    title: str
    largest: float
    steps: list[Bar]
    target_y: float | None
    """Where the target of the number is; None: it has none."""


class Tick(NamedTuple):
    """A time below the rows."""

    x: float
    label: str


class Period(NamedTuple):
    """The time that is shown."""

    begin: float
    end: float

    def percent(self, at: float) -> float:
        return round(100 * (at - self.begin) / max(self.end - self.begin, 1.0), 2)

    def ticks(self) -> Iterator[Tick]:
        """Yield full minutes, quarters or hours, so that each has another label."""
        length = self.end - self.begin
        fitting = (seconds for seconds in _TICK_SECONDS if length < MOST_TICKS * seconds)
        tick_seconds = next(fitting, _TICK_SECONDS[-1])
        first, last = math.ceil(self.begin / tick_seconds), math.floor(self.end / tick_seconds)
        for number in range(first, last + 1):
            at = float(number * tick_seconds)
            label = datetime.fromtimestamp(at, UTC).strftime("%H:%M")
            yield Tick(self.percent(at), label)

    def steps(self, changes: Sequence[Change], value_of: Value, whole: float) -> Iterator[Bar]:
        change_ends = [*(change.at for change in changes), self.end][1:]
        for change, change_end in zip(changes, change_ends, strict=True):
            begin, end = max(change.at, self.begin), min(change_end, self.end)
            if begin >= end:
                continue
            value = value_of(change)
            height = 100.0 if value is None else max(2.0, _height(value, whole))
            x = self.percent(begin)
            yield Bar(x, round(self.percent(end) - x, 2), 100.0 - height, height, value)


def rows(changes: Sequence[Change], period: Period, threshold: float | None) -> list[TimelineRow]:
    """Return the rows of one trigger's changes, the oldest of which comes first.

    The threshold is the target of the average load; None: not known.
    """
    values: dict[str, Value] = {
        "Active": lambda change: change.summary.active,
        "Average load": lambda change: change.summary.average,
        "Replicas": lambda change: change.summary.replicas,
        "Replicas wanted": lambda change: change.summary.recommended,
    }
    drawn_rows = []
    for title, value_of in values.items():
        target = threshold if title == "Average load" else None
        largest = max((value_of(change) or 0.0 for change in changes), default=0.0)
        whole = max(largest, target or 0.0)
        steps = list(period.steps(changes, value_of, whole))
        target_y = None if target is None else 100.0 - _height(target, whole)
        drawn_rows.append(TimelineRow(title, largest, steps, target_y))
    return drawn_rows


def _height(value: float, whole: float) -> float:
    return round(_HIGHEST_PERCENT * (value / (whole or 1.0)), 2)
