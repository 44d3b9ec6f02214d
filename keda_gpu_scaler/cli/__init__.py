"""The command line: one file per command, imported only when that command is run.

Containers start `serve` often and wait for it each time, so it does not load what `demo` needs.
"""

import importlib
import signal
import types
from typing import Annotated, cast

import typer
from typer.core import TyperCommand, TyperGroup

from keda_gpu_scaler import __version__

COMMANDS = ("serve", "check", "probe", "explain", "simulate", "demo")


class _Commands(TyperGroup):
    """Finds each command as the function of the same name in the module of the same name."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - the names are the parent's
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002 - as above
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"keda_gpu_scaler.cli.{cmd_name}")
        single = _typer()
        single.command(cmd_name)(getattr(module, cmd_name))
        return cast("TyperCommand", typer.main.get_command(single))


def _typer(cls: type[TyperGroup] | None = None) -> typer.Typer:
    # Typer's own tracebacks show the values of variables, and settings hold secrets.
    return typer.Typer(
        cls=cls, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )


app = _typer(_Commands)


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
