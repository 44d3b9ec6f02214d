"""How long calls take while a snapshot of many pods is fetched, next to calls at other times.

One process has the whole scaler but its HTTP pages: the real gRPC server, the evaluator with every
observer, and a source of which a transport in the same process answers as Prometheus would. Another
process calls it over a real channel at KEDA's rate, whatever the answers before take. The calls are
about the very pods that are fetched, each trigger once in ten seconds, so that each poll is decided
again. In one half of a round snapshots are fetched one after the other, as the clock skips to the
next step as soon as there is one; in the other half there is none to fetch.

Started by `snapshots`, as `python -m benchmarks.beside serve ROUNDS`.
"""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import grpc

from benchmarks import snapshots, within, world
from benchmarks.processes import ServerError
from keda_gpu_scaler.cli.serve import keep_modules, share_interpreter
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.telemetry import facts
from testbed.processes import until

OBJECTS = 1000
POLLS_A_SECOND = 100
"""Of three calls each: what KEDA and the HPA ask about so many ScaledObjects."""
SECONDS = 4.0
"""Of each half of a round."""
FETCHES = 12
"""For which answers are prepared: more than there can be in that time."""
WAIT_SECONDS = 60.0
"""Bounds a benchmark whose snapshot never comes."""
_SETTLING_SECONDS = 0.5
_SETTLED_SECONDS = 2.0
"""An instant is asked about so long after it."""


@dataclass(slots=True)
class Clock:
    """The real time, and what was skipped."""

    skipped_seconds: float = 0.0

    def __call__(self) -> float:
        """Return seconds that never go back."""
        return time.time() + self.skipped_seconds

    def instants(self) -> list[float]:
        """Return the next ones, ascending."""
        last = (self() - _SETTLED_SECONDS) // snapshots.STEP_SECONDS
        return [(last + number) * snapshots.STEP_SECONDS for number in range(1, FETCHES + 1)]

    def skip(self) -> None:
        """Skip to the next step."""
        self.skipped_seconds += self.instants()[0] + _SETTLED_SECONDS - self()


@dataclass(slots=True)
class Fetches:
    """Skips to the next step at each snapshot, while there is one to fetch after the other."""

    clock: Clock
    is_skipping: bool = False
    taken: int = 0
    """How many snapshots there were."""
    at: float = 0.0
    """The instant of the newest."""

    def __call__(self, fact: facts.Fact) -> None:
        """Observe the scaler."""
        if isinstance(fact, facts.SnapshotTaken):
            self.taken, self.at = self.taken + 1, fact.at
            if self.is_skipping:
                self.clock.skip()


async def serve(rounds: int) -> tuple[list[float], list[float]]:
    """Return the p99 of calls during fetches and without one, in seconds, for each round."""
    during, without = list[float](), list[float]()
    share_interpreter()
    clock = Clock()
    prometheus, fetches = snapshots.Prometheus(snapshots.PODS, clock), Fetches(clock)
    async with (
        _served(prometheus, clock, fetches) as port,
        _caller(port) as caller,
    ):
        keep_modules()
        await caller.ask(OBJECTS / POLLS_A_SECOND)
        for _ in range(rounds):
            prometheus.prepare(*clock.instants())
            await _settle(fetches, caller)
            before, fetches.is_skipping = fetches.taken, True
            clock.skip()
            during.append(snapshots.p99(await caller.ask(SECONDS)))
            fetches.is_skipping = False
            if not 0 < fetches.taken - before < FETCHES:
                raise ServerError(f"{fetches.taken - before} fetches, expected 1 to {FETCHES - 1}")
            await _settle(fetches, caller)
            before = fetches.taken
            without.append(snapshots.p99(await caller.ask(SECONDS)))
            if fetches.taken > before:
                raise ServerError("a fetch while there should be none")
    return during, without


async def _settle(fetches: Fetches, caller: "_Caller") -> None:
    """Wait until the snapshot of this step is there."""

    async def is_settled() -> bool:
        await caller.ask(_SETTLING_SECONDS)
        return fetches.at >= fetches.clock.instants()[0] - snapshots.STEP_SECONDS

    fetches.clock.skip()
    await until(is_settled, WAIT_SECONDS, "the snapshot of this step is there")


@asynccontextmanager
async def _served(
    prometheus: snapshots.Prometheus, clock: Clock, fetches: Fetches
) -> AsyncIterator[int]:
    """Serve as `app` does; yield the port."""
    async with AsyncExitStack() as stack:

        def source(observe: facts.Observer) -> Source:
            asked = snapshots.source(prometheus, clock, observe)
            stack.push_async_callback(asked.close)
            return asked.ports()

        yield await stack.enter_async_context(within.served(source, clock, fetches))


@dataclass(frozen=True, slots=True)
class _Caller:
    """The other process."""

    process: asyncio.subprocess.Process

    async def ask(self, seconds: float) -> list[float]:
        """Let it call for so long; return how long each call took."""
        to, back = self.process.stdin, self.process.stdout
        if to is None or back is None:
            raise ServerError("the caller has no pipes")
        to.write(f"{seconds}\n".encode())
        said = await back.readline()
        if not said:
            raise ServerError("the caller has ended")
        return [float(number) for number in json.loads(said)]


@asynccontextmanager
async def _caller(port: int) -> AsyncIterator[_Caller]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.beside", "call", f"{port}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
    )
    try:
        yield _Caller(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


@dataclass(slots=True)
class _Polls:
    """Polls at KEDA's rate."""

    stub: externalscaler_pb2_grpc.ExternalScalerStub
    took: list[float] = field(default_factory=list)
    """The seconds of each call."""
    _next: "itertools.cycle[world.Trigger]" = field(
        default_factory=lambda: itertools.cycle(world.triggers(OBJECTS))
    )

    async def during(self, seconds: float) -> Sequence[float]:
        """Return what each call took, whose polls began within this time."""
        self.took = []
        loop, polls = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        began = loop.time()
        for number in range(round(seconds * POLLS_A_SECOND)):
            await asyncio.sleep(began + number / POLLS_A_SECOND - loop.time())
            polls.append(asyncio.create_task(self._poll(next(self._next))))
        await asyncio.gather(*polls)
        return self.took

    async def _poll(self, trigger: world.Trigger) -> None:
        """Call as KEDA does at a poll, without a deadline: with one, as of the HPA, a call waits.

        The loads are random, so answers are not compared.
        """
        for call, request in (
            (self.stub.GetMetricSpec, trigger.reference()),
            (self.stub.GetMetrics, trigger.request()),
            (self.stub.IsActive, trigger.reference()),
        ):
            began = time.perf_counter()
            try:
                await call(request)
            except grpc.aio.AioRpcError as error:
                # Until there is a snapshot, IsActive is an error that says so.
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
            self.took.append(time.perf_counter() - began)


async def call(port: int) -> None:
    """Poll for as many seconds as each line of the input says, and write what calls took."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        polls = _Polls(externalscaler_pb2_grpc.ExternalScalerStub(channel))
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await polls.during(float(line))), flush=True)


if __name__ == "__main__":
    _, _what, _number = sys.argv
    if _what == "call":
        asyncio.run(call(int(_number)))
    else:
        print(json.dumps(asyncio.run(serve(int(_number)))))
