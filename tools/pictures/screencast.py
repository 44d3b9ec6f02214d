"""What a terminal shows, one screen after the other, as one SVG that moves.

Each thing on a screen is drawn once, and shown while the screens have it: text, bars and the frame
around them. Where nothing may move, and in viewers that move nothing, there is one of the screens.
"""

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.sax.saxutils import escape

from rich.console import Console, RenderableType
from rich.segment import Segment

WIDTH, HEIGHT = 8.4, 17
"""Of one character."""
BARS = " ▁▂▃▄▅▆▇█"
_BASELINE = 13
_MARGIN = 10
_FOREGROUND, _BACKGROUND = "#d0d7de", "#161b22"
_COLORS: Mapping[str, str] = {"green": "#3fb950", "yellow": "#e3b341", "cyan": "#58c4dc"}
_CORNERS = {
    "╭": "M{c} {b}V{m}H{r}",
    "╮": "M{l} {m}H{c}V{b}",
    "╰": "M{c} {t}V{m}H{r}",
    "╯": "M{l} {m}H{c}V{t}",
}
_SIDES = {"─": "M{l} {m}H{r}", "│": "M{c} {t}V{b}"}
_LINES: Mapping[str, str] = {**_CORNERS, **_SIDES}
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


@dataclass(frozen=True, slots=True)
class Screen:
    """What is drawn of one screen, thing by thing, and how long it is shown."""

    drawn: frozenset[str]
    lines: int
    seconds: float


def look(shown: RenderableType, columns: int, seconds: float) -> Screen:
    """Return one screen of a terminal with so many columns, whatever the real one is."""
    console = Console(
        file=io.StringIO(),
        width=columns,
        height=50,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
    )
    lines = console.render_lines(shown, pad=False)
    drawn = frozenset(one for row, line in enumerate(lines) for one in _line(row, line))
    return Screen(drawn, len(lines), seconds)


def _line(row: int, line: Sequence[Segment]) -> Iterator[str]:
    column = 0
    for segment in line:
        color = segment.style.color if segment.style else None
        fill = _COLORS[color.name] if color and not color.is_default else _FOREGROUND
        is_bold = bool(segment.style and segment.style.bold)
        for at, text in _runs(segment.text):
            yield _thing(row, column + at, text, fill, is_bold=is_bold)
        column += len(segment.text)


def _runs(text: str) -> Iterator[tuple[int, str]]:
    """Yield what is drawn as one thing: words, equal bars, and lines, each with its column."""
    column = 0
    for kind, characters in groupby(text, lambda one: one if one in BARS or one in _LINES else ""):
        run = "".join(characters)
        if kind != " ":
            yield column, run
        column += len(run)


def _thing(row: int, column: int, text: str, fill: str, *, is_bold: bool) -> str:
    x, y, width = _MARGIN + column * WIDTH, _MARGIN + row * HEIGHT, len(text) * WIDTH
    if text[0] in _LINES:
        at = {"l": x, "r": x + width, "c": x + WIDTH / 2, "t": y, "b": y + HEIGHT}
        path = _LINES[text[0]].format(
            m=y + HEIGHT / 2, **{key: f"{each:g}" for key, each in at.items()}
        )
        return f'<path d="{path}"/>'
    if text[0] in BARS:
        high = HEIGHT * BARS.index(text[0]) / (len(BARS) - 1)
        place = f'x="{x:g}" y="{y + HEIGHT - high:g}" width="{width:g}" height="{high:g}"'
        return f'<rect {place} fill="{fill}"/>'
    weight = ' class="b"' if is_bold else ""
    color = "" if fill == _FOREGROUND else f' fill="{fill}"'
    place = f'x="{x:g}" y="{y + _BASELINE}" textLength="{width:g}"'
    return f"<text {place}{weight}{color}>{escape(text)}</text>"


def svg(screens: Sequence[Screen], still: int, title: str, columns: int) -> str:
    """Return the screens as one picture.

    Args:
        screens: all of them, in their order.
        still: which of them is shown where nothing moves.
        title: what the picture shows, for those who do not see it.
        columns: how wide the terminal is.
    """
    groups: dict[tuple[int, int], list[str]] = defaultdict(list)
    for thing in sorted(frozenset().union(*(one.drawn for one in screens))):
        for span in _spans([thing in one.drawn for one in screens]):
            groups[span].append(thing)
    begins = [sum(one.seconds for one in screens[:number]) for number in range(len(screens) + 1)]
    wide = columns * WIDTH + 2 * _MARGIN
    high = max(one.lines for one in screens) * HEIGHT + 2 * _MARGIN
    styles = [_style(span, begins, still) for span in sorted(groups)]
    things = [
        "".join([_open(span, len(screens)), *groups[span], "</g>"]) for span in sorted(groups)
    ]
    shape = f'viewBox="0 0 {wide:g} {high:g}" role="img" fill="{_FOREGROUND}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>',
            f"<title>{escape(title)}</title>",
            "<style>",
            f"text{{font:14px {_FONT};white-space:pre}}",
            ".b{font-weight:bold}path{stroke:#6e7681;fill:none}",
            *filter(None, styles),
            "@media(prefers-reduced-motion:reduce){g{animation:none!important}}",
            "</style>",
            f'<rect width="{wide:g}" height="{high:g}" rx="8" fill="{_BACKGROUND}"/>',
            *things,
            "</svg>",
            "",
        ]
    )


def _spans(shown: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield from which screen on, and up to which one, something is shown."""
    begin = 0
    for is_shown, run in groupby(shown):
        end = begin + len(list(run))
        if is_shown:
            yield begin, end
        begin = end


def _open(span: tuple[int, int], count: int) -> str:
    return "<g>" if span == (0, count) else f'<g class="s{span[0]}-{span[1]}">'


def _style(span: tuple[int, int], begins: Sequence[float], still: int) -> str:
    """Return when a group is shown; nothing for what is shown all the time."""
    begin, end = span
    if span == (0, len(begins) - 1):
        return ""
    name, whole = f"s{begin}-{end}", begins[-1]
    steps = [
        (0.0, begin == 0),
        (begins[begin] / whole, True),
        (begins[end] / whole, end == len(begins) - 1),
    ]
    frames = "".join(
        f"{100 * at:.2f}%{{visibility:{'visible' if is_shown else 'hidden'}}}"
        for at, is_shown in steps
    )
    hidden = "" if begin <= still < end else "visibility:hidden;"
    moves = f"animation:{name} {whole:g}s step-end infinite"
    return f"@keyframes {name}{{{frames}}}.{name}{{{hidden}{moves}}}"
