"""How much Python one call takes that is decided again: functions called, and hashes of a trigger.

A count is the same on every machine and in every run of one version of Python, so that it has no
noise, and one round is enough. The real gRPC server answers a client in another thread; what is
counted is every Python function of the scaler and every one that it calls, and each step of a
generator, as a profiler does. The snapshot is there
already: what one fetch costs belongs to all triggers together.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import FrameType

import grpc

import keda_gpu_scaler
from benchmarks import within, world
from benchmarks.comparison import Goal, Measured, Plan, Row
from benchmarks.processes import ServerError
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.telemetry import facts
from tests.support.processes import until
from tests.support.scripted import Clock, ScriptedSource
from tests.support.worlds import STEP, World, WorldPod

WORKLOADS = 12
"""The first one asks for the snapshot, the second is the first to use it; the others count."""
STEPS = 3
"""After the first time, each step is as the one before; the last one counts."""
BEFORE_CALLS, BEFORE_HASHES = 856.0, 13.0
"""What it took in November 2026, before the work on speed, counted in the same way."""
WAIT_SECONDS = 10.0
"""Bounds a benchmark whose snapshot or answer never comes."""
_OURS = str(Path(keda_gpu_scaler.__file__).parent)
_GENERATED = str(Path(pb.__file__).parent)


@dataclass(slots=True)
class Counter:
    """Counts calls of Python functions while ours are on the stack."""

    calls: int = 0
    hashes: int = 0
    """Of specs, which are the largest part of a trigger's key."""
    _depth: int = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take part in `sys.setprofile`."""
        if event == "call":
            name = frame.f_code.co_filename
            if self._depth or (name.startswith(_OURS) and not name.startswith(_GENERATED)):
                self._depth += 1
                self.calls += 1
                self.hashes += frame.f_code is TriggerSpec.__hash__.__code__
        elif event == "return" and self._depth:
            self._depth -= 1


async def measure(_directory: Path, _plan: Plan) -> Measured:
    """Count one call that is decided again."""
    counted = await count()
    reference = "before the work on speed"
    figures = {
        "calls": ("Python functions called", counted.calls, BEFORE_CALLS),
        "hashes": ("hashes of the trigger's spec", counted.hashes, BEFORE_HASHES),
    }
    return Measured(
        [
            Row(
                key=f"one-call.{key}",
                name=f"one call decided again: {name}",
                unit="a call",
                measured=[float(found)],
                reference_name=reference,
                reference=[before],
                goal=Goal.RATIO_AT_MOST,
                limit=0.25,
            )
            for key, (name, found, before) in figures.items()
        ]
    )


async def count() -> Counter:
    """Return what the call took that took the least.

    Raises:
        ServerError: an answer is not the right one.
    """
    clock, triggers = Clock(), world.triggers(WORKLOADS)
    pods = [WorldPod(pod, value=one.percent) for one in triggers for pod in one.pods]
    source = ScriptedSource(World(tuple(pods)), clock)
    counters: list[Counter] = []
    async with _served(source, clock) as served:
        for _ in range(STEPS):
            fetched = len(source.fetched)
            clock.seconds += STEP
            await served.ask(triggers[0])

            async def is_fetched(before: int = fetched) -> bool:
                return len(source.fetched) > before

            await until(is_fetched, WAIT_SECONDS, "the snapshot is there")
            await _idle()
            await served.ask(triggers[1])
            counters = [await _counted(served, one) for one in triggers[2:]]
    # What else happens meanwhile only adds to it, such as a task that waits once more.
    return min(counters, key=attrgetter("calls"))


async def _idle() -> None:
    """Let everything that is ready run: the fetch that another call began."""
    for _ in range(100):
        await asyncio.sleep(0)


async def _counted(served: "_Served", trigger: world.Trigger) -> Counter:
    """Count in this thread, which is the server's, while another one asks."""
    counter = Counter()
    asking = asyncio.create_task(served.ask(trigger))
    await asyncio.sleep(0)
    sys.setprofile(counter)
    try:
        await asking
    finally:
        sys.setprofile(None)
    return counter


@dataclass(frozen=True, slots=True)
class _Served:
    """A server in this thread."""

    address: str
    ended: list[facts.Called]
    """Every call that has ended so far."""

    async def ask(self, trigger: world.Trigger) -> None:
        """Ask once, and wait until the server has nothing more to do for it."""
        before = len(self.ended)
        await asyncio.to_thread(_ask, self.address, trigger)

        async def has_ended() -> bool:
            return len(self.ended) > before

        await until(has_ended, WAIT_SECONDS, "the call has ended")
        await _idle()


@asynccontextmanager
async def _served(source: ScriptedSource, clock: Clock) -> AsyncIterator[_Served]:
    """Serve as `app` does, on a source and a clock of our own."""
    ended: list[facts.Called] = []
    heard = facts.Subscriber({facts.Called: ended.append})
    async with within.served(lambda _observe: source.ports(), clock, heard) as port:
        yield _Served(f"127.0.0.1:{port}", ended)


def _ask(address: str, trigger: world.Trigger) -> None:
    with grpc.insecure_channel(address) as channel:
        stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        answer = stub.GetMetrics(trigger.request())
    found = [value.metricValueFloat for value in answer.metricValues]
    if found != [trigger.value]:
        raise ServerError(f"{trigger.workload}: answered {found}, expected {trigger.value}")
