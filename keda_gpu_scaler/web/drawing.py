"""Curves and bars as SVG, drawn by the server: no script, and nothing but numbers in them. Pure.

A decision holds until the next one, so that a curve goes in steps. Where a value is not known there
is a shaded gap, and never a line at zero. Nothing is told by colour alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

SPARK_SECONDS = 1800.0
TICKS = 5
_SPARK = (120.0, 28.0)
_CURVE = (720.0, 72.0)
_RIBBON = (720.0, 14.0)
_BAR = (72.0, 10.0)
_HEADROOM = 1.1
"""The largest number does not touch the upper edge, where its line would be cut in half."""

Step = tuple[float, float | None]
"""From when on a value held; None: it was not known."""


class Span(NamedTuple):
    """A value, and from when until when it held."""

    begin: float
    end: float
    value: float | None


class Period(NamedTuple):
    """The time that a curve shows."""

    since: float
    now: float

    def share(self, at: float) -> float:
        """Return where a time is: 0 at the beginning, 1 at the end."""
        return (at - self.since) / max(self.now - self.since, 1.0)

    def spans(self, steps: Sequence[Step]) -> Iterator[Span]:
        """Yield what held within the time; equal neighbours are one."""
        ends = [*(at for at, _ in steps[1:]), self.now]
        last: Span | None = None
        for (begin, value), end in zip(steps, ends, strict=False):
            if end <= max(begin, self.since) or begin >= self.now:
                continue
            span = Span(max(begin, self.since), min(end, self.now), value)
            if last is not None and last.value == value:
                last = last._replace(end=span.end)
                continue
            if last is not None:
                yield last
            last = span
        if last is not None:
            yield last

    @property
    def ticks(self) -> list[float]:
        """The times to write below, the first and the last one included."""
        return [self.since + (self.now - self.since) * n / (TICKS - 1) for n in range(TICKS)]


def spark(steps: Sequence[Step], now: float) -> Markup:
    """Return the curve of the last half hour, small enough for a row of a table."""
    spans = list(Period(now - SPARK_SECONDS, now).spans(steps))
    if not spans:
        return Markup()
    known = [span.value for span in spans if span.value is not None]
    said = f"from {min(known):.6g} to {max(known):.6g}" if known else "not known"
    gap = ", with gaps" if known and len(known) < len(spans) else ""
    width, height = _SPARK
    drawn = _drawn(spans, Period(now - SPARK_SECONDS, now), max(known, default=0.0), _SPARK)
    return Markup(  # noqa: S704 - numbers alone
        f'<svg class="spark" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{said}{gap}"'
        f' preserveAspectRatio="none">{drawn}</svg>'
    )


def curve(steps: Sequence[Step], period: Period, level: float | None = None) -> Markup:
    """Return one curve of a timeline, as wide as its place.

    Args:
        steps: the values.
        period: the time to draw.
        level: a line to compare the values with; None: there is none.
    """
    spans = list(period.spans(steps))
    width, height = _CURVE
    highest = max(span.value or 0.0 for span in (*spans, Span(0, 0, level)))
    across = "".join(
        f'<line class="grid" x1="{x:g}" y1="0" x2="{x:g}" y2="{height:g}"/>'
        for x in (width * n / (TICKS - 1) for n in range(TICKS))
    )
    drawn = _drawn(spans, period, highest, _CURVE)
    if level is not None:
        y = _y(level, highest, height)
        drawn += f'<line class="level" x1="0" y1="{y:.1f}" x2="{width:g}" y2="{y:.1f}"/>'
    return Markup(  # noqa: S704 - numbers alone
        f'<svg class="curve" viewBox="0 0 {width:g} {height:g}" aria-hidden="true"'
        f' preserveAspectRatio="none">{across}{drawn}</svg>'
    )


def ribbon(steps: Sequence[Step], period: Period) -> Markup:
    """Return when something was 1 (a thick line), 0 (a thin one), or not known (shaded)."""
    width, height = _RIBBON
    places: dict[float | None, tuple[str, float, float]] = {
        None: ("gap", 0, height),
        0: ("off", height - 4, 3),
        1: ("on", 2, height - 4),
    }
    parts = []
    for begin, end, value in period.spans(steps):
        x, wide = width * period.share(begin), width * (period.share(end) - period.share(begin))
        kind, y, tall = places[value]
        parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:g}" width="{wide:.1f}" height="{tall:g}"/>'
        )
    return Markup(  # noqa: S704 - numbers, and words of this function
        f'<svg class="ribbon" viewBox="0 0 {width:g} {height:g}" aria-hidden="true"'
        f' preserveAspectRatio="none">{"".join(parts)}</svg>'
    )


def bar(value: float, whole: float, level: float | None = None) -> Markup:
    """Return how much of the whole a value is, with a mark at a level to compare it with."""
    width, height = _BAR
    share = width * min(1.0, max(0.0, value / whole)) if whole > 0 else 0.0
    mark = ""
    if level is not None and 0 < level <= whole:
        at = width * level / whole
        mark = f'<line class="level" x1="{at:.1f}" y1="0" x2="{at:.1f}" y2="{height:g}"/>'
    return Markup(  # noqa: S704 - numbers alone
        f'<svg class="bar" viewBox="0 0 {width:g} {height:g}" aria-hidden="true">'
        f'<rect class="track" y="2" width="{width:g}" height="6"/>'
        f'<rect class="on" y="2" width="{share:.1f}" height="6"/>{mark}</svg>'
    )


def _drawn(spans: Iterable[Span], period: Period, highest: float, size: tuple[float, float]) -> str:
    """Return the line, the area below it, and the gaps."""
    width, height = size
    line, area, gaps, before = "", "", "", None
    for begin, end, value in spans:
        x, until = f"{width * period.share(begin):.1f}", f"{width * period.share(end):.1f}"
        if value is None:
            wide = width * (period.share(end) - period.share(begin))
            gaps += f'<rect class="gap" x="{x}" width="{wide:.1f}" height="{height:g}"/>'
        else:
            y = f"{_y(value, highest, height):.1f}"
            line += f"V{y}H{until}" if before is not None else f"M{x} {y}H{until}"
            area += f"M{x} {height:g}V{y}H{until}V{height:g}Z"
        before = value
    return f'{gaps}<path class="area" d="{area}"/><path class="line" d="{line}"/>'


def _y(value: float, highest: float, height: float) -> float:
    """Return where a value is, from above; a zero is a line just above the edge."""
    return (height - 1) * (1 - value / (highest * _HEADROOM or 1.0))
