"""`keda-gpu-scaler simulate`: a simulated dcgm-exporter with a load that is set over HTTP."""

import asyncio
import contextlib
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated

import typer

from keda_gpu_scaler.cli.mistakes import Mistakes
from keda_gpu_scaler.simulator import changes, cluster, mirror, web

_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})")
_HIGHEST_PORT = 65535
_OF_MADE_UP_PODS = (
    "workload",
    "nodes",
    "idle_gpus",
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
        str,
        typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one."),
    ] = "127.0.0.1:9400",
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORKLOAD",
            help="namespace/name=replicas:load[:gpus]; load in percent of one GPU.",
        ),
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="How many nodes have GPUs.")
    ] = 1,
    idle_gpus: Annotated[
        int,
        typer.Option(min=0, max=64, metavar="N", help="GPUs on each node before any pod comes."),
    ] = 1,
    startup: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long until a new pod takes load.")
    ] = 0,
    loading_percent: Annotated[
        float,
        typer.Option(
            min=0, max=100, metavar="PERCENT", help="What a GPU shows until its pod takes load."
        ),
    ] = 0,
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="Show the pods of a real cluster, not made-up ones."),
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --kubernetes: only pods of this namespace."),
    ] = None,
    node_selector: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="With --kubernetes: only nodes with this label.",
        ),
    ] = None,
) -> None:
    """Show made-up GPUs as dcgm-exporter does, without a GPU.

    GET /metrics shows all nodes, GET /nodes/0/metrics one of them (by its name, too),
    GET /router/metrics the offered load, GET /workloads what runs. With ?exporter=ack-legacy or
    ?exporter=ack-dcgm-custom a page is that of an exporter of Alibaba Cloud's.
    PUT /workloads/NAMESPACE/NAME with {"load": 250} or {"replicas": 3} changes it, DELETE ends it.

    With --kubernetes, nodes and pods are those of the cluster that KUBECONFIG or the service
    account names, looked at once a second; only their load is made up.

    Exit status: 0 after a signal, 1 if there is no cluster to follow or the port cannot be bound, 2
    for a wrong argument.
    """
    wrong = Mistakes()
    for name in _unfitting(context, kubernetes=kubernetes):
        goes = "does not go with" if kubernetes else "goes only with"
        wrong.note(name, f"it {goes} --kubernetes")
    labels: dict[str, str] = {}
    with wrong.of("--node-selector"):
        labels = dict(map(_label, node_selector or []))
    template = cluster.Wanted(startup_seconds=startup, loading_percent=loading_percent)
    made_up = cluster.Cluster(nodes, idle_gpus)
    for text in workload or []:
        with wrong.of("--workload"):
            made_up.put(*changes.from_text(text, template), time.monotonic())
    with wrong.of("--address"):
        where = _where(address)
    wrong.raise_any()
    simulated: cluster.Simulated
    try:
        simulated, running = _mirror(namespace, labels) if kubernetes else (made_up, _at_once)
        listener = _bind(*where)
    except ValueError as error:
        typer.echo(f"keda-gpu-scaler: {error}", err=True)
        raise typer.Exit(1) from error
    asyncio.run(_run(web.Api(simulated, time.monotonic), listener, running))


def _unfitting(context: typer.Context, *, kubernetes: bool) -> Iterator[str]:
    """Yield the flags that would have no effect."""
    for name in _OF_MADE_UP_PODS if kubernetes else _OF_REAL_PODS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            yield f"--{name.replace('_', '-')}"


def _mirror(namespace: str | None, labels: dict[str, str]) -> tuple[mirror.Mirror, _Running]:
    from keda_gpu_scaler.simulator import kubernetes  # noqa: PLC0415 - it loads much that others need not

    shown = mirror.Mirror()
    scope = kubernetes.Scope(namespace, labels)
    return shown, kubernetes.Follower(shown, scope, lambda text: typer.echo(text, err=True)).running


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"{text!r} is not KEY=VALUE")
    return key, value


@contextlib.asynccontextmanager
async def _at_once(ready: Callable[[], None]) -> AsyncIterator[None]:
    ready()
    yield


def _where(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > _HIGHEST_PORT:
        raise ValueError(f"{address!r} is not HOST:PORT")
    return found["ipv6"] or found["host"], int(found["port"])


def _bind(host: str, port: int) -> socket.socket:
    try:
        return web.bind(host, port)
    except OSError as error:
        raise ValueError(f"cannot listen on {_written(host, port)}: {error.strerror}") from error


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
    return f"http://{_written(*listener.getsockname()[:2])}"


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
