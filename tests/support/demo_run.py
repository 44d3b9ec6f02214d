"""The demo in no real time: its own driver, screen, simulator and decisions.

What is missing of `keda-gpu-scaler demo` is between its parts: gRPC, HTTP over sockets, and the
tasks that scrape. So two runs are the same, on every machine.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from keda_gpu_scaler import trigger
from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.simulator import exposition
from keda_gpu_scaler.simulator.cluster import MadeUp
from keda_gpu_scaler.simulator.demo import driver, scenario
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.scrape.exposition import parse
from keda_gpu_scaler.sources.scrape.rounds import Rounds, Scrape
from tests.support.triggers import access

_TARGET = Target("default", "simulator")
_PHASE_SECONDS = 0.2
"""How long after a sync there is a scrape: the two are never due at the same time."""


@dataclass(slots=True)
class ScrapedRounds:
    """The simulator's page, scraped once per sync of the HPA, as the scrape source keeps it."""

    simulated: MadeUp
    step_seconds: float = scenario.SYNC_SECONDS
    lag_seconds: float = 0.0
    kept: Rounds = field(default_factory=lambda: Rounds(keep_seconds=600))
    first: asyncio.Event = field(default_factory=asyncio.Event)

    async def scrape(self) -> None:
        await asyncio.sleep(_PHASE_SECONDS)
        while True:
            now = self.now()
            page = exposition.whole_page(self.simulated, now)
            self.kept.add(now, {_TARGET: Scrape(now, parse(page, now))})
            self.first.set()
            await asyncio.sleep(self.step_seconds)

    async def synchronize(self) -> None:
        await self.first.wait()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def instant(self) -> float:
        return self.kept.rounds[-1].at if self.kept.rounds else float("-inf")

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        return self.kept.observation(snapshot_query, at)

    async def history(self, _query: SnapshotQuery, _at: float) -> Observation | None:
        """Return None: there is nothing beyond the rounds."""

    async def locate(self, uuids: Iterable[str], _at: float) -> GpuReports:
        return self.kept.gpus(uuids)


async def play(show: Callable[[driver.Frame], None]) -> str:
    """Play the whole demo on the running loop, which has virtual time, and return its story."""
    simulated = MadeUp()
    rounds = ScrapedRounds(simulated)
    evaluator = Evaluator({"default": Source(rounds)}, clock=asyncio.get_running_loop().time)

    async def ask() -> driver.Reply:
        """Decide as KEDA and the HPA ask, without gRPC in between."""
        named = scenario.SCALED_OBJECT
        spec = trigger.parse(named, scenario.TRIGGER, access())
        decided = await evaluator.evaluate(named, spec, None)
        (summary,) = evaluator.summaries(named.namespace)
        if decided.active is None:
            return driver.Reply(state=summary.state, reason=f"UNAVAILABLE: {decided.reason}")
        metric = rules.Metric(value=decided.value, target=spec.threshold)
        return driver.Reply((metric,), decided.active, summary.state, summary.reason)

    async with AsyncExitStack() as stack:
        stack.push_async_callback(evaluator.close)
        scraping = asyncio.create_task(rounds.scrape(), name="scrape")
        stack.callback(scraping.cancel)
        played = driver.Driver(simulated=simulated, ask=ask, show=show)
        await played.prepare()
        return await played.run()
