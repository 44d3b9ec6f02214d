"""What a user may expect, in figures: the same events for each kind of evidence, and for recipes.

`python -m tests.stories.loops.expectations` prints the table of docs/arithmetic.md.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.backtest import recipes
from keda_gpu_scaler.workbench.backtest.recipes import Recipe
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop
from testbed.triggers import demanding, spec

SEEDS = range(1, 7)
SETTLE_SECONDS = 600
"""How long everything is as it was before something happens."""


class Way(NamedTuple):
    """One way to know the load."""

    evidence: EvidenceSource = EvidenceSource.EXPORTERS
    recipe: Recipe | None = None
    has_demand: bool = False
    """It has a demandQuery, which wakes."""


WAYS: Mapping[str, Way] = {
    "the cluster's evidence": Way(EvidenceSource.KUBE_STATE_METRICS, has_demand=True),
    "exporters only": Way(has_demand=True),
    "`avg`, `Value`": Way(recipe=recipes.AVERAGE_AS_VALUE),
    "`avg`, `AverageValue`": Way(recipe=recipes.AVERAGE),
    "`sum`, `AverageValue`": Way(recipe=recipes.SUM),
}
TO = "\N{EN DASH}"
OVERLOADED = "… and overloaded seconds"
OVERLOADED_IN_AN_HOUR = f"{OVERLOADED} in an hour"
Figures = Mapping[str, float | None]
"""By what they say; None: never."""
Scene = Callable[[Way, int], Awaitable[Figures]]


def _loop(way: Way, seed: int, work: Callable[[float], float], **terms: Any) -> Loop:
    loop = Loop(work, way.evidence, seed=seed, recipe=way.recipe, **terms)
    loop.keda.last_active = loop.clock
    return loop


def _begins(seed: int) -> float:
    """Return when something happens: at any time between two scrapes, polls and syncs."""
    return SETTLE_SECONDS + random.Random(seed).uniform(0, 60)


def _since(loop: Loop, begins: float, is_so: Callable[[int], bool]) -> float | None:
    """Return after how many seconds the replicas wanted are so for the first time."""
    times = (STEP_SECONDS * (number + 1) for number in range(len(loop.sizes)))
    return next(
        (
            round(time - begins)
            for time, size in zip(times, loop.sizes, strict=True)
            if time > begins and is_so(size)
        ),
        None,
    )


async def _climbs(way: Way, seed: int) -> Figures:
    begins = _begins(seed)
    loop = _loop(way, seed, lambda t: 40.0 if t < begins else 430.0)
    await loop.run(begins + 1800, keda=True)
    return {
        "40 % → 430 %: seconds until seven replicas": _since(loop, begins, lambda size: size >= 7),
        "… and most replicas": max(loop.sizes),
        OVERLOADED: loop.overloaded_seconds,
    }


async def _ends(way: Way, seed: int) -> Figures:
    begins = _begins(seed)
    loop = _loop(way, seed, lambda t: 240.0 if t < begins else 0.0, replicas=4)
    await loop.run(begins + 1800, keda=True)
    return {
        "240 % on 4 replicas ends: seconds until the first goes": _since(
            loop, begins, lambda size: size < 4
        ),
        "… and until the last goes": _since(loop, begins, lambda size: size == 0),
        OVERLOADED: loop.overloaded_seconds,
    }


async def wakes(way: Way, seed: int) -> Figures:
    begins = _begins(seed)
    trigger = demanding("sum(waiting)") if way.has_demand else spec()
    demand = (lambda t: float(t >= begins)) if way.has_demand else None
    loop = _loop(
        way, seed, lambda t: 30.0 * (t >= begins), replicas=0, trigger=trigger, demand=demand
    )
    await loop.run(begins + 900, keda=True)
    said = "work at zero replicas: seconds until the first, by a demand"
    return {
        said: _since(loop, begins, lambda size: size > 0),
        OVERLOADED: loop.overloaded_seconds,
    }


async def _settled(way: Way, seed: int, work: float, replicas: int, seconds: float = 0) -> Loop:
    """Return a loop in which all has been as it is for a while: its figures begin now."""
    loop = _loop(way, seed, lambda _: work, replicas=replicas)
    await loop.run(SETTLE_SECONDS + seconds, keda=True)
    loop.sizes.clear()
    loop.overloaded_seconds = 0.0
    return loop


async def _rollout(way: Way, seed: int) -> Figures:
    loop = await _settled(way, seed, 260.0, 4)
    await loop.roll_out(90, 30, keda=True)
    await loop.run(900, keda=True)
    return {
        "a rollout of 4 busy replicas: fewest replicas": min(loop.sizes),
        "… and most": max(loop.sizes),
        OVERLOADED: loop.overloaded_seconds,
    }


async def _nodes(way: Way, seed: int) -> Figures:
    loop = await _settled(way, seed, 720.0, 12)
    loop.node_seconds = 360.0
    loop.lose(*[pod for pod in loop.pods if pod.works(loop.clock)][: 3 * loop.replicas // 4])
    await loop.run(3600, keda=True)
    said = "3 of 4 nodes of 12 replicas are lost for 6 minutes: fewest replicas"
    return {said: min(loop.sizes), OVERLOADED_IN_AN_HOUR: loop.overloaded_seconds}


async def _exporter(way: Way, seed: int) -> Figures:
    loop = await _settled(way, seed, 240.0, 4)
    dead = next(pod for pod in loop.pods if pod.works(loop.clock))
    dead.silent = loop.clock
    await loop.run(3600, keda=True)
    said = "an exporter of 4 busy replicas dies: fewest replicas"
    return {said: min(loop.sizes), OVERLOADED_IN_AN_HOUR: loop.overloaded_seconds}


async def _blind(way: Way, seed: int) -> Figures:
    loop = await _settled(way, seed, 60.0, 1, STEP_SECONDS * seed)
    loop.pods[0].silent = loop.clock
    await loop.run(900, keda=True)
    said = "the only, busy replica's exporter is away for 15 minutes: fewest replicas"
    return {said: min(loop.sizes), OVERLOADED: loop.overloaded_seconds}


async def _bursts(way: Way, seed: int) -> Figures:
    chance = random.Random(seed)
    busy = [chance.random() < 0.3 for _ in range(300)]
    loop = _loop(way, seed, lambda t: 200.0 * busy[max(0, int(t // 30))])
    await loop.run(7200)
    said = "bursts of 200 %, 30 % of the time, at least 1 replica: replica-hours in two hours"
    return {said: round(loop.replica_hours, 1)}


SCENES: Sequence[Scene] = (_climbs, _ends, wakes, _rollout, _nodes, _exporter, _blind, _bursts)


async def figures(scene: Scene, way: Way, seeds: Iterable[int]) -> dict[str, list[float | None]]:
    """Return each figure of a scene, once for each seed."""
    found = [await scene(way, seed) for seed in seeds]
    return {said: [one[said] for one in found] for said in found[0]}


def cell(values: Sequence[float | None]) -> str:
    """Return the range of a figure over its seeds."""
    known = [value for value in values if value is not None]
    if not known:
        return "never"
    low, high = min(known), max(known)
    shown = f"{low:g}" if low == high else f"{low:g}{TO}{high:g}"
    return shown if len(known) == len(values) else f"{shown}, or never"


async def rows(scene: Scene, seeds: Iterable[int] = SEEDS) -> list[list[str]]:
    """Return the rows of the table about a scene."""
    seeds = tuple(seeds)
    found = [await figures(scene, way, seeds) for way in WAYS.values()]
    return [[said, *(cell(one[said]) for one in found)] for said in found[0]]


async def table() -> list[list[str]]:
    """Return the table, with its head."""
    return [["", *WAYS], *[row for scene in SCENES for row in await rows(scene)]]


def lines(found: Sequence[Sequence[str]]) -> list[str]:
    """Return the table in Markdown."""
    head, *body = found
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)]


if __name__ == "__main__":
    print("\n".join(lines(asyncio.run(table()))))  # noqa: T201 - its output
