"""How long it takes to wake a workload, next to KEDA's own prometheus trigger: `make bench-wake`.

By the real KEDA, API server and Prometheus of `make e2e`, KEDA's triggers and the scaler with their
defaults. The demand is in the Prometheus before it appears: what is measured is when each trigger
asks, and no scrape. A watch of the API server sees when the first replica is wanted.
"""

import asyncio
import contextlib
import functools
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import lightkube
import typer
from lightkube import codecs
from lightkube.resources.apps_v1 import Deployment
from rich.console import Console

from benchmarks import page, processes, results, schedule, waking, world
from benchmarks.__main__ import WIDTH, show
from benchmarks.comparison import Measured
from benchmarks.results import About
from benchmarks.waking import Sleeper, Woken
from testbed import programs
from testbed.cluster import manifests
from testbed.cluster.cluster import Cluster
from testbed.cluster.generation import CLUSTER
from testbed.cluster.resources import ScaledObject
from testbed.cluster.watching import following
from testbed.processes import until
from testbed.prometheus import PrometheusServer

app = typer.Typer(pretty_exceptions_enable=False)

READY_SECONDS = 45.0
"""Until KEDA has seen every ScaledObject, polled it, and opened its stream."""
WAKE_SECONDS = 3 * schedule.POLL_SECONDS
"""Bounds a benchmark in which a workload never wakes."""
KEDA_SECONDS = 300
"""KEDA's default cooldown, and Kubernetes' default for how long a scale-in waits."""


@app.command()
def main(
    *,
    rounds: Annotated[int, typer.Option(min=1, help="Workloads of each kind to wake.")] = 16,
    seconds: Annotated[float, typer.Option(min=1, help="The time to wake them in.")] = 120.0,
    seed: Annotated[int, typer.Option(help="Of the moments when demand appears.")] = 1,
    commit: Annotated[bool, typer.Option(help="Write the figures and their page.")] = False,
) -> None:
    """Measure how long the first replica takes, by KEDA's own trigger and by ours."""
    programs.build(CLUSTER)
    about = About.now()
    moments = waking.moments(rounds, seconds, seed)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        (data := Path(name) / "cluster").mkdir()
        with Cluster.running(data) as cluster:
            found = asyncio.run(measure(cluster.kubeconfig, Path(name), moments))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    measured = {"wake": results.found(about, Measured(details=[found.detail()]))}
    show(measured, console)
    console.print(f"everything measured: {results.write(measured, {})}", soft_wrap=True)
    if commit:
        results.commit(measured)
        page.regenerate()


async def measure(kubeconfig: Path, directory: Path, moments: Sequence[float]) -> Woken:
    """Let demand appear at these moments, in seconds from the begin, and wait until all are awake.

    Args:
        kubeconfig: how to reach a cluster with KEDA.
        directory: for the data of a Prometheus.
        moments: one for each round.

    Raises:
        ServerError: a workload was woken for nothing, or never.
    """
    awake: dict[str, float] = {}
    async with (
        PrometheusServer(directory) as prometheus,
        processes.scaler(directory, prometheus.url) as scaler,
        _namespace(kubeconfig) as client,
        _watching(client, awake),
    ):
        begin = time.time() + READY_SECONDS
        appeared = [begin + moment for moment in moments]
        await _fill(prometheus, appeared)
        for sleeper in waking.sleepers(len(moments)):
            await _put_to_sleep(client, sleeper, sleeper.trigger(prometheus.url, scaler.address))
        await until(functools.partial(_is_ready, client), begin - time.time(), "KEDA is ready")
        await asyncio.sleep(appeared[-1] - time.time())
        await _all_awake(awake, len(waking.Kind) * len(moments))
    return waking.woken(appeared, awake)


@contextlib.asynccontextmanager
async def _namespace(kubeconfig: Path) -> AsyncIterator[lightkube.AsyncClient]:
    configuration = lightkube.KubeConfig.from_file(kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="bench", trust_env=False)
    try:
        await client.create(codecs.from_dict(manifests.namespace(world.NAMESPACE)))
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def _watching(client: lightkube.AsyncClient, awake: dict[str, float]) -> AsyncIterator[None]:
    """Write down when each Deployment wanted a replica for the first time."""

    async def watch() -> None:
        found: Any
        async for _, found in client.watch(Deployment, namespace=world.NAMESPACE):
            if found.spec.replicas:
                awake.setdefault(found.metadata.name, time.time())

    async with following([watch]):
        yield


async def _fill(prometheus: PrometheusServer, appeared: Sequence[float]) -> None:
    """Store the demand of all rounds, and GPUs of another workload: exporters are there."""
    now, end = time.time(), appeared[-1] + WAKE_SECONDS
    await world.fill(prometheus, 1, end - now)
    await prometheus.write(
        waking.rising(sleeper.name, now, appeared[sleeper.number], end)
        for sleeper in waking.sleepers(len(appeared))
    )


async def _all_awake(awake: Mapping[str, float], count: int) -> None:
    """Wait for them, up to a limit: a workload that did not wake is reported later."""

    async def all_awake() -> bool:
        return len(awake) == count

    with contextlib.suppress(TimeoutError):
        await until(all_awake, WAKE_SECONDS, "everybody is awake")


async def _put_to_sleep(
    client: lightkube.AsyncClient, sleeper: Sleeper, trigger: manifests.Manifest
) -> None:
    where = world.NAMESPACE, sleeper.name
    objects = (
        manifests.workload("Deployment", *where, replicas=0, gpus=1, annotations={}),
        manifests.scaled_object(
            *where,
            [trigger],
            min_replicas=0,
            max_replicas=1,
            polling_seconds=int(schedule.POLL_SECONDS),
            cooldown_seconds=KEDA_SECONDS,
            stabilization_seconds=KEDA_SECONDS,
        ),
    )
    for each in objects:
        await client.create(codecs.from_dict(each))


async def _is_ready(client: lightkube.AsyncClient) -> bool:
    """Tell whether KEDA polls every ScaledObject by now."""
    found: list[Any] = [
        scaled_object
        async for scaled_object in client.list(ScaledObject, namespace=world.NAMESPACE)
    ]
    conditions = [(scaled_object.status or {}).get("conditions", ()) for scaled_object in found]
    return all(any(map(_says_ready, each)) for each in conditions)


def _says_ready(condition: Mapping[str, str]) -> bool:
    return condition["type"] == "Ready" and condition["status"] == "True"


if __name__ == "__main__":
    app()
