"""Arguments that several commands have, and the ends of a command that cannot do what they ask."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec.spec import ScaledObject


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:  # noqa: ANN401 - Typer's
    return typer.Option(*names, metavar=metavar, help=text, **more)


def file_option(text: str) -> Any:  # noqa: ANN401 - Typer's
    return option("FILE", text, exists=True, dir_okay=False)


Namespace = Annotated[str, option("NAME", "Namespace of objects without one.")]
Output = Annotated[Literal["text", "json"], option("text|json", "Output format.", "--output", "-o")]


PrometheusUrl = Annotated[str | None, option("URL", "The Prometheus, over that of the settings.")]
Since = Annotated[str, option("DURATION", "How far back to read, such as 36h.")]
CacheFile = Annotated[
    Path | None,
    option("FILE", "Keep what is read; the next run reads only what is missing.", dir_okay=False),
]
Price = Annotated[float | None, option("NUMBER", "Price of a GPU for an hour.", min=0)]


class Pair(NamedTuple):
    """A key with its value."""

    key: str
    value: str


def read_scaled_object(text: str) -> ScaledObject:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise typer.BadParameter(f"{text!r} is not NAMESPACE/NAME")
    return ScaledObject(namespace, name)


def read_pair(text: str) -> Pair:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    return Pair(key, value)


def wrong(name: str, what: object) -> typer.BadParameter:
    """Return what ends a command with 2: the option or argument of this name is wrong."""
    return typer.BadParameter(errors.without_controls(str(what), kept="\n"), param_hint=f"'{name}'")


def failure(message: object, status: int = 1) -> typer.Exit:
    """Say on the standard error output what failed, and return what ends the command."""
    text = errors.without_controls(str(message), kept="\n")
    typer.echo(f"keda-gpu-scaler: {text}", err=True)
    return typer.Exit(status)


def cancel_at_sigterm() -> None:
    """Let SIGTERM cancel the task that calls this; an exit could happen within any other task."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
