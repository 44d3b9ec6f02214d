"""`keda-gpu-scaler simulate`: a simulated dcgm-exporter with a load that is set over HTTP."""

import asyncio
import contextlib
import functools
import time
from typing import Annotated

import typer

from keda_gpu_scaler import errors
from keda_gpu_scaler.cli import flags
from keda_gpu_scaler.cli.flags import Pair, option
from keda_gpu_scaler.settings import Address
from keda_gpu_scaler.settings.values import address as parse_address
from keda_gpu_scaler.workbench.world import web
from keda_gpu_scaler.workbench.world.cluster import Cluster, MadeUp, read_workload


def simulate(
    *,
    address: Annotated[
        str, option("HOST:PORT", "Address to listen on; port 0 takes a free port.")
    ] = "127.0.0.1:9400",
    workload: Annotated[
        list[str] | None,
        option("WORKLOAD", "namespace/name=replicas:load[:gpus]; load in percent of one GPU."),
    ] = None,
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="Show the pods of a real cluster, and no others."),
    ] = False,
    namespace: Annotated[
        str | None, option("NAME", "With --kubernetes: only pods of this namespace.")
    ] = None,
    node_selector: Annotated[
        list[Pair] | None,
        option(
            "KEY=VALUE",
            "With --kubernetes: only nodes with this label.",
            parser=flags.read_pair,
        ),
    ] = None,
) -> None:
    """Simulate dcgm-exporter without a GPU.

    GET /metrics shows the GPUs, GET /router/metrics the offered load, GET /workloads the workloads.
    PUT /workloads/NAMESPACE/NAME with {"load": 250} or {"replicas": 3} changes a workload.

    With --kubernetes, nodes and pods are those of the cluster in KUBECONFIG or of the service
    account, read once a second, and only their load is simulated.

    Exit status: 0 after SIGTERM, 1 if the cluster cannot be read or the port cannot be bound, 2
    for a wrong argument.
    """
    if kubernetes and workload:
        raise flags.wrong("--workload", "not together with --kubernetes")
    for name, value in (("--namespace", namespace), ("--node-selector", node_selector)):
        if value and not kubernetes:
            raise flags.wrong(name, "it needs --kubernetes")
    shown = Cluster() if kubernetes else MadeUp()
    try:
        for text in workload or ():
            shown.put(*read_workload(text), time.monotonic())
    except ValueError as error:
        raise flags.wrong("--workload", error) from error
    try:
        where = parse_address(address)
    except ValueError as error:
        raise flags.wrong("--address", f"{address!r} is not {error}") from error
    following = (namespace, dict(node_selector or ())) if kubernetes else None
    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_run(shown, where, following))
    except errors.SettingsError as error:
        raise flags.failure(error) from error


async def _run(
    shown: Cluster, where: Address, following: tuple[str | None, dict[str, str]] | None
) -> None:
    flags.cancel_at_sigterm()
    listed = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        if following is not None:
            from keda_gpu_scaler.workbench.world import kubernetes  # noqa: PLC0415 - it loads much that others need not

            namespace, labels = following
            followed = kubernetes.following(
                shown,
                listed.set,
                functools.partial(typer.echo, err=True),
                namespace=namespace,
                node_labels=labels,
            )
            await stack.enter_async_context(followed)
            await listed.wait()
        server = web.server(web.application(shown, time.monotonic), *where)
        port = await server.start()
        stack.push_async_callback(server.stop)
        typer.echo(f"listening on http://{where._replace(port=port)}")
        await server.serving
