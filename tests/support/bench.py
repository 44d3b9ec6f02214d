"""An evaluator on a scripted source, asked as KEDA asks."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from testbed.triggers import BERT, spec
from tests.support.scripted import Clock, ScriptedAlerts, ScriptedCluster, ScriptedSource
from tests.support.worlds import STEP, WorldPod

PODS = tuple(WorldPod(f"bert-7b6667bd9-{letter * 5}") for letter in "bcdfg")
FactT = TypeVar("FactT", bound=facts.Fact)


@dataclass(slots=True)
class Bench:
    """An evaluator on a scripted source, with everything it states."""

    source: ScriptedSource
    clock: Clock
    seen: list[facts.Fact] = field(default_factory=list)
    cluster: ScriptedCluster | None = None
    alerts: ScriptedAlerts = field(default_factory=ScriptedAlerts)
    is_observing: bool = False
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        stronger = () if self.cluster is None else (self.cluster,)
        self.evaluator = Evaluator(
            {"default": self.source.ports(*stronger)},
            self.seen.append,
            targets=self.cluster,
            alerts=self.alerts,
            clock=self.clock,
            is_observing=self.is_observing,
        )

    async def ask(
        self,
        trigger: TriggerSpec | None = None,
        scaled_object: ScaledObject = BERT,
        timeout_seconds: float | None = None,
    ) -> Decision:
        """Evaluate a trigger, as KEDA would by one poll.

        A busy machine may take longer for a fetch than a call waits: then it is asked again.
        """
        asked = scaled_object, trigger or spec(), timeout_seconds
        decided = await self.evaluator.evaluate(*asked)
        is_slow = "no answer within 2.5 s" in decided.reason and self.source.gate is None
        if is_slow:
            await landed()
            self.clock.seconds += 1
            decided = await self.evaluator.evaluate(*asked)
        return decided

    async def later(self, seconds: float, trigger: TriggerSpec | None = None) -> Decision:
        """Let time pass in steps, asking at each as a poll does, and return the last decision."""
        for _ in range(int(seconds // STEP)):
            self.clock.seconds += STEP
            await self.ask(trigger)
            await self.landed()
        return await self.again(trigger)

    async def again(self, trigger: TriggerSpec | None = None) -> Decision:
        """Ask once more, past the time in which one poll gets one decision."""
        self.clock.seconds += 1
        return await self.ask(trigger)

    async def landed(self) -> None:
        await landed()

    def of(self, kind: type[FactT]) -> list[FactT]:
        return [fact for fact in self.seen if isinstance(fact, kind)]


async def landed() -> None:
    """Wait until what evaluators began is published: nothing else works beside a test."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
