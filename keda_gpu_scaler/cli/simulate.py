"""`keda-gpu-scaler simulate`: a dcgm-exporter look-alike whose load can be changed over HTTP."""

import asyncio
import re
import signal
import socket
import time
from typing import Annotated

import typer

from keda_gpu_scaler.simulator import changes, cluster, exposition, server, web

_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})")
_HIGHEST_PORT = 65535


def simulate(  # noqa: PLR0913 - each argument is one flag of the command line
    *,
    address: Annotated[
        str, typer.Option(help="HOST:PORT to listen on; port 0 takes a free one.")
    ] = "127.0.0.1:9400",
    workload: Annotated[
        list[str] | None,
        typer.Option(help="namespace/name=replicas:load[:gpus]; load in percent of one GPU."),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, max=1000, help="How many nodes have GPUs.")] = 1,
    idle_gpus: Annotated[
        int, typer.Option(min=0, max=64, help="GPUs on each node before any pod comes.")
    ] = 1,
    mig: Annotated[
        str | None, typer.Option(help="MIG profile of the workloads' devices, such as 1g.10gb.")
    ] = None,
    startup: Annotated[float, typer.Option(min=0, help="Seconds until a new pod takes load.")] = 0,
    loading_percent: Annotated[
        float, typer.Option(min=0, max=100, help="What a GPU shows until its pod takes load.")
    ] = 0,
    mig_shows_zero: Annotated[
        bool, typer.Option("--mig-shows-zero", help="Show DCGM_FI_DEV_GPU_UTIL 0 on MIG devices.")
    ] = False,
    engine_active: Annotated[
        bool, typer.Option(help="Show DCGM_FI_PROF_* for whole GPUs too.")
    ] = True,
) -> None:
    """Show made-up GPUs as dcgm-exporter does, without a GPU.

    GET /metrics shows all nodes, GET /nodes/0/metrics one of them, GET /workloads what runs.
    PUT /workloads/NAMESPACE/NAME with {"load": 250} or {"replicas": 3} changes it, DELETE ends it.
    """
    simulated = cluster.Cluster(nodes, idle_gpus)
    try:
        template = changes.checked(
            cluster.Wanted(), mig=mig, startup_seconds=startup, loading_percent=loading_percent
        )
        for text in workload or []:
            simulated.put(*changes.from_text(text, template), time.monotonic())
        listener = _bind(address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    style = exposition.Style(engine_active=engine_active, mig_shows_zero=mig_shows_zero)
    asyncio.run(_run(web.Api(simulated, style, time.monotonic), listener))


def _bind(address: str) -> socket.socket:
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > _HIGHEST_PORT:
        raise ValueError(f"address {address!r} is not HOST:PORT")
    try:
        return server.bind(found["ipv6"] or found["host"], int(found["port"]))
    except OSError as error:
        raise ValueError(f"cannot listen on {address}: {error}") from error


async def _run(api: web.Api, listener: socket.socket) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    typer.echo(f"listening on {_url(listener)}")
    await server.serve(web.application(api), listener, stop)


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
