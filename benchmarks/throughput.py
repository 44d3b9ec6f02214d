"""GetMetrics of the scaler next to a server that does nothing, asked by the same client in turns.

The scaler is asked in two ways. About 100 triggers, as many as a cluster with GPUs may have: at the
rate that is measured here each is asked again within a second, and gets the decision of the same
poll. And about so many that each answer is decided anew, as it is for KEDA, which asks less often.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from benchmarks import asking, ghz, processes, world
from benchmarks.comparison import Ratio, ratio
from benchmarks.ghz import Run
from benchmarks.world import Trigger
from tests.prometheus import PrometheusServer

WORKLOADS = 100
COPIES = 60
"""6,000 triggers: no server here answers as many in the second that a decision is remembered, and
the scaler keeps 8,192 of them parsed."""
AHEAD_SECONDS = 300.0
"""Longer than all rounds take."""
ECHO = "echo"
ASKED = {
    f"{WORKLOADS} triggers": world.triggers(WORKLOADS),
    "each decided anew": world.triggers(WORKLOADS, COPIES),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One way to ask the scaler, next to the echo server."""

    requests_per_second: Ratio
    p99: Ratio


@dataclass(frozen=True, slots=True)
class Contender:
    """A server and what it is asked."""

    address: str
    calls: Path
    requests: int


async def measure(directory: Path, rounds: int, requests: int) -> dict[str, list[Run]]:
    """Return one run per contender and round, the echo server's first.

    Args:
        directory: for the data of a Prometheus and the requests of the client.
        rounds: how often each has its turn.
        requests: how many requests one turn has.
    """
    async with PrometheusServer(directory) as prometheus:
        await world.fill(prometheus, WORKLOADS, AHEAD_SECONDS)
        async with _contenders(directory, prometheus.url, requests) as contenders:
            await _turns(contenders, 1)  # not measured: connections and memories fill
            return await _turns(contenders, rounds)


def compare(runs: Mapping[str, Sequence[Run]]) -> dict[str, Compared]:
    """Return how each way to ask the scaler compares with the echo server."""
    echoed = runs[ECHO]
    return {name: _compared(found, echoed) for name, found in runs.items() if name != ECHO}


def _compared(runs: Sequence[Run], echoed: Sequence[Run]) -> Compared:
    rates = [[run.requests_per_second for run in one] for one in (runs, echoed)]
    slowest = [[run.p99_seconds for run in one] for one in (runs, echoed)]
    return Compared(ratio(*rates), ratio(*slowest))


@asynccontextmanager
async def _contenders(
    directory: Path, url: str, requests: int
) -> AsyncIterator[dict[str, Contender]]:
    """Start the servers; when the turns are over, every answer must still be right."""
    async with processes.echo() as echo, processes.scaler(url) as scaler:
        contenders = {ECHO: echo.address} | dict.fromkeys(ASKED, scaler.address)
        await _check(scaler.address)
        yield {
            name: Contender(address, _calls(directory, name), requests)
            for name, address in contenders.items()
        }
        await _check(scaler.address)


def _calls(directory: Path, name: str) -> Path:
    asked: Sequence[Trigger] = ASKED.get(name, world.triggers(WORKLOADS))
    path = directory / f"{name.replace(' ', '-')}.json"
    ghz.write_calls(path, asked)
    return path


async def _check(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        client = asking.Client(channel)
        for trigger in world.triggers(WORKLOADS):
            await client.poll(trigger)


async def _turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, one in contenders.items():
            runs[name].append(await ghz.run(one.address, one.calls, one.requests))
    return runs
