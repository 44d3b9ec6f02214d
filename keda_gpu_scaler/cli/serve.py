"""`keda-gpu-scaler serve`: the scaler itself, for KEDA to call."""

import asyncio
import gc
import os
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from keda_gpu_scaler import app, errors, settings
from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.settings.sources import KINDS
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.telemetry import logs

_LAST_LINES_SECONDS = 2.0
"""For the last lines of the log, if its reader hangs. Kubernetes allows 30 s for everything, of
which calls usually have 20 s and the last spans 2 s."""
_SWITCH_SECONDS = 0.0001
"""A call needs the interpreter several times, and each time waits for a thread that computes. The
default of 5 ms makes tens of milliseconds of a call."""
_COLLECTIONS = (1_000, 10, 1_000_000)
"""With the defaults, each snapshot of thousands of pods makes Python look for garbage in everything
that there is, twice, and for a tenth of a second. Young garbage is still looked for often, and in
little at a time: 2 ms for each 10,000 objects, which also frees TLS handshakes that fail at once,
before there are thousands. All that there is is for `free_cycles`."""
_CYCLES_SECONDS = 30.0
"""With 10,000 pods it takes a tenth of a second, in which no call is answered. What fails slowly,
such as a TLS handshake during a fetch, takes its memory for as long."""


def serve(
    *,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Only check the settings; no port opens.")
    ] = False,
    print_config: Annotated[
        bool,
        typer.Option("--print-config", help="Only print the settings in effect; no port opens."),
    ] = False,
) -> None:
    """Run the scaler until SIGTERM or SIGINT.

    A second SIGTERM or SIGINT ends it at once.

    Settings come from KEDA_GPU_SCALER_… variables and from the YAML file in KEDA_GPU_SCALER_CONFIG.
    --print-config writes such a file, without secrets.

    Exit status: 0 after a signal, 1 if a port cannot be bound, the cluster cannot be reached or a
    component fails, 2 for a wrong setting, before a port opens.
    """
    if print_config:
        typer.echo(in_effect(_load_settings()), nl=False)
    elif check_config:
        typer.echo(f"the settings are valid; sources: {', '.join(_load_settings().sources)}")
    else:
        start()


def _load_settings() -> settings.Settings:
    try:
        return settings.load()
    except errors.SettingsError as error:
        raise flags.failure(error, status=2) from error


def in_effect(chosen: settings.Settings) -> str:
    import yaml  # noqa: PLC0415 - for one flag only

    entries = dict(_entries(chosen))
    del entries["config"]  # what it says is among the others
    entries["sources"] = {name: dict(_entries(source)) for name, source in chosen.sources.items()}
    text: str = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)
    return text


def _entries(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """Yield each setting of a model with its value as one writes it; an empty one is not set."""
    # A secret is dumped as asterisks, and a URL without its query.
    dumped = model.model_dump(mode="json")
    for field, described in type(model).model_fields.items():
        name = str(described.validation_alias)
        if name in KINDS:
            continue
        value = dumped[field]
        if value is None:
            value = ""
        elif field.endswith("_seconds"):
            value = durations.text(value)
        yield name, value


def start(asking: app.Asking | None = None) -> None:
    """Run the scaler until a signal ends it, and end the process.

    `asking` is as in `app.run`.

    A thread may wait for a name server long after everything else. So neither the loop nor the
    interpreter is closed, which would wait for all threads.
    """
    logs.free_error_output()
    chosen = _load_settings()
    log = logs.configure(chosen.log_level, chosen.log_format)
    share_interpreter()
    status = 1
    try:
        asyncio.Runner().run(_serve(chosen, asking, log.dropped))
        status = 0
    except errors.SettingsError as error:
        flags.failure(error)
    except Exception:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        log.finish(_LAST_LINES_SECONDS)
        os._exit(status)


def share_interpreter() -> None:
    """Let threads give up the interpreter soon, and let collections of garbage be few.

    What a thread does not give up, the event loop waits for while the thread works on a snapshot of
    many pods, and so do all calls: the interpreter itself, and the whole of a collection.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_COLLECTIONS)


def keep_modules() -> None:
    """Leave what exists now, which are mostly modules, out of all later collections."""
    gc.collect()
    gc.freeze()


async def free_cycles(every_seconds: float = _CYCLES_SECONDS) -> None:
    """Look for garbage in everything that there is, again and again."""
    while True:
        await asyncio.sleep(every_seconds)
        gc.collect()


async def _serve(
    chosen: settings.Settings, asking: app.Asking | None, lines_dropped: Callable[[], int]
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, stop)
    freeing = asyncio.create_task(free_cycles())
    await app.run(chosen, stop, lambda _: keep_modules(), lines_dropped, asking=asking)
    freeing.cancel()


def _stop(stop: asyncio.Event) -> None:
    stop.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Not through the event loop, because it may hang.
        signal.signal(number, _end_at_once)


def _end_at_once(number: int, _frame: types.FrameType | None) -> None:
    os._exit(128 + number)
