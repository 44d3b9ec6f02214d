"""`keda-gpu-scaler demo`: from zero to several replicas and back, on one machine."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import grpc
import httpx
import typer
from rich.console import Console

from keda_gpu_scaler.simulator.demo import answers, children, driver, scenario, screen
from keda_gpu_scaler.spec import durations

_T = TypeVar("_T")
_PREFIX = "KEDA_GPU_SCALER_"
_HTTP_SECONDS = 5
_NO_PROXY = [("grpc.enable_http_proxy", 0)]
"""All connections are to this machine, which no proxy can reach."""


def demo() -> None:
    """Scale a simulated GPU workload from 0 to 7 replicas and back to 0, in about a minute.

    No cluster and no GPU: the GPUs are simulated, KEDA and the HPA are played by their own rules,
    and the gRPC server between them is the real one. Beside it the usual recipe, avg() with
    AverageValue, scales the same workload on the same load.
    """
    _end(*_shown())


def _shown() -> tuple[int, str]:
    with screen.open_screen(Console()) as show:
        return asyncio.run(_played(show))


def _end(status: int, story: str) -> None:
    typer.echo(story, err=status != 0)
    raise typer.Exit(status)


async def _played(show: Callable[[screen.Frame], None]) -> tuple[int, str]:
    """Play the demo; return the exit status and the message to show."""
    task = asyncio.create_task(_play(show), name="demo")
    caught: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _cancel, task, caught, number)
    try:
        return 0, await task
    except scenario.DemoError as error:
        return 1, f"demo failed: {error}"
    except asyncio.CancelledError:
        return 128 + caught[0], "demo stopped"


def _cancel(task: asyncio.Task[str], caught: list[int], number: int) -> None:
    """Cancel the task, which stops its child processes, and remember the signal."""
    caught.append(number)
    task.cancel()


async def _play(show: Callable[[screen.Frame], None]) -> str:
    async with AsyncExitStack() as stack:
        simulator, url = await _simulator(stack)
        server, ports = await _server(stack, url)
        simulated = await _client(stack, url)
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{ports.grpc}", _NO_PROXY)
        played = driver.Driver(
            ours=driver.Scaled(answers.Exporter(simulated, scenario.OURS)),
            usual=driver.Scaled(answers.Exporter(simulated, scenario.USUAL)),
            scaler=answers.Scaler(
                await stack.enter_async_context(channel),
                await _client(stack, f"http://127.0.0.1:{ports.http}"),
            ),
            show=show,
        )
        return await _first(server.follow(_pass_over), simulator.follow(_pass_over), _all(played))


def _pass_over(_line: str) -> None:
    """Do nothing with a line of a child; its last lines are kept anyway."""


async def _all(played: driver.Driver) -> str:
    await played.prepare()
    return await played.run()


async def _client(stack: AsyncExitStack, url: str) -> httpx.AsyncClient:
    client = httpx.AsyncClient(base_url=url, timeout=_HTTP_SECONDS, trust_env=False)
    return await stack.enter_async_context(client)


async def _simulator(stack: AsyncExitStack) -> tuple[children.Child, str]:
    flags = ["--address", "127.0.0.1:0"]
    for workload in (scenario.OURS, scenario.USUAL):
        flags += ["--workload", f"{workload.namespace}/{workload.name}=0:0"]
    child = await _child(stack, "simulate", *flags)
    return child, await child.first(children.simulator_url)


async def _server(stack: AsyncExitStack, url: str) -> tuple[children.Child, children.Ports]:
    child = await _child(
        stack,
        "serve",
        SCRAPE_TARGETS=f"{url}/metrics",
        SCRAPE_INTERVAL=durations.text(scenario.SYNC_SECONDS),
        SCRAPE_COLLECTION="0s",
        GRPC_ADDRESS="127.0.0.1:0",
        HTTP_ADDRESS="127.0.0.1:0",
        LOG_FORMAT="json",
        LOG_LEVEL="info",
    )
    return child, await child.first(children.ports)


async def _child(
    stack: AsyncExitStack, subcommand: str, *flags: str, **settings: str
) -> children.Child:
    command = [sys.executable, "-m", "keda_gpu_scaler", subcommand, *flags]
    environment = _environment(settings)
    return await stack.enter_async_context(children.running(subcommand, command, environment))


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without proxies, and with only these scaler settings."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(_PREFIX) and not key.lower().endswith("_proxy")
    }
    return kept | {_PREFIX + key: value for key, value in settings.items()}


async def _first(*works: Coroutine[Any, Any, _T]) -> _T:
    """Return or raise the result of the coroutine that ends first, and cancel the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task.result() for task in tasks if task.done())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
