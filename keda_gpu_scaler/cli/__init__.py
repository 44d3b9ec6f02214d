"""The command line: one file per command, imported only when that command is run.

Containers start `serve` often and wait for it each time, so it does not load what `demo` needs, and
the list of commands loads none of them.
"""

import signal
import types
from typing import Annotated

import typer

from keda_gpu_scaler import __version__
from keda_gpu_scaler.cli import commands
from keda_gpu_scaler.cli.commands import COMMANDS

__all__ = ["COMMANDS", "app", "main"]

# Typer's own tracebacks show the values of variables, and settings hold secrets.
app = typer.Typer(
    cls=commands.Group,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"keda-gpu-scaler {__version__}")
        raise typer.Exit


@app.callback(no_args_is_help=True)
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Scale GPU workloads with KEDA, to and from zero, on the load of exactly their own pods."""


def main() -> None:
    """Run the command in the arguments."""
    signal.signal(signal.SIGTERM, _leave)
    app()


def _leave(_number: int, _frame: types.FrameType | None) -> None:
    """Exit with 0: nothing has started yet. PID 1 would ignore SIGTERM without a handler."""
    raise SystemExit(0)
