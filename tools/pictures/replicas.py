"""The replicas that this scaler and recipes ask for over an hour of the same load."""

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
LABELS = 10 * 60 // STEP_SECONDS
"""The step at which the labels of the curves begin."""


def offered(seconds: float) -> float:
    """Return the load that both workloads of the picture get, in percent of one GPU."""
    minutes = seconds / 60
    return LOADS[max(0, sum(minutes >= begin for begin in BEGINS) - 1)]


RECIPES: Mapping[str, Recipe | None] = {
    "this scaler": None,
    "sum() with AverageValue": recipes.SUM,
    "avg() with Value": recipes.AVERAGE_AS_VALUE,
    "avg() with AverageValue": recipes.AVERAGE,
}


def beside(loading: float = 0.0) -> Mapping[str, Loop]:
    """Return the loops of this scaler and of the recipes, after an hour of the same load.

    Without `loading` it is as good for the recipes as it can be: a model that loads shows 0 %, and
    a pod that is deleted is gone at once.
    """
    loops = {
        name: Loop(offered, recipe=recipe, loading=loading, grace_seconds=0)
        for name, recipe in RECIPES.items()
    }
    for loop in loops.values():
        loop.keda.last_active = loop.clock
        asyncio.run(loop.run(MINUTES * 60, keda=True))
    return loops


def figures(loop: Loop) -> str:
    """Return what came of a loop, in words."""
    return f"{loop.replica_hours:.2f} h, overloaded {loop.overloaded_seconds / 60:.2g} min"


def replicas() -> str:
    """Return the replicas of all over the load that is offered."""
    loops = beside()
    ours, total, mean_as_value, average = loops.values()
    if total.sizes != mean_as_value.sizes:
        raise ValueError("the two corrected recipes differ: each needs a curve")
    load = [offered(STEP_SECONDS * number) for number in range(MINUTES * 60 // STEP_SECONDS)]
    over, under = Panel(64, 46, 766, 60, max(LOADS)), Panel(64, 150, 766, 150, max(ours.sizes))
    curves = (
        Curve("sum(), avg() as Value", "l", total.sizes),
        Curve("this scaler", "o", ours.sizes),
        Curve("avg() with AverageValue", "u", average.sizes),
    )
    most = {max(curve.values) for curve in curves}
    title = "; ".join(
        f"{name}: at most {max(loop.sizes)} replicas, {figures(loop)}"
        for name, loop in loops.items()
    )
    return picture(
        860,
        330,
        title,
        words(12, 26, "Offered load, in percent of one GPU", "t"),
        over.axis(sorted(set(LOADS)), " %"),
        over.steps(Curve("load", "l", load)),
        words(12, 134, "Replicas at threshold 70: replica-hours and overloaded minutes", "t"),
        under.axis(sorted({0, *most})),
        *(under.steps(curve) for curve in curves),
        *(
            under.label(Curve(f"{curve.name}: {figures(loop)}", curve.kind, curve.values), at, down)
            for curve, loop, at, down in zip(
                curves, (total, ours, average), (LABELS,) * 3, (18, 38, -8), strict=True
            )
        ),
        times(under, range(0, MINUTES + 1, 10), MINUTES),
    )
