"""What the demo shows at one instant: a live screen on a terminal, lines of text elsewhere."""

import contextlib
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keda_gpu_scaler.simulator.demo import answers, scenario

WIDTH = 80
_NAMES, _COLUMNS, _SENTENCE = 11, 30, 62
"""The columns of the names, of one curve and of a sentence, which fit into the width."""
_TICKS = 4
"""How many ticks one column of a curve is: the whole demo fits on the screen."""
_BARS = " ▁▂▃▄▅▆▇█"
_UNKNOWN = "-"
_LONG_NUMBER = re.compile(r"(?<![\d.])\d+\.\d{2,}(?!\.?\d)")
_OURS, _USUAL, _LOAD = "green", "yellow", "cyan"


@dataclass(frozen=True, slots=True)
class Side:
    """One workload at one tick."""

    offered: float | None = None
    utilization: float | None = None
    replicas: int = 0
    sentence: str = ""


@dataclass(slots=True)
class History:
    """Both workloads at each tick, oldest first."""

    ours: list[Side] = field(default_factory=list)
    usual: list[Side] = field(default_factory=list)

    def add(self, ours: Side, usual: Side) -> None:
        """Remember one tick."""
        self.ours.append(ours)
        self.usual.append(usual)

    @property
    def most_replicas(self) -> int:
        """The top of both curves of replicas: no less than what the highest load needs."""
        seen = (one.replicas for one in (*self.ours, *self.usual))
        return max([scenario.HIGHEST.goal, *seen])


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything to show after one tick."""

    seconds: float
    progress: scenario.Progress
    answer: answers.Answer
    ours: Side
    usual: Side
    history: History

    @property
    def value(self) -> str:
        """The answer of GetMetrics; an empty one holds the replicas."""
        is_held = bool(self.answer.metrics) and self.answer.value is None
        return "hold" if is_held else _number(self.answer.value)

    @property
    def active(self) -> str:
        """The answer of IsActive."""
        return {True: "active", False: "inactive", None: _UNKNOWN}[self.answer.active]

    @property
    def state(self) -> str:
        """The state of the decision."""
        return self.answer.said.state or _UNKNOWN

    @property
    def reason(self) -> str:
        """The error of the call, or the reason the server gave."""
        return rounded(self.answer.problem) or _UNKNOWN

    @property
    def news(self) -> tuple[str | int, ...]:
        """The values that cause a new line when they change."""
        replicas = (self.ours.replicas, self.usual.replicas)
        return (self.progress.index, *replicas, self.state, self.active)


def rounded(sentence: str) -> str:
    """Return a sentence with one decimal in each number that has more."""
    return _LONG_NUMBER.sub(lambda found: _number(float(found[0])), sentence)


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.1f}".removesuffix(".0")


def _percent(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.0f} %"


def line(frame: Frame) -> str:
    """Return the frame as one line, for logs and pipes."""
    return (
        f"{frame.seconds:5.1f} s  {frame.progress.phase.title:<12}  "
        f"load {_percent(frame.ours.offered):>5}  replicas {frame.ours.replicas}, "
        f"usual recipe {frame.usual.replicas}  value {frame.value:>5} {frame.active} "
        f"{frame.state}  {rounded(frame.ours.sentence)}  scaler: {frame.reason}"
    )


def screen(frame: Frame) -> RenderableType:
    """Return the frame as one screen of 80 columns."""
    phase = frame.progress.phase
    title = (
        f"keda-gpu-scaler demo, {frame.seconds:.0f} s: {phase.title}, "
        f"{phase.load:g} % needs {phase.goal} replicas"
    )
    rows = Table.grid()
    rows.add_row(_curves(frame))
    rows.add_row(_sentences(frame))
    return Panel(rows, title=Text(title), title_align="left", width=WIDTH)


def _curves(frame: Frame) -> Table:
    kept = frame.history
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True, width=_NAMES)
    table.add_column(no_wrap=True, width=_COLUMNS)
    table.add_column(no_wrap=True, width=_COLUMNS)
    table.add_row("", Text("this scaler", _OURS), Text("avg() with AverageValue", _USUAL))
    for curve in (
        _Curve("load", lambda side: side.offered, scenario.HIGHEST.load, 2, (_LOAD, _LOAD)),
        _Curve("replicas", lambda side: side.replicas, kept.most_replicas, 4),
        _Curve("utilization", lambda side: side.utilization, 100, 3),
    ):
        table.add_row(curve.name, *(curve.now(side) for side in (frame.ours, frame.usual)))
        table.add_row("", *map(curve.drawn, (kept.ours, kept.usual), curve.colors))
    return table


class _Curve(NamedTuple):
    """One quantity of both workloads."""

    name: str
    of: Callable[[Side], float | None]
    top: float
    lines: int
    colors: tuple[str, str] = (_OURS, _USUAL)

    def now(self, side: Side) -> Text:
        """Return the number at the newest tick."""
        value = self.of(side)
        return Text(_number(value) if self.name == "replicas" else _percent(value), "bold")

    def drawn(self, past: Sequence[Side], color: str) -> Text:
        """Return the curve, with the mean of some ticks in each column."""
        values = [self.of(side) or 0 for side in past]
        columns = [fmean(values[at : at + _TICKS]) for at in range(0, len(values), _TICKS)]
        return Text("\n".join(area(columns[-_COLUMNS:], self.top, self.lines)), color)


def area(values: Sequence[float], top: float, lines: int) -> list[str]:
    """Draw numbers as bars between 0 and `top`, so many lines high; the first line is the top."""
    full = len(_BARS) - 1
    eighths = [round(min(value / top, 1) * lines * full) for value in values]
    return [
        "".join(_BARS[min(full, max(0, each - full * below))] for each in eighths)
        for below in reversed(range(lines))
    ]


def _sentences(frame: Frame) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True, width=_NAMES)
    table.add_column(no_wrap=True, width=_SENTENCE)
    answer = f"{frame.value}, target {scenario.THRESHOLD}, {frame.active}, {frame.state}"
    table.add_row("", "")
    table.add_row("answer", Text(answer))
    table.add_row("reason", _wrapped(frame.reason, 3))
    table.add_row("replicas", _wrapped(rounded(frame.ours.sentence), 1))
    table.add_row("", _wrapped(f"avg(): {rounded(frame.usual.sentence)}", 1))
    return table


def _wrapped(sentence: str, lines: int) -> Text:
    """Return a sentence in exactly so many lines, so that the screen keeps its height."""
    found = textwrap.wrap(sentence, _SENTENCE, max_lines=lines, placeholder=" …")
    return Text("\n".join([*found, *[""] * (lines - len(found))]))


@contextlib.contextmanager
def open_screen(console: Console) -> Iterator[Callable[[Frame], None]]:
    """Yield a function that shows a frame on this console."""
    if not console.is_terminal:
        yield Lines(console).show
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda frame: live.update(screen(frame), refresh=True)


class Lines:
    """Prints a line for every frame with news."""

    def __init__(self, console: Console) -> None:
        """Print on this console."""
        self._console = console
        self._news: tuple[str | int, ...] = ()

    def show(self, frame: Frame) -> None:
        """Print the frame, unless its news are those of the frame before."""
        if frame.news != self._news:
            self._news = frame.news
            self._console.print(line(frame), soft_wrap=True, markup=False, highlight=False)
