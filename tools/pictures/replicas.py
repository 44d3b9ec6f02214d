"""The replicas of this scaler and of recipes over an hour of the same load, in two worlds."""

import asyncio
from collections.abc import Mapping

from benchmarks.drawings import Curve, Panel, picture, times, words
from keda_gpu_scaler.workbench.backtest import recipes
from keda_gpu_scaler.workbench.backtest.recipes import Recipe
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop

MINUTES = 60
BEGINS, LOADS = (0, 5, 35), (40, 430, 130)
"""The load: from each of these minutes on it is so many percent of one GPU."""


def offered(seconds: float) -> float:
    """Return the load that both workloads of the picture get, in percent of one GPU."""
    minutes = seconds / 60
    return LOADS[max(0, sum(minutes >= begin for begin in BEGINS) - 1)]


RECIPES: Mapping[str, Recipe | None] = {
    "this scaler": None,
    "sum()": recipes.SUM,
    "avg() as Value": recipes.AVERAGE_AS_VALUE,
    "avg()": recipes.AVERAGE,
}
COLORS = {"this scaler": "o", "sum()": "l", "avg()": "u"}
"""Of the curves; the others have their figures in the picture's title."""
LOADING = 100.0, 0.0
"""What a GPU may show while a model loads, in percent."""
LEFTS, TOP, WIDTH, HEIGHT = (40, 460), 130, 370, 150


def beside(loading: float) -> Mapping[str, Loop]:
    """Return the loops of this scaler and of the recipes, after an hour of the same load."""
    loops = {
        name: Loop(offered, recipe=recipe, loading=loading, start_seconds=120.0)
        for name, recipe in RECIPES.items()
    }
    for loop in loops.values():
        loop.keda.last_active = loop.clock
        asyncio.run(loop.run(MINUTES * 60, keda=True))
    return loops


def figures(name: str, loop: Loop) -> str:
    """Return what came of a loop, in words."""
    minutes = loop.overloaded_seconds / 60
    most = f"{name}: at most {max(loop.sizes)}"
    return f"{most}, {loop.replica_hours:.1f} GPU-hours, overloaded {minutes:.2g} min"


def replicas() -> str:
    """Return the replicas of all, where models load at 100 % and where they load at 0 %."""
    worlds = {loading: beside(loading) for loading in LOADING}
    highest = max(max(loop.sizes) for loops in worlds.values() for loop in loops.values())
    load = [offered(STEP_SECONDS * number) for number in range(MINUTES * 60 // STEP_SECONDS)]
    title = "; ".join(
        f"models load at {loading:g} %, {figures(name, loop)}"
        for loading, loops in worlds.items()
        for name, loop in loops.items()
    )
    parts = []
    for left, (loading, loops) in zip(LEFTS, worlds.items(), strict=True):
        over = Panel(left, 46, WIDTH, 44, max(LOADS))
        under = Panel(left, TOP, WIDTH, HEIGHT, highest)
        drawn = [(name, kind, loops[name]) for name, kind in COLORS.items()]
        parts += [
            words(left, 26, f"Replicas, if a GPU shows {loading:g} % while its model loads", "t"),
            over.steps(Curve("load", "w", load)),
            words(left + 4, 42, f"work: {LOADS[0]} % → {LOADS[1]} % → {LOADS[2]} % of one GPU"),
            under.axis(sorted({0, *(max(loop.sizes) for _, _, loop in drawn)})),
            *(under.steps(Curve(name, kind, loop.sizes)) for name, kind, loop in drawn[::-1]),
            times(under, range(0, MINUTES + 1, 20), MINUTES),
            *(
                words(left, TOP + HEIGHT + 44 + 20 * line, figures(name, loop), f"q {kind}")
                for line, (name, kind, loop) in enumerate(drawn)
            ),
        ]
    return picture(860, TOP + HEIGHT + 100, title, *parts)
