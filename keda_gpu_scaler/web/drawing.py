"""Curves as SVG, drawn by the server: no script, and nothing but numbers in them. Pure.

A decision holds until the next one, so that a curve goes in steps. Where a value is not known there
is a gap.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

SPARK_SECONDS = 1800.0
_SPARK_WIDTH, _SPARK_HEIGHT = 120.0, 24.0
_WIDTH, _ROW_HEIGHT, _GAP = 720.0, 80.0, 28.0

Step = tuple[float, float | None]
"""From when on a value held; None: it was not known."""


class Curve(NamedTuple):
    """One curve of a timeline."""

    name: str
    steps: Sequence[Step]


def spark(steps: Sequence[Step], now: float) -> Markup:
    """Return the curve of the last half hour, small enough for a row of a table."""
    path = _path(steps, _Frame(now - SPARK_SECONDS, now, 0.0, _SPARK_WIDTH, _SPARK_HEIGHT))
    return Markup(  # noqa: S704 - numbers alone
        f'<svg width="{_SPARK_WIDTH:g}" height="{_SPARK_HEIGHT:g}" role="img" aria-label='
        f'"the value of the last half hour">{path}</svg>'
    )


def timeline(curves: Iterable[Curve], since: float, now: float) -> Markup:
    """Return curves above each other, over the same time.

    Args:
        curves: what to draw; the names are the drawer's own, and no text of anybody else.
        since: where the time begins.
        now: where it ends.
    """
    parts, top = [], _GAP
    for curve in curves:
        highest = _highest(curve.steps)
        bottom = top + _ROW_HEIGHT
        parts += [
            f'<text x="0" y="{top - 8:g}">{curve.name}, up to {highest:g}</text>',
            f'<line class="axis" x1="0" y1="{bottom:g}" x2="{_WIDTH:g}" y2="{bottom:g}"/>',
            _path(curve.steps, _Frame(since, now, top, _WIDTH, _ROW_HEIGHT)),
        ]
        top = bottom + _GAP
    view = f"0 0 {_WIDTH:g} {top:g}"
    return Markup(  # noqa: S704 - numbers, and names of the drawer's own
        f'<svg viewBox="{view}" width="{_WIDTH:g}" role="img" aria-label="history">'
        f"{''.join(parts)}</svg>"
    )


def _highest(steps: Iterable[Step]) -> float:
    return max((value for _, value in steps if value is not None), default=0.0)


class _Frame(NamedTuple):
    """The time and the place of one curve."""

    since: float
    now: float
    top: float
    width: float
    height: float

    def x(self, at: float) -> str:
        """Return where a time is, from the left."""
        return f"{self.width * (at - self.since) / max(self.now - self.since, 1.0):.1f}"


def _path(steps: Sequence[Step], frame: _Frame) -> str:
    highest = _highest(steps) or 1.0
    drawn = " ".join(
        f"M{frame.x(begin)} {frame.top + frame.height * (1 - value / highest):.1f}H{frame.x(end)}"
        for begin, end, value in _spans(steps, frame.since, frame.now)
    )
    return f'<path class="line" d="{drawn}"/>'


def _spans(steps: Sequence[Step], since: float, now: float) -> Iterator[tuple[float, float, float]]:
    """Yield from when until when each known value held, within the time."""
    ends = [*(at for at, _ in steps[1:]), now]
    for (begin, value), end in zip(steps, ends, strict=False):
        if value is not None and end > since and begin < now:
            yield max(begin, since), min(end, now), value
