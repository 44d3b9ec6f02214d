"""Open streams cost no query of their own, and no decision while nothing is new: counted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.spec.demand import Pace
from keda_gpu_scaler.telemetry import facts
from tests.service.harness import TRIGGER, Served, first, rest, serving
from tests.support.scripted import Clock, ScriptedAlerts, ScriptedSource
from tests.support.triggers import BERT, spec
from tests.support.worlds import STEP, World

TEXT = "time()"
"""It reads no series, so it is sent unchanged."""
LOOK_SECONDS = 0.5
STREAMS = 300


@dataclass(slots=True)
class Watched:
    """A real evaluator behind a real server; the time of its source stands still."""

    served: Served
    source: ScriptedSource
    alerts: ScriptedAlerts
    seen: list[facts.Fact] = field(default_factory=list)
    looked: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)

    def open(self, count: int) -> list[Any]:
        """Open so many streams, each about a ScaledObject of its own."""
        metadata = TRIGGER | {"demandQuery": TEXT}
        return [
            self.served.stub.StreamIsActive(
                pb.ScaledObjectRef(name=f"bert-{n}", namespace="ml", scalerMetadata=metadata)
            )
            for n in range(count)
        ]

    async def looks(self, count: int) -> None:
        """Wait until each of so many streams has looked twice from now on."""
        while not self.looked.empty():
            self.looked.get_nowait()
        await self.looked_of(count)
        await self.looked_of(count)

    async def looked_of(self, count: int) -> None:
        """Wait until so many different ones have looked."""
        names: set[str] = set()
        while len(names) < count:
            names.add(await self.looked.get())

    @property
    def decided(self) -> int:
        """How many decisions were stated."""
        return sum(isinstance(fact, facts.Evaluated) for fact in self.seen)


@asynccontextmanager
async def _watched() -> AsyncIterator[Watched]:
    source, alerts = ScriptedSource(World(()), Clock(), numbers={TEXT: 0.0}), ScriptedAlerts()
    seen: list[facts.Fact] = []
    looked: asyncio.Queue[str] = asyncio.Queue()

    def observe(fact: facts.Fact) -> None:
        seen.append(fact)
        if isinstance(fact, facts.DemandKnown):
            looked.put_nowait(fact.scaled_object.name)

    pace = Pace(interval_seconds=LOOK_SECONDS)
    evaluator = Evaluator({"default": source.ports()}, observe, alerts=alerts, pace=pace)
    # Known before: another test covers a first answer that comes late on a busy machine.
    await evaluator.evaluate(BERT, spec(demandQuery=TEXT), None)
    seen.clear()
    async with serving(evaluator, max_concurrent_rpcs=2000, hang_seconds=120) as served:
        yield Watched(served, source, alerts, seen, looked)
    await evaluator.close()


@pytest.mark.slow
async def test_open_streams_cost_what_one_costs_and_are_told_when_something_is_new() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with _watched() as watched:
        streams = watched.open(STREAMS)
        await watched.looks(STREAMS)
        assert (len(watched.source.fetched), watched.decided) == (1, STREAMS)
        watched.source.clock.seconds += STEP
        await watched.looks(STREAMS)
        assert len(watched.source.fetched) == 2
        decided = watched.decided
        assert decided <= 3 * STREAMS, "once when the step is over, once for the new snapshot"
        watched.source.numbers[TEXT] = 7.0
        assert [(await first(stream)).result for stream in streams] == [True] * STREAMS
        assert watched.decided == decided + STREAMS
        assert len(watched.source.numbers_asked) <= (loop.time() - began) / LOOK_SECONDS + 1
        watched.served.draining.set()
        for stream in streams:
            await rest(stream)


async def test_an_alert_is_pushed_at_once_and_not_when_somebody_looks_next() -> None:
    """The time of the source stands still, and nothing else would be new for a while."""
    async with _watched() as watched:
        (stream,) = watched.open(1)
        await watched.looked_of(1)
        watched.alerts.change("GpuBusy")
        assert (await first(stream)).result
        *_, alerted = (fact for fact in watched.seen if isinstance(fact, facts.Evaluated))
        assert alerted.decision.reason.endswith("; alert GpuBusy fires")
        watched.alerts.change(None)
        await watched.looked_of(1)
        watched.served.draining.set()
        assert await rest(stream) == []
    assert watched.alerts.calls == []
