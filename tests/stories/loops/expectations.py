"""What a user may expect, in figures: the same events for each kind of evidence, and for recipes.

`make expectations` prints the tables of docs/arithmetic.md.
"""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from keda_gpu_scaler.autoscaling.api_objects import Behavior, Direction, ScalingPolicy
from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.backtest import recipes
from keda_gpu_scaler.workbench.backtest.recipes import Recipe
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.dialects import Dialect
from testbed.loops.loop import Loop
from testbed.triggers import demanding, spec

SEEDS = range(1, 7)
ENOUGH = 6
"""Replicas for 430 %: each has 72 %, which is within the HPA's tolerance of 70 %."""
START_SECONDS = 60, 120, 180
SETTLE_SECONDS = 600
"""How long everything is as it was before something happens."""


class Way(NamedTuple):
    """One way to know the load."""

    evidence: EvidenceSource = EvidenceSource.EXPORTERS
    recipe: Recipe | None = None
    has_demand: bool = False
    """It has a demandQuery, which wakes."""
    loading: float = 100.0
    """What a GPU shows while a model loads, in percent."""


WAYS: Mapping[str, Way] = {
    "the cluster's evidence": Way(EvidenceSource.KUBE_STATE_METRICS, has_demand=True),
    "exporters only": Way(has_demand=True),
    "`avg`, `Value`": Way(recipe=recipes.AVERAGE_AS_VALUE),
    "`avg`, `AverageValue`": Way(recipe=recipes.AVERAGE),
    "`sum`, models load at 100 %": Way(recipe=recipes.SUM),
    "`sum`, models load at 0 %": Way(recipe=recipes.SUM, loading=0.0),
}
TO = "\N{EN DASH}"
OVERLOADED = "… and overloaded seconds"
OVERLOADED_IN_AN_HOUR = f"{OVERLOADED} in an hour"
Figures = Mapping[str, float | None]
"""By what they say; None: never."""
Scene = Callable[[Way, int], Awaitable[Figures]]


def _loop(way: Way, seed: int, work: Callable[[float], float], **terms: Any) -> Loop:
    loop = Loop(work, way.evidence, seed=seed, recipe=way.recipe, loading=way.loading, **terms)
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


async def _climb(way: Way, seed: int, *, follows: bool = False, **terms: Any) -> Loop:
    """Return a loop after a climb; with `follows`, a demand is as high as the work."""
    begins = _begins(seed)
    work = functools.partial(_rises, begins)
    if follows:
        terms |= {"demand": work, "trigger": demanding("sum(waiting)", demandThreshold="70")}
    loop = _loop(way, seed, work, **terms)
    await loop.run(begins + 1800, keda=True)
    return loop


def _rises(begins: float, seconds: float) -> float:
    return 40.0 if seconds < begins else 430.0


def _until_enough(loop: Loop, seed: int) -> float | None:
    return _since(loop, _begins(seed), lambda size: size >= ENOUGH)


async def _climbs(way: Way, seed: int) -> Figures:
    loop = await _climb(way, seed)
    return {
        f"40 % → 430 %: seconds until enough replicas, which are {ENOUGH}": _until_enough(
            loop, seed
        ),
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


_AT_ONCE = Direction(
    stabilization_window_seconds=0,
    policies=(ScalingPolicy(type="Percent", value=900, period_seconds=15),),
)
CLIMBS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "this scaler": dict,
    "with a [demand](specification.md#demand) and `demandThreshold`": lambda: {"follows": True},
    "with `minReplicaCount: 2`": lambda: {"replicas": 2, "hpa": Hpa(minimum=2, maximum=20)},
    "with an exporter that collects every 10 s, and `collection_seconds: 10`": lambda: {
        "collect_seconds": 10,
        "dialect": Dialect(collection_seconds=10),
    },
    '`threshold: "50"`': lambda: {"trigger": spec(threshold="50")},
    '`window: "1m"`': lambda: {"trigger": spec(window="1m")},
    "an HPA `behavior` without limits": lambda: {
        "hpa": Hpa(maximum=20, behavior=Behavior(scale_up=_AT_ONCE))
    },
}
"""What may make a climb faster, best first."""


async def climbs() -> list[list[str]]:
    """Return the table of how long a climb takes, with its head."""
    listed = WAYS["the cluster's evidence"]
    recipes_too = {name: way for name, way in WAYS.items() if way.recipe is recipes.SUM}
    found = [["until enough replicas", *(f"start-up {start} s" for start in START_SECONDS)]]
    for name, terms, way in [
        *((name, terms, listed) for name, terms in CLIMBS.items()),
        *((name, dict, way) for name, way in recipes_too.items()),
    ]:
        row = [name]
        for start in START_SECONDS:
            times = [
                _until_enough(await _climb(way, seed, start_seconds=start, **terms()), seed)
                for seed in SEEDS
            ]
            row.append(f"{cell(times)} s")
        found.append(row)
    return found


def lines(found: Sequence[Sequence[str]]) -> list[str]:
    """Return the table in Markdown."""
    head, *body = found
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)]


if __name__ == "__main__":
    for made in (climbs, table):
        print("\n".join(lines(asyncio.run(made()))), end="\n\n")  # noqa: T201 - its output
