"""GetMetrics of the scaler next to a server that does nothing, asked by the same client in turns.

The scaler is asked in two ways. About 100 triggers, as many as a cluster with GPUs may have: at the
rate that is measured here each is asked again within a second, and gets the decision of the same
poll. And about so many that none is asked twice in a turn, with more than a step between two turns:
there each answer is a new decision, from another snapshot, as for KEDA, which asks less often.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from benchmarks import asking, ghz, processes, world
from benchmarks.comparison import Ratio, ratio
from benchmarks.ghz import Run, Trust
from benchmarks.world import Trigger
from tests.support.prometheus import PrometheusServer

WORKLOADS = 100
COPIES = 60
"""6,000 triggers, of which the scaler keeps 8,192 parsed."""
MOST_REQUESTS = WORKLOADS * COPIES
"""In one turn: with more, a trigger would be asked twice."""
STEP_SECONDS = 15.0
"""The scaler's default: a decision holds for no longer than this."""
AHEAD_SECONDS = 300.0
"""Longer than all rounds take."""
ECHO = "echo"
ANEW = "a new decision each"
ASKED = {
    f"{WORKLOADS} triggers": world.triggers(WORKLOADS),
    # None of those above.
    ANEW: world.triggers(WORKLOADS, 1 + COPIES)[WORKLOADS:],
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
    rest_seconds: float = 0.0
    """From the end of a turn of its own to the next one."""
    trust: Trust | None = None
    """None: in plaintext."""


async def measure(directory: Path, rounds: int, requests: int) -> dict[str, list[Run]]:
    """Return one run per contender and round, the echo server's first.

    Args:
        directory: for the data of a Prometheus and the requests of the client.
        rounds: how often each has its turn.
        requests: how many requests one turn has, at most `MOST_REQUESTS`.
    """
    async with PrometheusServer(directory) as prometheus:
        await world.fill(prometheus, WORKLOADS, AHEAD_SECONDS)
        async with _contenders(directory, prometheus.url, requests) as contenders:
            return await warm_turns(contenders, rounds)


def compare(runs: Mapping[str, Sequence[Run]]) -> dict[str, Compared]:
    """Return how each way to ask the scaler compares with the echo server."""
    echoed = runs[ECHO]
    return {name: compared(found, echoed) for name, found in runs.items() if name != ECHO}


def compared(runs: Sequence[Run], others: Sequence[Run]) -> Compared:
    """Return how runs compare with others, round by round."""
    rates = [[run.requests_per_second for run in one] for one in (runs, others)]
    slowest = [[run.p99_seconds for run in one] for one in (runs, others)]
    return Compared(ratio(*rates), ratio(*slowest))


@asynccontextmanager
async def _contenders(
    directory: Path, url: str, requests: int
) -> AsyncIterator[dict[str, Contender]]:
    """Start the servers; when the turns are over, every answer must still be right."""
    async with processes.echo() as echo, processes.scaler(url) as scaler:
        contenders = {ECHO: echo.address} | dict.fromkeys(ASKED, scaler.address)
        found = {
            name: Contender(address, _calls(directory, name), requests, _rest_seconds(name))
            for name, address in contenders.items()
        }
        await check(found[ANEW])
        yield found
        await check(found[ANEW])


def _calls(directory: Path, name: str) -> Path:
    asked: Sequence[Trigger] = ASKED.get(name, world.triggers(WORKLOADS))
    path = directory / f"{name.replace(' ', '-')}.json"
    ghz.write_calls(path, asked)
    return path


def _rest_seconds(name: str) -> float:
    return STEP_SECONDS if name == ANEW else 0.0


async def check(contender: Contender) -> None:
    """Ask a scaler about every workload.

    Raises:
        processes.ServerError: an answer is not the right one.
    """
    async with _channel(contender) as channel:
        client = asking.Client(channel)
        await client.first(world.Trigger(0))
        for trigger in world.triggers(WORKLOADS):
            await client.poll(trigger)


def _channel(contender: Contender) -> grpc.aio.Channel:
    if contender.trust is None:
        return grpc.aio.insecure_channel(contender.address)
    return grpc.aio.secure_channel(contender.address, contender.trust.credentials)


async def warm_turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[Run]]:
    """Let each have its turn in every round, and in one before, which does not count."""
    runs = await _turns(contenders, 1 + rounds)
    # Connections and memories fill in the first one.
    return {name: found[1:] for name, found in runs.items()}


async def _turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in contenders}
    rested_at = dict.fromkeys(contenders, 0.0)
    clock = asyncio.get_running_loop().time
    for _ in range(rounds):
        for name, one in contenders.items():
            await asyncio.sleep(rested_at[name] - clock())
            runs[name].append(await ghz.run(one.address, one.calls, one.requests, one.trust))
            rested_at[name] = clock() + one.rest_seconds
    return runs
