"""`keda-gpu-scaler serve`: the scaler itself, for KEDA to call."""

import asyncio
import os
import signal
import types

import typer

from keda_gpu_scaler.cli import lean

with lean.without("rich", "pygments"):
    from keda_gpu_scaler import app, errors, settings
    from keda_gpu_scaler.telemetry import logs

_WRONG_SETTINGS = 2
_FAILED = 1


def serve() -> None:
    """Answer KEDA over gRPC until SIGTERM or SIGINT; a second signal ends at once.

    Settings come from KEDA_GPU_SCALER_… variables and the YAML file that KEDA_GPU_SCALER_CONFIG
    names. Exit status: 0 after a signal, 1 when a port or the cluster cannot be had or a part
    fails, 2 for a wrong setting, before a port opens.
    """
    try:
        chosen = settings.load()
    except errors.SettingsError as error:
        raise _end(error, _WRONG_SETTINGS) from error
    logs.configure(chosen.log_level, chosen.log_format)
    try:
        asyncio.run(_serve(chosen))
    except errors.SettingsError as error:
        raise _end(error, _FAILED) from error


def _end(error: Exception, status: int) -> typer.Exit:
    typer.echo(f"keda-gpu-scaler: {error}", err=True)
    return typer.Exit(status)


async def _serve(chosen: settings.Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, stop)
    await app.run(chosen, stop)


def _stop(stop: asyncio.Event) -> None:
    stop.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Not through the event loop, because it may hang.
        signal.signal(number, _end_at_once)


def _end_at_once(number: int, _frame: types.FrameType | None) -> None:
    os._exit(128 + number)
