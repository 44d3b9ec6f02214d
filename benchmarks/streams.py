"""What open streams cost: CPU time, and queries that Prometheus counts.

Three servers at the same time, so that they see the same machine: the scaler with many streams of
type external-push open, the scaler with none, and a bare grpc.aio server with as many open. Nothing
happens on the streams while they are measured. Afterwards there is demand for every workload at
zero, and each of their streams has to say so; none of them may have said so before.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from benchmarks import demand, processes, queries, world
from benchmarks.processes import Server, ServerError
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.support.processes import until
from tests.support.prometheus import PrometheusServer

SHARED = "everything"
"""What half of all streams ask about: the demand for it, with the same words."""
OWN_PERCENT = 1
"""The number of workloads with a demandQuery of their own."""
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


@dataclass(frozen=True, slots=True)
class Used:
    """What one server used while nothing happened."""

    seconds: float
    cpu_seconds: float
    queries: int = 0
    """That Prometheus counted."""

    @property
    def percent(self) -> float:
        """CPU time, in percent of one core."""
        return 100 * self.cpu_seconds / self.seconds


@dataclass(frozen=True, slots=True)
class Held:
    """The three servers."""

    streams: int
    scaler: Used
    without: Used
    """The scaler with no stream open."""
    bare: Used


@dataclass(frozen=True, slots=True)
class _Contender:
    """One server, and the Prometheus that it alone asks."""

    server: Server
    prometheus: PrometheusServer | None = None

    async def used(self) -> Used:
        """Return what it has used since the begin of time."""
        asked = 0 if self.prometheus is None else (await queries.read(self.prometheus)).queries
        return Used(time.monotonic(), self.server.cpu_seconds(), asked)


async def measure(
    directory: Path, streams: int, seconds: float, settle_seconds: float = SETTLE_SECONDS
) -> Held:
    """Hold so many streams open for so long."""
    async with _contenders(directory) as contenders:
        scaler, _, bare = contenders
        asked = watched(streams)
        rises_at = time.time() + settle_seconds + seconds
        if scaler.prometheus is not None:
            await _fill(scaler.prometheus, asked, rises_at)
        async with _opened(scaler.server, asked) as opened, _opened(bare.server, asked) as held:
            await asyncio.sleep(rises_at - seconds - time.time())
            before = [await one.used() for one in contenders]
            await asyncio.sleep(rises_at - time.time())
            after = [await one.used() for one in contenders]
            await _answered(opened)
            check(opened, rises_at)
            check_open(held)
    return Held(streams, *map(_between, before, after))


def watched(streams: int) -> list[Watched]:
    """Return the ScaledObjects of the streams."""
    shared = [SHARED] * (streams // 2)
    own = [f"asleep-{number}" for number in range(max(1, streams * OWN_PERCENT // 100))]
    asleep = [_asleep(number, whose) for number, whose in enumerate([*shared, *own])]
    busy = world.triggers(streams - len(asleep))
    return [*asleep, *(Watched(one.reference(), "") for one in busy)]


def check_open(opened: Sequence[Stream]) -> None:
    """Raise ServerError unless all of them are still open."""
    for stream in opened:
        if stream.trouble:
            raise ServerError(f"{stream.watched.reference.name}: {stream.trouble}")


def check(opened: Sequence[Stream], rises_at: float) -> None:
    """Raise ServerError unless busy ones reported once, and the others only after demand."""
    check_open(opened)
    for stream in opened:
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
async def _opened(server: Server, asked: Sequence[Watched]) -> AsyncIterator[list[Stream]]:
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


async def _answered(opened: Sequence[Stream]) -> None:
    async def said() -> bool:
        return all(one.said or one.trouble for one in opened)

    await until(said, ANSWER_SECONDS, "every stream says that its workload is active")


def _between(before: Used, after: Used) -> Used:
    seconds, cpu = after.seconds - before.seconds, after.cpu_seconds - before.cpu_seconds
    return Used(seconds, cpu, after.queries - before.queries)
