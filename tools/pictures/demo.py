"""A recording of the demo in no real time: its own driver, screen, simulator and decisions.

What is missing of `keda-gpu-scaler demo` is between its parts: gRPC, HTTP over sockets, and the
tasks that scrape. So two runs are the same, on every machine.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from keda_gpu_scaler import trigger
from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.scrape.page_samples import parse
from keda_gpu_scaler.sources.scrape.rounds import Rounds, Scrape
from keda_gpu_scaler.workbench.demo import driver, scenario, screen
from keda_gpu_scaler.workbench.world import exposition
from keda_gpu_scaler.workbench.world.cluster import MadeUp
from testbed.loops.loop import AtOnce
from testbed.triggers import access
from tools.pictures import screencast

_TARGET = Target("default", "simulator")
_PHASE_SECONDS = 0.2
"""How long after a sync there is a scrape: the two are never due at the same time."""
_SCREEN_TICKS = 4
"""How many syncs of the HPA lie between two screens of the recording."""
_SCREEN_SECONDS, _LAST_SECONDS = 0.5, 4.0


def picture() -> str:
    """Return a recording of the demo; it stands still at the last answer to the highest load."""
    screens: list[screencast.Screen] = []
    answered: list[int] = []

    def record(frame: driver.Frame) -> None:
        if len(frame.ours) % _SCREEN_TICKS == 0:
            shown = screen.screen(frame)
            screens.append(screencast.look(shown, screen.WIDTH, _SCREEN_SECONDS))
            if frame.progress.phase == scenario.HIGHEST and frame.answer.value is not None:
                answered.append(len(screens) - 1)

    story = _run(_play(record))
    last = screencast.Screen(screens[-1].drawn, screens[-1].lines, _LAST_SECONDS)
    return screencast.svg([*screens[:-1], last], answered[-1], story, screen.WIDTH)


@dataclass(slots=True)
class ScrapedRounds:
    """The simulator's page, scraped once per sync of the HPA, as the scrape source keeps it."""

    simulated: MadeUp
    step_seconds: float = scenario.SYNC_SECONDS
    lag_seconds: float = 0.0
    settled_seconds: float = 0.0
    kept: Rounds = field(default_factory=lambda: Rounds(keep_seconds=600, collection_seconds=0))
    first: asyncio.Event = field(default_factory=asyncio.Event)

    async def scrape(self) -> None:
        await asyncio.sleep(_PHASE_SECONDS)
        while True:
            now = self.now()
            page = exposition.gpu_page(self.simulated.gpus(now))
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


async def _play(show: Callable[[driver.Frame], None]) -> str:
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


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing, and counts how long it would have waited."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - the selector's own
        """Let the time pass until the next timer is due."""
        if timeout is None:
            raise RuntimeError("all tasks wait, and no timer is left")
        self.passed += max(0.0, timeout)
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while nothing is left to do; it begins at 0 s."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return how long the timers have waited by now."""
        return self._jumping.passed


def _run(played: Coroutine[Any, Any, str]) -> str:
    """Return what a coroutine returns, however long it sleeps."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        runner.get_loop().set_default_executor(AtOnce())
        return runner.run(played)
