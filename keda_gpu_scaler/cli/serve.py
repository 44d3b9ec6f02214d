"""`keda-gpu-scaler serve`: the scaler itself, for KEDA to call."""

import asyncio
import difflib
import os
import signal
import traceback
import types
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from keda_gpu_scaler import app, errors, settings
from keda_gpu_scaler.cli import interpreter
from keda_gpu_scaler.settings.names import PREFIX
from keda_gpu_scaler.telemetry import logs

_WRONG_SETTINGS = 2
_FAILED = 1
_LAST_LINES_SECONDS = 2.0
"""For the last lines of the log, if its reader hangs. Kubernetes allows 30 s for everything, of
which calls usually have 20 s and the last spans 2 s."""
_OPTIONS = ("check_config", "print_config", "output", "help")


class Output(StrEnum):
    """How settings are written."""

    YAML = "yaml"
    JSON = "json"


def unknown_option(option: str) -> str | None:
    """Return what to do in the place of an option; None: another option was meant."""
    name = option.lstrip("-").replace("-", "_").lower()
    keys = {row.key: row.variable for row in settings.describe()}
    key = next(iter(difflib.get_close_matches(name, [*keys, *_OPTIONS], n=1)), "")
    if key in _OPTIONS:
        return None
    if key not in keys:
        return f"Settings are no options: they are {PREFIX}… variables."
    if key == "config":
        return f"Settings are no options: set {keys[key]} to the path of the file."
    return (
        f"Settings are no options: set {keys[key]}, or {key} in the file that {PREFIX}CONFIG names."
    )


def serve(
    *,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Only check the settings; no port opens.")
    ] = False,
    print_config: Annotated[
        bool,
        typer.Option("--print-config", help="Only print the settings in effect; no port opens."),
    ] = False,
    output_format: Annotated[
        Output | None,
        typer.Option(
            "--output",
            "-o",
            metavar="|".join(Output),
            help="With --print-config: how to write them, by default yaml.",
        ),
    ] = None,
) -> None:
    """Answer KEDA over gRPC until SIGTERM or SIGINT; a second signal ends at once.

    SIGHUP ends it as well, and never at once.

    Settings come from KEDA_GPU_SCALER_… variables and the YAML file that KEDA_GPU_SCALER_CONFIG
    names. --print-config writes them as such a file, without secrets.

    Exit status: 0 after a signal, 1 if a port cannot be bound, the cluster cannot be reached or a
    component fails, 2 for a wrong setting, before a port opens.
    """
    if output_format is not None and not print_config:
        raise typer.BadParameter("it goes only with --print-config", param_hint="'--output'")
    if print_config:
        from keda_gpu_scaler.cli import effective  # noqa: PLC0415 - for this flag only

        as_text = effective.as_json if output_format is Output.JSON else effective.as_yaml
        typer.echo(as_text(effective.as_file(_settings())), nl=False)
    elif check_config:
        typer.echo(f"the settings are valid; sources: {', '.join(_settings().sources)}")
    else:
        start()


def start(observed: Path | None = None) -> None:
    """Run the scaler until a signal ends it, and end the process.

    A thread may wait for a name server long after everything else. So neither the loop nor the
    interpreter is closed, which would wait for all threads. With a folder of ScaledObjects to
    observe, it decides those without KEDA, and does not answer KEDA.
    """
    logs.free_error_output()
    chosen = _settings()
    log = logs.configure(chosen.log_level, chosen.log_format)
    interpreter.share()
    status = _FAILED
    try:
        asyncio.Runner().run(_serve(chosen, observed, log.dropped))
        status = 0
    except errors.SettingsError as error:
        _end(error, _FAILED)
    except Exception:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        log.finish(_LAST_LINES_SECONDS)
        os._exit(status)


def _settings() -> settings.Settings:
    try:
        return settings.load()
    except errors.SettingsError as error:
        raise _end(error, _WRONG_SETTINGS) from error


def _end(error: Exception, status: int) -> typer.Exit:
    typer.echo(f"keda-gpu-scaler: {error}", err=True)
    return typer.Exit(status)


async def _serve(
    chosen: settings.Settings, observed: Path | None, lines_dropped: Callable[[], int]
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop.set)
    await app.run(
        chosen, stop, lambda _: interpreter.keep_modules(), lines_dropped, observed=observed
    )


def _stop(stop: asyncio.Event) -> None:
    stop.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Not through the event loop, because it may hang.
        signal.signal(number, _end_at_once)


def _end_at_once(number: int, _frame: types.FrameType | None) -> None:
    os._exit(128 + number)
