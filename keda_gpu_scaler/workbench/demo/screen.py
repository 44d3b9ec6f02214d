"""What the demo shows of a scene: a live screen on a terminal, lines of text elsewhere."""

import contextlib
import textwrap
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keda_gpu_scaler.workbench.demo.scenes import SCENES, DemoScene, Sides

_NAMES, _GAP, _FRAME = 11, 2, 4
"""The columns of the names, of what is between columns, and of the frame."""
_BARS = " ▁▂▃▄▅▆▇█"
_COLORS = ("green", "yellow")


def screen(sides: Sides, columns: int) -> RenderableType:
    """Return all of a scene up to now, as wide as a terminal with so many columns."""
    scene, wide = sides[0].scene, columns - _FRAME - _NAMES - _GAP
    each = (wide - _GAP) // 2
    begun = [scene.number(tick * scene.tick_seconds) for tick in range(len(sides[0].sizes))]
    most = max(4, *sides[0].sizes, *sides[1].sizes)
    curves, words, rows = Table.grid(padding=(0, _GAP, 0, 0)), Table.grid(), Table.grid()
    for width in (_NAMES, each, each):
        curves.add_column(no_wrap=True, width=width)
    names = [*map(Text, scene.names, _COLORS)]
    curves.add_row("", *names)
    curves.add_row(scene.cause, *[Text(f"{begun[-1]:g} {scene.unit}", "bold")] * 2)
    curves.add_row("", *[area(begun, scene.ticks, each, max(scene.numbers.values()), 2)] * 2)
    curves.add_row("replicas", *(Text(str(side.replicas), "bold") for side in sides))
    drawn = (area(side.sizes, scene.ticks, each, most, 4) for side in sides)
    curves.add_row("", *map(Text, drawn, _COLORS))
    words.add_column(width=_NAMES + _GAP)
    words.add_column(no_wrap=True, width=wide)
    for name, side in zip(names, sides, strict=True):
        words.add_row(name, Text(side.arithmetic))
    words.add_row("its reason", Text(_wrapped(sides[0].reason, wide, 3)))
    for row in (_wrapped(scene.headline, columns - _FRAME, 2), curves, words):
        rows.add_row(row)
    title = Text(f"{heading(scene)}, {_clock(sides[0].seconds)}")
    return Panel(rows, title=title, title_align="left", width=columns)


def heading(scene: DemoScene) -> str:
    return f"keda-gpu-scaler demo, {SCENES.index(scene) + 1} of {len(SCENES)}"


def _clock(seconds: float) -> str:
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"


def area(values: Sequence[float], ticks: int, columns: int, top: float, lines: int) -> str:
    """Draw the numbers of the ticks up to now as bars between 0 and `top`, so many lines high.

    The columns are for all `ticks`; one of several ticks shows the highest.
    """
    full = len(_BARS) - 1
    eighths = []
    for column in range(columns):
        begin = column * ticks // columns
        known = values[begin : max(begin + 1, (column + 1) * ticks // columns)]
        eighths.append(round(max(known, default=0) / top * lines * full))
    return "\n".join(
        "".join(_BARS[min(full, max(0, height - full * below))] for height in eighths)
        for below in reversed(range(lines))
    )


def _wrapped(sentence: str, columns: int, lines: int) -> str:
    """Return a sentence in exactly so many lines, so that the screen keeps its height."""
    wrapped = textwrap.wrap(sentence, columns, max_lines=lines, placeholder=" …")
    return "\n".join([*wrapped, *[""] * (lines - len(wrapped))])


@contextlib.contextmanager
def opened(console: Console, scene: DemoScene) -> Iterator[Callable[[Sides], None]]:
    """Yield a function that shows a scene on this console: without a terminal, what is new."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda sides: live.update(screen(sides, console.width), refresh=True)
        return
    shown = dict[str, object]()

    def print_line(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False, highlight=False)

    def print_news(sides: Sides) -> None:
        seconds = sides[0].seconds
        begun = f"{scene.number(seconds):g} {scene.unit}"
        lines: list[tuple[str, object, str]] = [(scene.cause, begun, begun)]
        for name, side in zip(scene.names, sides, strict=True):
            line = f"{side.replicas:>2}  {side.arithmetic}".rstrip()
            lines.append((name, (side.replicas, side.seen > 0), line))
        for name, news, line in lines:
            if shown.get(name) != news:
                shown[name] = news
                print_line(f"{_clock(seconds):>6}  {name:{_NAMES}}  {line}")

    print_line(f"{heading(scene)}: {scene.headline}")
    yield print_news
