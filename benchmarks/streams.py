"""What open streams cost: CPU time, and queries that Prometheus counts.

Three servers at the same time, so that they see the same machine: the scaler with many streams of
type external-push open, the scaler with none, and a bare grpc.aio server with as many open. Nothing
happens on the streams while they are measured. Afterwards there is demand for every workload at
zero, and each of their streams has to say so; none of them may have said so before.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import grpc

from benchmarks import demand, processes, queries, schedule, world
from benchmarks.comparison import Detail, Goal, Measured, Plan, Row
from benchmarks.processes import Server, ServerError
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.support.processes import until
from tests.support.prometheus import PrometheusServer

SHARED = "everything"
"""What half of all streams ask about: the demand for it, with the same words."""
OWN_PERCENT = 1
"""The number of workloads with a demandQuery of their own."""
STREAMS = 1000
ROUNDS = 5
ROUND_SECONDS = schedule.STEP_SECONDS
SETTLE_SECONDS = 30.0
"""Two steps: first-time queries are sent before the measurement."""
ANSWER_SECONDS = 60.0
"""Bounds a benchmark whose scaler never says that there is demand."""


class Watched(NamedTuple):
    """One ScaledObject whose activity is pushed."""

    reference: pb.ScaledObjectRef
    demanded: str
    """The workload without pods that demandQuery is for; empty: busy GPUs, no demandQuery."""


@dataclass(slots=True)
class Stream:
    """One open stream, and when it reported its workload as active."""

    watched: Watched
    said: list[float] = field(default_factory=list)
    trouble: str = ""
    """Why it failed; nothing while it is open."""

    async def read(self, stub: Any) -> None:  # noqa: ANN401 - generated code has no types
        """Write down what is pushed, until the stream ends."""
        try:
            async for response in stub.StreamIsActive(self.watched.reference):
                if not response.result:
                    self.trouble = "it was told `false`"
                    return
                self.said.append(time.time())
            self.trouble = "its stream ended"
        except grpc.aio.AioRpcError as error:
            self.trouble = f"its stream failed: {error.details()}"


class Used(NamedTuple):
    """What one server used, or uses until a moment."""

    cpu_seconds: float
    queries: int = 0
    """That Prometheus counted."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the three servers used in each round."""

    streams: int
    scaler: list[Used]
    without: list[Used]
    """The scaler with no stream open."""
    bare: list[Used]


@dataclass(frozen=True, slots=True)
class _Contender:
    """One server, and the Prometheus that it alone asks."""

    server: Server
    prometheus: PrometheusServer | None = None

    async def used(self) -> Used:
        """Return what it has used since the begin of time."""
        asked = 0 if self.prometheus is None else (await queries.read(self.prometheus)).queries
        return Used(self.server.cpu_seconds(), asked)


async def measure(directory: Path, plan: Plan) -> Measured:
    """Hold many streams open."""
    held = await hold(directory, STREAMS, min(plan.rounds, ROUNDS))
    return Measured([row(held)], [detail(held)], {"streams": asdict(held)})


async def hold(
    directory: Path, streams: int, rounds: int, settle_seconds: float = SETTLE_SECONDS
) -> Held:
    """Hold so many streams open for so many rounds."""
    async with _contenders(directory) as contenders:
        scaler, _, bare = contenders
        asked = watched(streams)
        begins_at = time.time() + settle_seconds
        begins_at += schedule.seconds_until_between(begins_at)
        rises_at = begins_at + rounds * ROUND_SECONDS
        if scaler.prometheus is not None:
            await _fill(scaler.prometheus, asked, rises_at)
        async with (
            opened(scaler.server, asked) as asked_for,
            opened(bare.server, asked) as held,
        ):
            readings = []
            for number in range(rounds + 1):
                await asyncio.sleep(begins_at + number * ROUND_SECONDS - time.time())
                readings.append([await one.used() for one in contenders])
            await _answered(asked_for)
            check(asked_for, rises_at)
            check_open(held)
    return Held(streams, *map(between, zip(*readings, strict=True)))


def row(held: Held) -> Row:
    """Return the CPU time of open streams, which has a limit of its own."""
    return Row(
        key="streams.cpu",
        name=f"{held.streams:,} open streams of `external-push`",
        unit="% of a core",
        measured=percents(held.scaler),
        reference_name="bare server with as many",
        reference=percents(held.bare),
        goal=Goal.FIGURE_AT_MOST,
        limit=1.0,
    )


def detail(held: Held) -> Detail:
    """Return what each of the three servers used."""
    head = ["server", "percent of one core", "queries a minute"]
    cells = []
    for name, used in (
        (f"the scaler, {held.streams:,} streams", held.scaler),
        ("the scaler, no stream", held.without),
        (f"a bare server, {held.streams:,} streams", held.bare),
    ):
        asked = 60 * sum(one.queries for one in used) / (len(used) * ROUND_SECONDS)
        cells.append([name, f"{median(percents(used)):.2f}", f"{asked:.0f}"])
    return Detail("streams", "What open streams cost", head, cells)


def percents(used: Sequence[Used]) -> list[float]:
    """Return the CPU time of each round, in percent of one core."""
    return [100 * one.cpu_seconds / ROUND_SECONDS for one in used]


def between(readings: Sequence[Used]) -> list[Used]:
    """Return what was used from each reading to the next."""
    return [
        Used(after.cpu_seconds - before.cpu_seconds, after.queries - before.queries)
        for before, after in itertools.pairwise(readings)
    ]


def watched(streams: int) -> list[Watched]:
    """Return the ScaledObjects of the streams."""
    shared = [SHARED] * (streams // 2)
    own = [f"asleep-{number}" for number in range(max(1, streams * OWN_PERCENT // 100))]
    asleep = [_asleep(number, whose) for number, whose in enumerate([*shared, *own])]
    busy = world.triggers(streams - len(asleep))
    return [*asleep, *(Watched(one.reference(), "") for one in busy)]


def check_open(held: Sequence[Stream]) -> None:
    """Raise ServerError unless all of them are still open."""
    for stream in held:
        if stream.trouble:
            raise ServerError(f"{stream.watched.reference.name}: {stream.trouble}")


def check(held: Sequence[Stream], rises_at: float) -> None:
    """Raise ServerError unless busy ones reported once, and the others only after demand."""
    check_open(held)
    for stream in held:
        said, name = stream.said, stream.watched.reference.name
        if not stream.watched.demanded and len(said) != 1:
            raise ServerError(f"{name}: {len(said)} pushes about a busy workload, expected 1")
        if stream.watched.demanded and said[0] < rises_at:
            raise ServerError(f"{name}: active {rises_at - said[0]:.1f} s before the demand")


def _asleep(number: int, whose: str) -> Watched:
    metadata = {
        "scalerAddress": "keda-gpu-scaler.keda.svc:6000",
        "workload": f"asleep-{number}",
        "threshold": "70",
        "demandQuery": demand.promql(whose),
    }
    reference = pb.ScaledObjectRef(
        name=f"asleep-{number}", namespace=world.NAMESPACE, scalerMetadata=metadata
    )
    return Watched(reference, whose)


@contextlib.asynccontextmanager
async def _contenders(directory: Path) -> AsyncIterator[tuple[_Contender, _Contender, _Contender]]:
    homes = directory / "asked", directory / "not-asked"
    for home in homes:
        home.mkdir()
    async with (
        PrometheusServer(homes[0]) as asked,
        PrometheusServer(homes[1]) as not_asked,
        processes.scaler(asked.url) as scaler,
        processes.scaler(not_asked.url) as without,
        processes.echo() as bare,
    ):
        yield _Contender(scaler, asked), _Contender(without, not_asked), _Contender(bare)


async def _fill(prometheus: PrometheusServer, asked: Sequence[Watched], rises_at: float) -> None:
    now, end = time.time(), rises_at + ANSWER_SECONDS
    await world.fill(prometheus, sum(not one.demanded for one in asked), end - now)
    whose = {one.demanded for one in asked if one.demanded}
    await prometheus.write(demand.rising(each, now, rises_at, end) for each in whose)


@contextlib.asynccontextmanager
async def opened(server: Server, asked: Sequence[Watched]) -> AsyncIterator[list[Stream]]:
    """Hold the streams open, on one connection as KEDA does."""
    streams = [Stream(one) for one in asked]
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        readings = [asyncio.create_task(one.read(stub)) for one in streams]
        try:
            yield streams
        finally:
            for reading in readings:
                reading.cancel()
            await asyncio.gather(*readings, return_exceptions=True)


async def _answered(held: Sequence[Stream]) -> None:
    async def said() -> bool:
        return all(one.said or one.trouble for one in held)

    await until(said, ANSWER_SECONDS, "every stream says that its workload is active")
