"""Plays a scene: time, the exporters' reads, the HPA's syncs and KEDA's polls, in their order."""

import asyncio
import time
from collections.abc import Callable

from keda_gpu_scaler.autoscaling.rules import Metric
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.workbench.backtest.recipes import SUM
from keda_gpu_scaler.workbench.demo import door, scenes
from keda_gpu_scaler.workbench.demo.scenes import BERT, THRESHOLD, DemoScene, Side, Sides
from keda_gpu_scaler.workbench.demo.source import SideSource
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS

_LATE_SECONDS = 2
"""How long after a scrape KEDA and the HPA ask."""
_PUSH_SECONDS = 0.2
"""The least time for a tick of a scene with pushes: nothing else waits for one to arrive."""


class World(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when a scene says so: two runs are the same."""

    now = 86_400.0

    def time(self) -> float:
        return self.now


async def play(
    world: World, scene: DemoScene, show: Callable[[Sides], None], scene_seconds: float = 0
) -> Sides:
    """Play a scene on the running loop, shown tick by tick, and return its end.

    It takes about `scene_seconds` of people's time.
    """
    world.now = begin = (world.now // 60 + 1) * 60 + _LATE_SECONDS
    ours, other = sides = Side(scene=scene, begin=begin), Side(scene=scene, begin=begin)
    source = SideSource(ours)
    trigger = {"workload": BERT.name, "threshold": str(THRESHOLD)}
    pause_seconds, push = scene_seconds / scene.ticks, None
    if scene.cause == "queue":
        trigger["demandQuery"] = "sum(requests_waiting)"
        pause_seconds, push = max(pause_seconds, _PUSH_SECONDS), ours.push
    async with door.opened(Source(source, (source,), source), BERT, trigger, push) as scaler:
        for tick in range(scene.ticks):
            passed = scene.tick_seconds if tick else 0
            for side in sides:
                side.advance(passed)
            world.now += passed
            await asyncio.to_thread(time.sleep, pause_seconds)
            if ours.seconds % STEP_SECONDS == 0:
                # The HPA does not ask while there is no replica.
                metric = Metric(value=None, target=THRESHOLD)
                if ours.replicas:
                    metric = await scaler.metric()
                active = None
                if ours.seconds % (2 * STEP_SECONDS) == 0:
                    active = await scaler.is_active()
                told = scaler.summary
                ours.reason = told.reason
                ours.act(metric, active, told.measured, scenes.of_scaler(told))
                values = other.matched()
                decided = SUM.decided(values)
                metric = Metric(value=decided.value, target=THRESHOLD)
                other.act(metric, decided.active, len(values), scenes.of_recipe(values))
            for side in sides:
                side.note()
            show(sides)
    return sides
