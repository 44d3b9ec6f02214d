"""GetMetrics of the scaler next to a server that does nothing, asked by the same client in turns.

The scaler is asked in two ways. About 100 triggers, as many as a cluster with GPUs may have: at the
rate that is measured here each is asked again within a second, and gets the decision of the same
poll. And about so many that none is asked twice within a step: there each answer is a new decision,
from another snapshot, as for KEDA, which asks less often. Those triggers are in several parts, of
which each turn takes another one, so that none has to wait for its step to be over.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import grpc

from benchmarks import asking, ghz, processes, schedule, world
from benchmarks.comparison import Detail, Goal, Measured, Plan, Row
from benchmarks.ghz import Run, Trust
from benchmarks.processes import Server
from benchmarks.world import Trigger
from tests.support.prometheus import PrometheusServer

WORKLOADS = 100
COPIES = 60
"""6,000 triggers, of which the scaler keeps 8,192 parsed."""
PARTS = 3
REQUESTS = WORKLOADS * COPIES // PARTS
"""Of one turn: with more, a trigger would be asked twice."""
AHEAD_SECONDS = 480.0
"""Longer than all rounds take."""
ECHO = "echo"
WARM = f"{WORKLOADS} triggers"
ANEW = "a new decision each"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn measured."""

    run: Run
    cpu_seconds: float
    """CPU time of the server."""

    @property
    def cpu_ms(self) -> float:
        """CPU time of one call, in milliseconds."""
        return 1000 * self.cpu_seconds / self.run.requests


Turns = dict[str, list[Turn]]


@dataclass(frozen=True, slots=True)
class Contender:
    """A server and what it is asked."""

    server: Server
    calls: Sequence[Path]
    """The requests of one turn, of the next one, and so on around."""
    requests: int = REQUESTS
    rest_seconds: float = 0.0
    """From the end of a turn to the next one with the same requests."""
    trust: Trust | None = None
    """None: in plaintext."""


async def measure(directory: Path, plan: Plan) -> Measured:
    """Compare both ways to ask the scaler with the echo server."""
    async with PrometheusServer(directory) as prometheus:
        await world.fill(prometheus, WORKLOADS, AHEAD_SECONDS)
        async with _contenders(directory, prometheus.url) as contenders:
            found = await warm_turns(contenders, plan.rounds)
    raw = {name: [asdict(one) for one in turns] for name, turns in found.items()}
    return Measured(rows(found), [detail(found)], raw)


def rows(turns: Turns) -> list[Row]:
    """Return how each way to ask the scaler compares with the echo server."""
    limits = {WARM: ("warm", 0.85, 1.3), ANEW: ("anew", 0.70, 1.6)}
    return [
        row
        for name, (key, rate, p99) in limits.items()
        for row in _rows(key, f"GetMetrics, saturated, {name}", turns[name], turns[ECHO], rate, p99)
    ]


def _rows(  # noqa: PLR0913, PLR0917 - one line of a table
    key: str, name: str, turns: list[Turn], echoed: list[Turn], rate: float, p99: float
) -> Sequence[Row]:
    return (
        Row(
            key=f"throughput.rate-{key}",
            name=f"{name}: rate",
            unit="requests per second",
            measured=[one.run.requests_per_second for one in turns],
            reference_name="echo server",
            reference=[one.run.requests_per_second for one in echoed],
            goal=Goal.RATIO_AT_LEAST,
            limit=rate,
        ),
        Row(
            key=f"throughput.p99-{key}",
            name=f"{name}: p99",
            unit="ms",
            measured=[1000 * one.run.p99_seconds for one in turns],
            reference_name="echo server",
            reference=[1000 * one.run.p99_seconds for one in echoed],
            goal=Goal.RATIO_AT_MOST,
            limit=p99,
        ),
        Row(
            key=f"throughput.cpu-{key}",
            name=f"{name}: CPU time of a call",
            unit="ms",
            measured=[one.cpu_ms for one in turns],
            reference_name="echo server",
            reference=[one.cpu_ms for one in echoed],
        ),
    )


@asynccontextmanager
async def _contenders(directory: Path, url: str) -> AsyncIterator[dict[str, Contender]]:
    """Start the servers; when the turns are over, every answer must still be right."""
    warm = _calls(directory, "warm", world.triggers(WORKLOADS))
    new = world.triggers(WORKLOADS, 1 + COPIES)[WORKLOADS:]  # none of those above
    parts = [new[number * REQUESTS :][:REQUESTS] for number in range(PARTS)]
    anew = [_calls(directory, f"anew-{number}", part) for number, part in enumerate(parts)]
    async with processes.echo() as echo, processes.scaler(url) as scaler:
        found = {
            ECHO: Contender(echo, [warm]),
            WARM: Contender(scaler, [warm]),
            ANEW: Contender(scaler, anew, rest_seconds=schedule.STEP_SECONDS),
        }
        await check(found[ANEW])
        yield found
        await check(found[ANEW])


def _calls(directory: Path, name: str, asked: Sequence[Trigger]) -> Path:
    path = directory / f"{name}.json"
    ghz.write_calls(path, asked)
    return path


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
        return grpc.aio.insecure_channel(contender.server.address)
    return grpc.aio.secure_channel(contender.server.address, contender.trust.credentials)


async def warm_turns(contenders: Mapping[str, Contender], rounds: int) -> Turns:
    """Let each have its turn in every round, and as many before as it has requests.

    Those do not count: connections and memories fill in them.
    """
    before = max(len(one.calls) for one in contenders.values())
    turns: Turns = {name: [] for name in contenders}
    rested_at: dict[Path, float] = {}
    clock = asyncio.get_running_loop().time
    for number in range(before + rounds):
        for name, one in contenders.items():
            calls = one.calls[number % len(one.calls)]
            await asyncio.sleep(rested_at.get(calls, 0.0) - clock())
            turns[name].append(await _turn(one, calls))
            rested_at[calls] = clock() + one.rest_seconds
    return {name: found[before:] for name, found in turns.items()}


async def _turn(one: Contender, calls: Path) -> Turn:
    before = one.server.cpu_seconds()
    run = await ghz.run(one.server.address, calls, one.requests, one.trust)
    return Turn(run, one.server.cpu_seconds() - before)


def detail(turns: Turns) -> Detail:
    """Return what each server reached, the medians of the turns."""
    head = ["GetMetrics, saturated", "requests per second", "p99, ms", "CPU ms of a call"]
    cells = [
        [
            {ECHO: "echo server", WARM: f"scaler, {WARM}", ANEW: f"scaler, {ANEW}"}[name],
            f"{median(one.run.requests_per_second for one in found):,.0f}",
            f"{1000 * median(one.run.p99_seconds for one in found):.1f}",
            f"{median(one.cpu_ms for one in found):.2f}",
        ]
        for name, found in turns.items()
    ]
    return Detail("throughput", "GetMetrics, saturated", head, cells)
