"""The command line: one file per command, imported only when that command is run.

Containers start `serve` often and wait for it each time, so it does not load what `demo` needs.
`--help` of all commands and the completion of their names load none of them.
"""

import dataclasses
import functools
import importlib
import inspect
import signal
import sys
import types
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from keda_gpu_scaler import __version__

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = {
    "serve": "Run the scaler that KEDA calls, until a signal ends it.",
    "observe": "Evaluate ScaledObjects in files, and scale nothing.",
    "deletion-cost": "Let the least busy pods go first when the HPA scales in.",
    "check": "Find mistakes in ScaledObjects before you apply them.",
    "migrate": "Replace KEDA's prometheus triggers in a file by this scaler's.",
    "probe": "Call a scaler as KEDA does, and show its answers.",
    "explain": "Show the decision for a ScaledObject, and the reason.",
    "survey": "Show what a cluster's GPUs were used for, and what was idle.",
    "backtest": "Choose a threshold: replay recorded load under several of them.",
    "simulate": "Simulate dcgm-exporter without a GPU.",
    "demo": "Play four scenes of this scaler beside recipes of others.",
}
"""What the list of commands says of each; 64 characters fit on a line of 80."""
_PLAIN = frozenset({"serve", "observe", "deletion-cost"})
"""Commands that print only lines of the log."""
_NOT_PLAIN = ("h2", "pygments", "rich")
"""What httpx and structlog load where it is installed, for HTTP/2 and for terminals. It takes 5 MiB
for as long as the process lives."""


def _with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with a flag for each field, if it takes a dataclass of options."""
    parameters = inspect.signature(command).parameters.values()
    options: Any = next((parameter.annotation for parameter in parameters), None)
    if not (isinstance(options, type) and dataclasses.is_dataclass(options)):
        return command

    @functools.wraps(command)
    def called(**flags: object) -> None:
        command(options(**flags))

    called.__signature__ = inspect.signature(options)  # type: ignore[attr-defined] # for Typer
    return called


def _load(name: str) -> Any:  # noqa: ANN401 - private to Typer
    file = name.replace("-", "_")
    absent = [each for each in _NOT_PLAIN if name in _PLAIN and each not in sys.modules]
    sys.modules |= dict.fromkeys(absent)  # type: ignore[arg-type] # as if they were not there
    try:
        module = importlib.import_module(f"keda_gpu_scaler.cli.{file}")
    finally:
        for each in absent:
            del sys.modules[each]
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(_with_flags(getattr(module, file)))
    return typer.main.get_command(single)


class _Group(TyperGroup):
    """The names and summaries of the commands; the one that is meant is loaded."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - Typer's
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, short_help=text) for name, text in COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - private to Typer
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None else _load(str(name)), rest


# Typer's own tracebacks show the values of variables, and settings hold secrets.
app = typer.Typer(
    cls=_Group,
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
    signal.signal(signal.SIGTERM, _leave)
    app()


def _leave(_number: int, _frame: types.FrameType | None) -> None:
    """Exit with 0: nothing has started yet. PID 1 would ignore SIGTERM without a handler."""
    raise SystemExit(0)
