"""The commands by name: what each is for, its help in people's words, and hints for typing errors.

A command's module is loaded when more is asked for than its name and its summary: `--help` of all
commands and the completion of their names load none of them.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "serve": "Answer KEDA over gRPC until a signal ends it.",
    "observe": "Decide ScaledObjects of files, and scale nothing.",
    "check": "Find what is wrong with ScaledObjects before they are applied.",
    "probe": "Ask a scaler for a trigger's metrics and values, as KEDA does.",
    "explain": "Show what is decided of a ScaledObject, and why.",
    "simulate": "Show simulated GPUs as dcgm-exporter does, without a GPU.",
    "demo": "Scale a simulated GPU workload from 0 to 7 replicas and back.",
}
"""What the list of commands says of each; 64 characters fit on a line of 80."""
_OF_THE_MODULE = ("callback", "help", "params")


class Command(TyperCommand):
    """A command; its module and its function have the same name."""

    def __init__(self, name: str) -> None:
        """Know what does not take loading the module."""
        super().__init__(name, short_help=COMMANDS[name], rich_markup_mode=None)
        self._module_name = f"keda_gpu_scaler.cli.{name}"
        for attribute in _OF_THE_MODULE:
            delattr(self, attribute)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as different as the attributes
        """Load the command: Python asks here only for what is not there yet."""
        if name not in _OF_THE_MODULE:
            raise AttributeError(name)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command()(_with_flags(getattr(self._module(), str(self.name))))
        loaded = typer.main.get_command(single)
        for attribute in _OF_THE_MODULE:
            setattr(self, attribute, getattr(loaded, attribute))
        return getattr(self, name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - private to Typer
        """Read the arguments; a command can say more about an option that it does not have."""
        with _unknown_options(ctx, getattr(self._module(), "unknown_option", None)):
            return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - private to Typer
        """Return the usage without the braces in which Typer puts what is required."""
        pieces = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                name = str(parameter.metavar)
                piece = name if parameter.required else f"[{name}]"
                pieces.append(piece if parameter.nargs == 1 else f"{piece}...")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - private to Typer
        """Write what each argument and option is for, without the names of Python's types."""
        arguments, options = [], []
        for parameter in self.get_params(ctx):
            name, text = parameter.get_help_record(ctx) or ("", "")
            if parameter.param_type_name == "argument":
                arguments.append((str(parameter.metavar), text))
            else:
                options.append((name, text))
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _module(self) -> ModuleType:
        return importlib.import_module(self._module_name)


def _with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with a flag for each field, if it takes a dataclass of options."""
    parameters = inspect.signature(command).parameters.values()
    options: Any = next((parameter.annotation for parameter in parameters), None)
    if not (isinstance(options, type) and dataclasses.is_dataclass(options)):
        return command

    @functools.wraps(command)
    def called(**given: object) -> None:
        command(options(**given))

    called.__signature__ = inspect.signature(options)  # type: ignore[attr-defined] # for Typer
    return called


class Group(TyperGroup):
    """All commands."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - Typer's
        """Take what Typer says of the program, and add the commands."""
        super().__init__(**attributes)
        self.commands = {name: Command(name) for name in COMMANDS}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - private to Typer
        """Read what stands before the command."""
        with _unknown_options(ctx):
            return super().parse_args(ctx, args)


@contextlib.contextmanager
def _unknown_options(ctx: Any, hint: Callable[[str], str | None] | None = None) -> Iterator[None]:  # noqa: ANN401 - private to Typer
    """Say of an option that does not exist which was meant."""
    try:
        yield
    except typer.TyperException as error:
        if not hasattr(error, "possibilities"):  # it is about something else
            raise
        name = str(getattr(error, "option_name", ""))
        advice = None if hint is None else hint(name)
        if advice is None and error.possibilities:
            advice = f"Did you mean {' or '.join(map(repr, error.possibilities))}?"
        ctx.fail(error.message if advice is None else f"{error.message}. {advice}")
