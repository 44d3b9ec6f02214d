"""KEDA's poll loop and the HPA's sync, played in turn against the real server.

One tick is one sync of the HPA; KEDA polls at every second tick. A second workload gets the same
load from the same router, and is scaled by the usual recipe. The rules are in `autoscaling`, the
phases in `scenario`; this module decides only the order of the calls.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.simulator.demo import answers, scenario, screen


class Scaler(Protocol):
    """What KEDA and the HPA ask about the trigger."""

    async def ask(self) -> answers.Answer:
        """Return the answer to one round of calls."""


@dataclass(slots=True)
class Scaled:
    """One workload under its KEDA and its HPA."""

    exporter: answers.Exporter
    keda: rules.Keda = field(default_factory=scenario.keda)
    hpa: rules.Hpa = field(default_factory=scenario.hpa)
    replicas: int = 0
    peak: int = 0
    shown: answers.Shown = field(default_factory=answers.Shown)
    sentence: str = ""

    async def look(self) -> None:
        """Read what the exporter and the router show."""
        self.shown = await self.exporter.look()

    def poll(self, now: float, active: bool | None) -> None:  # noqa: FBT001 - as IsActive says it
        """Let KEDA act on its trigger and on the router's, which is active above 0."""
        router = None if self.shown.offered is None else self.shown.offered > 0
        self._take("KEDA", self.keda.poll(now, self.replicas, [active, router]))

    def sync(self, now: float, metrics: Sequence[rules.Metric]) -> None:
        """Let the HPA act on all metrics of the ScaledObject."""
        router = rules.Metric(value=self.shown.offered, target=scenario.ROUTER_TARGET)
        gpu = metrics or (rules.Metric(value=None, target=scenario.THRESHOLD),)
        scale = rules.Scale.steady(self.replicas)
        self._take("HPA", self.hpa.sync(now, scale, [*gpu, router]))

    def _take(self, who: str, step: rules.Step) -> None:
        self.replicas, self.sentence = step.replicas, f"{who}: {step.reason}"
        self.peak = max(self.peak, self.replicas)


@dataclass(slots=True, kw_only=True)
class Driver:
    """The controllers of both workloads, and their current state."""

    ours: Scaled
    usual: Scaled
    scaler: Scaler
    show: Callable[[screen.Frame], None]
    progress: scenario.Progress = field(default_factory=scenario.Progress)
    patience_seconds: float = 40.0
    """How long the scaler may take to know what runs, before the first phase."""
    answer: answers.Answer = field(default_factory=answers.Answer)
    history: screen.History = field(default_factory=screen.History)

    async def prepare(self) -> None:
        """Let the scaler see an idle replica come and go, as in a cluster that has run for a while.

        A scaler that has just started takes no absence of pods for a fact: for the first minute it
        answers that it does not know.

        Raises:
            scenario.DemoError: it does not get there in time.
        """
        clock = asyncio.get_running_loop().time
        ends = clock() + self.patience_seconds
        for replicas in (1, 0):
            await self.ours.exporter.apply(0, replicas)
            while not self._knows(await self.scaler.ask(), replicas):
                if clock() >= ends:
                    raise scenario.DemoError(f"the scaler does not answer: {self.answer.problem}")
                await asyncio.sleep(scenario.SYNC_SECONDS)

    def _knows(self, answer: answers.Answer, replicas: int) -> bool:
        """Tell whether the answer is about so many idle replicas."""
        self.answer = answer
        return answer.active is False and (answer.value is not None) == (replicas > 0)

    async def run(self) -> str:
        """Play all phases and return the summary; DemoError if one fails."""
        clock = asyncio.get_running_loop().time
        begin, tick, finished = clock(), 0, False
        while not finished:
            for each in (self.ours, self.usual):
                await each.exporter.apply(self.progress.phase.load, each.replicas)
            await asyncio.sleep(max(0, begin + tick * scenario.SYNC_SECONDS - clock()))
            await self._tick(clock() - begin, polls=tick % scenario.POLL_TICKS == 0)
            finished = self.progress.advance(clock() - begin, self.ours.replicas)
            tick += 1
        return scenario.summary(self.ours.peak, self.usual.peak, clock() - begin)

    async def _tick(self, now: float, *, polls: bool) -> None:
        for each in (self.ours, self.usual):
            await each.look()
        if polls:
            self.answer = await self.scaler.ask()
            self.ours.poll(now, self.answer.active)
            self.usual.poll(now, answers.usual(self.usual.shown).active)
        if self.ours.replicas:
            self.answer = await self.scaler.ask()
            self.ours.sync(now, self.answer.metrics)
        if self.usual.replicas:
            self.usual.sync(now, answers.usual(self.usual.shown).metrics)
        self.history.add(self._side(self.ours), self._side(self.usual))
        self.show(self._frame(now))

    def _frame(self, now: float) -> screen.Frame:
        return screen.Frame(
            seconds=now,
            progress=self.progress,
            answer=self.answer,
            ours=self._side(self.ours),
            usual=self._side(self.usual),
            history=self.history,
        )

    def _side(self, scaled: Scaled) -> screen.Side:
        shown = scaled.shown
        return screen.Side(shown.offered, shown.utilization, scaled.replicas, scaled.sentence)
