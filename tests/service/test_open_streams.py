"""An open stream hears of an alert at once, from a real evaluator."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.spec.demand import Pace
from keda_gpu_scaler.telemetry import facts
from tests.service.harness import Served, first, reference, rest, serving
from tests.support.scripted import Clock, ScriptedAlerts, ScriptedSource
from tests.support.triggers import BERT, spec
from tests.support.worlds import World

TEXT = "time()"
"""It reads no series, so it is sent unchanged."""
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Watched:
    """A real evaluator behind a real server; the time of its source stands still."""

    served: Served
    alerts: ScriptedAlerts
    reasons: list[str]
    """Of the decisions that were stated."""
    looked: "asyncio.Queue[str]"


@asynccontextmanager
async def _watched() -> AsyncIterator[Watched]:
    source, alerts = ScriptedSource(World(()), Clock(), numbers={TEXT: 0.0}), ScriptedAlerts()
    reasons: list[str] = []
    looked: asyncio.Queue[str] = asyncio.Queue()

    def observe(fact: facts.Fact) -> None:
        if isinstance(fact, facts.Evaluated):
            reasons.append(fact.decision.reason)
        elif isinstance(fact, facts.DemandKnown):
            looked.put_nowait(fact.scaled_object.name)

    pace = Pace(interval_seconds=LOOK_SECONDS)
    evaluator = Evaluator({"default": source.ports()}, observe, alerts=alerts, pace=pace)
    # Known before: another test covers a first answer that comes late on a busy machine.
    await evaluator.evaluate(BERT, spec(demandQuery=TEXT), None)
    async with serving(evaluator) as served:
        yield Watched(served, alerts, reasons, looked)
    await evaluator.close()


async def test_an_alert_is_pushed_at_once_and_not_when_somebody_looks_next() -> None:
    """The time of the source stands still, and nothing else would be new for a while."""
    async with _watched() as watched:
        while not watched.looked.empty():
            watched.looked.get_nowait()
        stream = watched.served.stub.StreamIsActive(reference(demandQuery=TEXT))
        await watched.looked.get()
        watched.alerts.change("GpuBusy")
        assert (await first(stream)).result
        assert watched.reasons[-1].endswith("; alert GpuBusy fires")
        watched.alerts.change(None)
        watched.served.draining.set()
        assert await rest(stream) == []
    assert watched.alerts.calls == []
