"""`keda-gpu-scaler serve`: the scaler itself, for KEDA to call."""

import asyncio
import contextlib
import os
import signal
import types
from collections.abc import Callable

import typer

from keda_gpu_scaler.cli import lean

with lean.without("rich", "pygments"):
    from keda_gpu_scaler import app, errors, settings
    from keda_gpu_scaler.telemetry import logs, output

_WRONG_SETTINGS = 2
_FAILED = 1
_LAST_LINES_SECONDS = 2.0
"""For the last lines of the log, if its reader hangs. Kubernetes allows 30 s for everything, of
which calls usually have 20 s and the last spans 2 s."""


def serve() -> None:
    """Answer KEDA over gRPC until SIGTERM or SIGINT; a second signal ends at once.

    SIGHUP ends it as well, and never at once.

    Settings come from KEDA_GPU_SCALER_… variables and the YAML file that KEDA_GPU_SCALER_CONFIG
    names. Exit status: 0 after a signal, 1 when a port or the cluster cannot be had or a part
    fails, 2 for a wrong setting, before a port opens.
    """
    output.free_error_output()
    try:
        chosen = settings.load()
    except errors.SettingsError as error:
        raise _end(error, _WRONG_SETTINGS) from error
    writer = logs.configure(chosen.log_level, chosen.log_format)
    try:
        with contextlib.redirect_stdout(writer):
            asyncio.run(_serve(chosen, writer.dropped))
    except errors.SettingsError as error:
        raise _end(error, _FAILED) from error
    finally:
        writer.finish(_LAST_LINES_SECONDS)


def _end(error: Exception, status: int) -> typer.Exit:
    typer.echo(f"keda-gpu-scaler: {error}", err=True)
    return typer.Exit(status)


async def _serve(chosen: settings.Settings, lines_dropped: Callable[[], int]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop.set)
    await app.run(chosen, stop, lines_dropped=lines_dropped)


def _stop(stop: asyncio.Event) -> None:
    stop.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Not through the event loop, because it may hang.
        signal.signal(number, _end_at_once)


def _end_at_once(number: int, _frame: types.FrameType | None) -> None:
    os._exit(128 + number)
