"""The outcomes of alternatives → one HTML page with three plots over the same time. Pure.

It loads nothing: styles and pictures are in it.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from keda_gpu_scaler.workbench.backtest.replay import Outcome
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import CAPACITY

COLUMNS = 900
"""Of a plot; each shows the largest value of its time."""
_LEFT, _HEIGHT = 60, 170
_COLORS = "#1a7f37", "#0969da", "#bc4c00", "#8250df"
_WORK = ("#57606a",)
STYLE = """
:root{color-scheme:light dark}
body{font:15px system-ui,sans-serif;margin:2em auto;max-width:64em;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right}
td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#8881}
svg{width:100%;display:block}path{fill:none;stroke-width:1.5}text{font:12px system-ui,sans-serif;
fill:#808890}.axis{stroke:#8886;stroke-width:1}h2{font-size:1em;margin:1.5em 0 .3em}
"""


class Section(NamedTuple):
    """One workload."""

    title: str
    work: Work
    outcomes: Mapping[str, Outcome]
    """Those that are drawn: four at most, so that each has a color."""
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    """The cells of the table, as people see it elsewhere."""
    notes: Sequence[str]
    """The last one is the advice."""
    ticks: Sequence[tuple[float, str]]
    """Times on the axis, and where they are in parts of all of the time."""


def page(sections: Sequence[Section]) -> str:
    body = "\n".join(map(_section, sections))
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>backtest</title>'
    return f"{head}<style>{STYLE}</style>{body}</html>\n"


def _section(section: Section) -> str:
    work = section.work
    replicas = [
        [None if size is None else float(size) for size in outcome.sizes]
        for outcome in section.outcomes.values()
    ]
    minutes = [
        [seconds / 60 for seconds in outcome.overloaded] for outcome in section.outcomes.values()
    ]
    legend = "".join(
        f'<b style="color:{color}">■</b> {escape(name)}&emsp;'
        for name, color in zip(section.outcomes, _COLORS, strict=False)
    )
    *notes, advice = section.notes
    full_replicas = [None if load is None else load / CAPACITY for load in work.loads]
    return "\n".join(
        [
            f"<h1>{escape(section.title)}</h1>",
            f"<p><b>{escape(advice)}</b></p>",
            f"<table><tr>{cells('th', section.heads)}</tr>",
            *(f"<tr>{cells('td', row)}</tr>" for row in section.rows),
            "</table>",
            *(f"<p>{escape(note)}</p>" for note in notes),
            f"<p>{legend}</p>",
            "<h2>Work, in replicas that would be full</h2>",
            _plot([full_replicas], _WORK, section.ticks),
            "<h2>Replicas</h2>",
            _plot(replicas, _COLORS, section.ticks),
            "<h2>Overloaded so far, in minutes</h2>",
            _plot(minutes, _COLORS, section.ticks),
        ]
    )


def cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _plot(
    curves: Sequence[Sequence[float | None]],
    colors: Sequence[str],
    ticks: Sequence[tuple[float, str]],
) -> str:
    """Return curves that keep each value until the next one; nothing is drawn where it is None."""
    drawn = [_columns(curve) for curve in curves]
    highest = (
        max((value for curve in drawn for value in curve if value is not None), default=0) or 1
    )
    parts = [
        f'<svg viewBox="0 0 {_LEFT + COLUMNS} {_HEIGHT + 24}">',
        f'<path class="axis" d="M{_LEFT} 8h{COLUMNS}M{_LEFT} {_HEIGHT}h{COLUMNS}"/>',
        f'<text x="4" y="14">{highest:.4g}</text><text x="4" y="{_HEIGHT}">0</text>',
        *(
            f'<text x="{_LEFT + COLUMNS * part:.1f}" y="{_HEIGHT + 18}">{label}</text>'
            for part, label in ticks
        ),
    ]
    for curve, color in zip(drawn, colors, strict=False):
        path, before = [], None
        for column, value in enumerate(curve):
            if value is not None:
                y = _HEIGHT - (_HEIGHT - 8) * value / highest
                x = _LEFT + column * COLUMNS / len(curve)
                path.append(f"M{x:.1f} {y:.1f}" if before is None else f"H{x:.1f}V{y:.1f}")
            before = value
        parts.append(f'<path d="{"".join(path)}" stroke="{color}"/>')
    return "".join([*parts, "</svg>"])


def _columns(values: Sequence[float | None]) -> list[float | None]:
    """Return the largest known value of each column."""
    count = min(COLUMNS, len(values))
    parts = [
        values[column * len(values) // count : (column + 1) * len(values) // count]
        for column in range(count)
    ]
    return [max((value for value in part if value is not None), default=None) for part in parts]
