"""What the demo shows at one instant: a live screen on a terminal, lines of text elsewhere."""

import contextlib
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from statistics import fmean

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keda_gpu_scaler.workbench.demo import scenario
from keda_gpu_scaler.workbench.demo.driver import Frame, Side

WIDTH = 80
_LINE = 120
"""The most characters of a line in a pipe."""
_NAMES, _COLUMNS, _SENTENCE = 11, 19, 62
"""The columns of the names, of one curve and of a sentence, which fit into the width."""
_TICKS = 6
"""How many ticks one column of a curve is: the whole demo fits on the screen."""
_BARS = " ▁▂▃▄▅▆▇█"
_UNKNOWN = "-"
_LONG_NUMBER = re.compile(r"(?<![\d.])\d+\.\d{2,}(?!\.?\d)")
_OURS, _CORRECTED, _USUAL, _LOAD = "green", "cyan", "yellow", "default"
HEAD = "replicas of this scaler, of sum() with AverageValue, and of avg() with AverageValue:"
"""The first line in a pipe."""


def rounded(sentence: str) -> str:
    """Return a sentence with one decimal in each number that has more."""
    return _LONG_NUMBER.sub(lambda number: _number(float(number[0])), sentence)


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.1f}".removesuffix(".0")


def _percent(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.0f} %"


def line(frame: Frame) -> str:
    ours, corrected, usual = (side[-1] for side in (frame.ours, frame.corrected, frame.usual))
    whole = (
        f"{frame.seconds:5.1f} s  load {_percent(ours.offered):>5}  this {ours.replicas}, "
        f"sum() {corrected.replicas}, avg() {usual.replicas}  {rounded(ours.sentence)}"
    )
    return whole if len(whole) <= _LINE else f"{whole[: _LINE - 2]} …"


def screen(frame: Frame) -> RenderableType:
    phase = frame.progress.phase
    title = (
        f"keda-gpu-scaler demo, {frame.seconds:.0f} s: {phase.title}, "
        f"{phase.load:g} % needs {phase.goal} replicas"
    )
    rows = Table.grid()
    rows.add_row(_curves(frame.ours, frame.corrected, frame.usual))
    rows.add_row(_sentences(frame))
    return Panel(rows, title=Text(title), title_align="left", width=WIDTH)


def _curves(*pasts: Sequence[Side]) -> Table:
    most_replicas = max(scenario.HIGHEST.goal, *(side.replicas for past in pasts for side in past))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True, width=_NAMES)
    for _ in pasts:
        table.add_column(no_wrap=True, width=_COLUMNS)
    names = ("this scaler", "sum, AverageValue", "avg, AverageValue")
    sides = (_OURS, _CORRECTED, _USUAL)
    table.add_row("", *map(Text, names, sides))
    for name, quantity, shown, top, lines, colors in (
        ("load", attrgetter("offered"), _percent, scenario.HIGHEST.load, 2, (_LOAD,) * 3),
        ("replicas", attrgetter("replicas"), _number, most_replicas, 4, sides),
        ("utilization", attrgetter("utilization"), _percent, 100, 3, sides),
    ):
        values = [[quantity(side) for side in past] for past in pasts]
        table.add_row(name, *(Text(shown(past[-1]), "bold") for past in values))
        curves: list[Text] = []
        for past, color in zip(values, colors, strict=True):
            # Some ticks share a column with their mean; an unknown number is 0.
            known = [value or 0 for value in past]
            columns = [fmean(known[at : at + _TICKS]) for at in range(0, len(known), _TICKS)]
            curves.append(Text("\n".join(area(columns[-_COLUMNS:], top, lines)), color))
        table.add_row("", *curves)
    return table


def area(values: Sequence[float], top: float, lines: int) -> list[str]:
    """Draw numbers as bars between 0 and `top`, so many lines high; the first line is the top."""
    full = len(_BARS) - 1
    eighths = [round(min(value / top, 1) * lines * full) for value in values]
    return [
        "".join(_BARS[min(full, max(0, height - full * below))] for height in eighths)
        for below in reversed(range(lines))
    ]


def _sentences(frame: Frame) -> Table:
    answer = frame.answer
    is_held = bool(answer.metrics) and answer.value is None
    value = "hold" if is_held else _number(answer.value)
    activity = {True: "active", False: "inactive", None: _UNKNOWN}[answer.active]
    state = answer.state or _UNKNOWN
    shown = f"{value}, target {scenario.THRESHOLD}, {activity}, {state}"
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True, width=_NAMES)
    table.add_column(no_wrap=True, width=_SENTENCE)
    table.add_row("", "")
    table.add_row("answer", Text(shown))
    table.add_row("reason", _wrapped(rounded(answer.reason) or _UNKNOWN, 3))
    table.add_row("replicas", _wrapped(rounded(frame.ours[-1].sentence), 1))
    for recipe, past in (("sum()", frame.corrected), ("avg()", frame.usual)):
        table.add_row("", _wrapped(f"{recipe}: {rounded(past[-1].sentence)}", 1))
    return table


def _wrapped(sentence: str, lines: int) -> Text:
    """Return a sentence in exactly so many lines, so that the screen keeps its height."""
    wrapped = textwrap.wrap(sentence, _SENTENCE, max_lines=lines, placeholder=" …")
    return Text("\n".join([*wrapped, *[""] * (lines - len(wrapped))]))


@contextlib.contextmanager
def open_screen(console: Console) -> Iterator[Callable[[Frame], None]]:
    """Yield a function that shows a frame on this console.

    Without a terminal it prints a line for every frame with news.
    """
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda frame: live.update(screen(frame), refresh=True)
        return
    shown: tuple[int, ...] = ()

    def print_line(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False, highlight=False)

    def print_news(frame: Frame) -> None:
        nonlocal shown
        sides = (frame.ours, frame.corrected, frame.usual)
        news = (frame.progress.index, *(side[-1].replicas for side in sides))
        if news != shown:
            shown = news
            print_line(line(frame))

    print_line(HEAD)
    yield print_news
