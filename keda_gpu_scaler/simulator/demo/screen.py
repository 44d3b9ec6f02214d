"""What the demo shows at one instant: a live screen on a terminal, lines of text elsewhere."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from keda_gpu_scaler.simulator.demo import answers, children, scenario

_BARS = "▁▂▃▄▅▆▇█"
_KEPT = 60
_UNKNOWN = "-"


@dataclass(slots=True)
class History:
    """Load and replicas at the last ticks, oldest first."""

    loads: list[float] = field(default_factory=list)
    replicas: list[float] = field(default_factory=list)

    def add(self, load: float, replicas: int) -> None:
        """Remember one tick and forget the oldest one beyond the width of the screen."""
        self.loads = [*self.loads, load][-_KEPT:]
        self.replicas = [*self.replicas, float(replicas)][-_KEPT:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything to show after one tick."""

    seconds: float
    progress: scenario.Progress
    offered: float | None
    answer: answers.Answer
    words: children.Words
    replicas: int
    sentence: str
    history: History

    @property
    def value(self) -> str:
        """The answer of GetMetrics."""
        return _UNKNOWN if self.answer.value is None else f"{self.answer.value:.1f}"

    @property
    def active(self) -> str:
        """The answer of IsActive."""
        return {True: "active", False: "inactive", None: _UNKNOWN}[self.answer.active]

    @property
    def reason(self) -> str:
        """The error of the call, or the reason the server gave."""
        return self.answer.error or self.words.reason

    @property
    def load(self) -> str:
        """The offered load."""
        return _UNKNOWN if self.offered is None else f"{self.offered:g} %"

    @property
    def news(self) -> tuple[str | int, ...]:
        """The values that cause a new line when they change."""
        return (self.progress.index, self.replicas, self.words.state, self.active)


def line(frame: Frame) -> str:
    """Return the frame as one line, for logs and pipes."""
    return (
        f"{frame.seconds:5.1f} s  {frame.progress.phase.title:<12}  load {frame.load:>5}  "
        f"value {frame.value:>5} {frame.active} {frame.words.state or _UNKNOWN}  "
        f"replicas {frame.replicas}  {frame.sentence}  scaler: {frame.reason or _UNKNOWN}"
    )


def screen(frame: Frame) -> RenderableType:
    """Return the frame as one screen."""
    title = f"keda-gpu-scaler demo, {frame.seconds:.0f} s"
    return Panel(_rows(frame), title=title, title_align="left")


def _rows(frame: Frame) -> Table:
    phase, history = frame.progress.phase, frame.history
    steps = ProgressBar(total=len(frame.progress.phases), completed=frame.progress.index)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("progress", steps)
    table.add_row("phase", f"{phase.title}: {phase.load:g} % needs {phase.goal} replicas")
    table.add_row("load at router", Text(f"{frame.load:<6} {sparkline(history.loads)}"))
    table.add_row("replicas", Text(f"{frame.replicas:<6} {sparkline(history.replicas)}"))
    table.add_row("scaler answers", f"{frame.value} over {scenario.THRESHOLD}, {frame.active}")
    table.add_row("state", frame.words.state or _UNKNOWN)
    table.add_row("reason", Text(frame.reason or _UNKNOWN))
    table.add_row("replicas because", Text(frame.sentence))
    return table


def sparkline(values: list[float]) -> str:
    """Draw numbers as bars between 0 and the largest of them."""
    top = max(values, default=0) or 1
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)


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
