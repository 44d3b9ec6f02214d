"""KEDA's poll loop and the HPA's sync, played in turn against the real server.

One tick is one sync of the HPA; KEDA polls at every second tick. The rules are in `autoscaling`,
the phases in `scenario`; this module decides only the order of the calls.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.simulator.demo import answers, children, scenario, screen


@dataclass(slots=True, kw_only=True)
class Driver:
    """The controllers of one ScaledObject, and their current state."""

    exporter: answers.Exporter
    scaler: answers.Scaler
    words: children.Words
    show: Callable[[screen.Frame], None]
    progress: scenario.Progress = field(default_factory=scenario.Progress)
    keda: rules.Keda = field(default_factory=scenario.keda)
    hpa: rules.Hpa = field(default_factory=scenario.hpa)
    replicas: int = 0
    peak: int = 0
    offered: float | None = None
    answer: answers.Answer = field(default_factory=answers.Answer)
    sentence: str = ""
    history: screen.History = field(default_factory=screen.History)

    async def run(self) -> str:
        """Play all phases and return the summary; DemoError if one fails."""
        clock = asyncio.get_running_loop().time
        begin, tick, finished = clock(), 0, False
        while not finished:
            await self._apply()
            await asyncio.sleep(max(0, begin + tick * scenario.SYNC_SECONDS - clock()))
            await self._tick(clock() - begin, polls=tick % scenario.POLL_TICKS == 0)
            finished = self.progress.advance(clock() - begin, self.replicas)
            tick += 1
        return scenario.summary(self.peak, clock() - begin)

    async def _apply(self) -> None:
        await self.exporter.apply(self.progress.phase.load, self.replicas)

    async def _tick(self, now: float, *, polls: bool) -> None:
        self.offered = await self.exporter.offered()
        if polls:
            await self._poll(now)
        if self.replicas:
            await self._sync(now)
        self.peak = max(self.peak, self.replicas)
        self.history.add(self.offered or 0, self.replicas)
        self.show(self._frame(now))

    async def _poll(self, now: float) -> None:
        """Let KEDA ask about both triggers; the router's is active above 0."""
        self.answer = await self.scaler.ask()
        router = None if self.offered is None else self.offered > 0
        step = self.keda.poll(now, self.replicas, [self.answer.active, router])
        self.replicas, self.sentence = step.replicas, f"KEDA: {step.reason}"

    async def _sync(self, now: float) -> None:
        """Let the HPA ask for all metrics of the ScaledObject."""
        self.answer = await self.scaler.ask()
        router = rules.Metric(value=self.offered, target=scenario.ROUTER_TARGET)
        gpu = self.answer.metrics or (rules.Metric(value=None, target=scenario.THRESHOLD),)
        step = self.hpa.sync(now, rules.Scale.steady(self.replicas), [*gpu, router])
        self.replicas, self.sentence = step.replicas, f"HPA: {step.reason}"

    def _frame(self, now: float) -> screen.Frame:
        return screen.Frame(
            seconds=now,
            progress=self.progress,
            offered=self.offered,
            answer=self.answer,
            words=self.words,
            replicas=self.replicas,
            sentence=self.sentence,
            history=self.history,
        )
