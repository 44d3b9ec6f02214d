"""`keda-gpu-scaler demo`: from zero to several replicas and back, on one machine."""

import asyncio
import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
import typer
from rich.console import Console

from keda_gpu_scaler import app, settings
from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.settings.loading import PREFIX
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.telemetry import logs
from keda_gpu_scaler.workbench.demo import driver, scenario, screen
from keda_gpu_scaler.workbench.world import cluster, web

_HOST = "127.0.0.1"
_HTTP_SECONDS = 5
_NO_PROXY = [("grpc.enable_http_proxy", 0)]
_NEXT = """\
Next, in a cluster without a GPU: docs/quickstart.md.
There, `keda-gpu-scaler explain NAMESPACE/NAME` shows every pod behind a decision."""


def demo() -> None:
    """Scale a simulated GPU workload from 0 to 7 replicas and back to 0, in about a minute.

    It needs no cluster and no GPU: the GPUs, KEDA and the HPA are simulated, and the scaler with
    its gRPC port is real. For comparison, two queries of KEDA's prometheus trigger scale the same
    workload on the same load: sum() and avg(), both with AverageValue.
    """
    # All connections are to this machine, which no proxy can reach.
    os.environ["no_proxy"] = "*"
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        # Lines of the log would disturb the screen; an error that ends the scaler is reported.
        log = logs.configure(logs.LogLevel.ERROR, logs.LogFormat.JSON, nowhere)
        try:
            with screen.open_screen(Console()) as show:
                story = asyncio.run(_play(show))
        except scenario.DemoError as error:
            raise flags.failure(f"demo failed: {error}") from error
        except asyncio.CancelledError as end:
            raise typer.Exit from end
        finally:
            log.finish(seconds=1)
    typer.echo("\n".join([*textwrap.wrap(story, screen.WIDTH), _NEXT]))


async def _play(show: Callable[[driver.Frame], None]) -> str:
    flags.cancel_at_sigterm()
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    simulated = cluster.MadeUp()
    exporter = web.server(web.application(simulated, loop.time))
    port = await exporter.start()
    listening: asyncio.Future[app.Listening] = loop.create_future()
    # The environment's settings do not count.
    chosen = {
        "SCRAPE_TARGETS": f"http://{_HOST}:{port}/metrics",
        "SCRAPE_INTERVAL": durations.text(scenario.SYNC_SECONDS),
        "SCRAPE_COLLECTION": "0s",
        "GRPC_ADDRESS": f"{_HOST}:0",
        "HTTP_ADDRESS": f"{_HOST}:0",
    }
    process_settings = settings.load({PREFIX + name: value for name, value in chosen.items()})
    scaler = asyncio.create_task(app.run(process_settings, stop, listening.set_result))
    playing = asyncio.create_task(_drive(simulated, listening, show))
    try:
        await asyncio.wait({playing, scaler}, return_when=asyncio.FIRST_COMPLETED)
        if scaler.done():
            error = scaler.exception()
            cause = f": {error.__cause__}" if error and error.__cause__ else ""
            raise scenario.DemoError(f"the scaler ended early: {error}{cause}")
        return playing.result()
    finally:
        playing.cancel()
        stop.set()
        await exporter.stop()
        await asyncio.gather(playing, scaler, return_exceptions=True)


async def _drive(
    simulated: cluster.MadeUp,
    listening: asyncio.Future[app.Listening],
    show: Callable[[driver.Frame], None],
) -> str:
    ports = await listening
    async with (
        grpc.aio.insecure_channel(f"{_HOST}:{ports.grpc_port}", _NO_PROXY) as channel,
        httpx.AsyncClient(
            base_url=f"http://{_HOST}:{ports.http_port}", timeout=_HTTP_SECONDS, trust_env=False
        ) as client,
    ):
        scaler = driver.ScalerClient(channel, client)
        played = driver.Driver(simulated=simulated, ask=scaler.ask, show=show)
        await played.prepare()
        return await played.run()
