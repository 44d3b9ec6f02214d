"""Where frames are shown: a live screen on a terminal, lines of text everywhere else."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live

from keda_gpu_scaler.demo import frames


@contextlib.contextmanager
def opened(console: Console) -> Iterator[Callable[[frames.Frame], None]]:
    """Give a function that shows a frame on this console."""
    if not console.is_terminal:
        yield Lines(console).show
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda frame: live.update(frames.screen(frame), refresh=True)


class Lines:
    """Prints a line for every frame that has news."""

    def __init__(self, console: Console) -> None:
        """Print on this console."""
        self._console = console
        self._news: tuple[str | int, ...] = ()

    def show(self, frame: frames.Frame) -> None:
        """Print the frame, unless it says what the one before said."""
        if frame.news != self._news:
            self._news = frame.news
            self._console.print(frames.line(frame), soft_wrap=True, markup=False, highlight=False)
