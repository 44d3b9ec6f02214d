"""`keda-gpu-scaler simulate`: a simulated dcgm-exporter with a load that is set over HTTP."""

import asyncio
import contextlib
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

import typer

from keda_gpu_scaler.simulator import changes, cluster, exposition, mirror, web

_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})")
_HIGHEST_PORT = 65535
_OF_MADE_UP_PODS = (
    "workload",
    "nodes",
    "idle_gpus",
    "mig",
    "mig_shows_zero",
    "startup",
    "loading_percent",
)
_OF_REAL_PODS = ("namespace", "node_selector")

_Running = Callable[[Callable[[], None]], contextlib.AbstractAsyncContextManager[None]]
"""Runs beside the server; it calls its argument as soon as there is something to show."""


def simulate(  # noqa: PLR0913 - each argument is one flag of the command line
    context: typer.Context,
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
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="Show the pods of a real cluster, not made-up ones."),
    ] = False,
    namespace: Annotated[
        str | None, typer.Option(help="With --kubernetes: only pods of this namespace.")
    ] = None,
    node_selector: Annotated[
        list[str] | None, typer.Option(help="With --kubernetes: only nodes with label KEY=VALUE.")
    ] = None,
) -> None:
    """Show made-up GPUs as dcgm-exporter does, without a GPU.

    GET /metrics shows all nodes, GET /nodes/0/metrics one of them (by its name, too),
    GET /router/metrics the offered load, GET /workloads what runs. With ?exporter=ack-legacy or
    ?exporter=ack-dcgm-custom a page is that of an exporter of Alibaba Cloud's.
    PUT /workloads/NAMESPACE/NAME with {"load": 250} or {"replicas": 3} changes it, DELETE ends it.

    With --kubernetes, nodes and pods are those of the cluster that KUBECONFIG or the service
    account names, looked at once a second; only their load is made up.
    """
    style = exposition.Style(engine_active=engine_active, mig_shows_zero=mig_shows_zero)
    try:
        _require_fitting(context, kubernetes=kubernetes)
        simulated: cluster.Simulated
        if kubernetes:
            simulated, running = _mirror(namespace, node_selector or [])
        else:
            template = changes.checked(
                cluster.Wanted(), mig=mig, startup_seconds=startup, loading_percent=loading_percent
            )
            simulated, running = _cluster(nodes, idle_gpus, workload or [], template), _at_once
        listener = _bind(address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    asyncio.run(_run(web.Api(simulated, style, time.monotonic), listener, running))


def _require_fitting(context: typer.Context, *, kubernetes: bool) -> None:
    """Refuse flags that would have no effect."""
    for name in _OF_MADE_UP_PODS if kubernetes else _OF_REAL_PODS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            goes = "does not go with" if kubernetes else "goes only with"
            raise ValueError(f"--{name.replace('_', '-')} {goes} --kubernetes")


def _cluster(
    nodes: int, idle_gpus: int, texts: list[str], template: cluster.Wanted
) -> cluster.Cluster:
    made_up = cluster.Cluster(nodes, idle_gpus)
    for text in texts:
        made_up.put(*changes.from_text(text, template), time.monotonic())
    return made_up


def _mirror(namespace: str | None, selectors: list[str]) -> tuple[mirror.Mirror, _Running]:
    from keda_gpu_scaler.simulator import kubernetes  # noqa: PLC0415 - it loads much that others need not

    shown = mirror.Mirror()
    scope = kubernetes.Scope(namespace, dict(map(_label, selectors)))
    return shown, kubernetes.Follower(shown, scope, lambda text: typer.echo(text, err=True)).running


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"node selector {text!r} is not KEY=VALUE")
    return key, value


@contextlib.asynccontextmanager
async def _at_once(ready: Callable[[], None]) -> AsyncIterator[None]:
    ready()
    yield


def _bind(address: str) -> socket.socket:
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > _HIGHEST_PORT:
        raise ValueError(f"address {address!r} is not HOST:PORT")
    try:
        return web.bind(found["ipv6"] or found["host"], int(found["port"]))
    except OSError as error:
        raise ValueError(f"cannot listen on {address}: {error}") from error


async def _run(api: web.Api, listener: socket.socket, running: _Running) -> None:
    """Wait until there is something to show, then serve until a signal comes."""
    go, stop = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _set, go, stop)
    async with running(go.set):
        await go.wait()
        if not stop.is_set():
            typer.echo(f"listening on {_url(listener)}")
            await web.serve(web.application(api), listener, stop)


def _set(*events: asyncio.Event) -> None:
    for event in events:
        event.set()


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
