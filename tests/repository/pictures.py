"""The pictures that show a run of the product's own code: README.md shows one, and links to one.

`python -m tests.repository.pictures` draws them anew. Nothing in them depends on a clock, a machine
or a terminal.
"""

from collections.abc import Callable, Mapping
from statistics import mean

from keda_gpu_scaler.autoscaling.rules import MetricType
from keda_gpu_scaler.backtest.loop import STEP_SECONDS
from keda_gpu_scaler.backtest.recipes import Recipe
from keda_gpu_scaler.simulator.demo import driver, scenario, screen
from tests.repository.test_docs import ROOT
from tests.stories.loops.loop import Loop
from tests.support import demo_run, screencast, virtual_time
from tests.support.drawings import Curve, Panel, picture, times, words

IMAGES = ROOT / "docs" / "images"
MINUTES = 60
BEGINS, LOADS = (0, 5, 35), (40, 430, 130)
"""The load of the picture: from each of these minutes on it is so many percent of one GPU."""
LABELS = 10 * 60 // STEP_SECONDS
"""The step at which the labels of the curves begin."""
SCREEN_TICKS = 4
"""How many syncs of the HPA lie between two screens of the recording."""
SCREEN_SECONDS, LAST_SECONDS = 0.5, 4.0


def demo() -> str:
    """Return a recording of the demo; it stands still at the last answer to the highest load."""
    screens: list[screencast.Screen] = []
    answered: list[int] = []

    def record(frame: driver.Frame) -> None:
        if len(frame.ours) % SCREEN_TICKS == 0:
            shown = screen.screen(frame)
            screens.append(screencast.look(shown, screen.WIDTH, SCREEN_SECONDS))
            if frame.progress.phase == scenario.HIGHEST and frame.answer.value is not None:
                answered.append(len(screens) - 1)

    story = virtual_time.run(demo_run.play(record))
    last = screencast.Screen(screens[-1].drawn, screens[-1].lines, LAST_SECONDS)
    return screencast.svg([*screens[:-1], last], answered[-1], story, screen.WIDTH)


def offered(seconds: float) -> float:
    """Return the load that both workloads of the picture get, in percent of one GPU."""
    minutes = seconds / 60
    return LOADS[max(0, sum(minutes >= begin for begin in BEGINS) - 1)]


RECIPES: Mapping[str, Recipe | None] = {
    "this scaler": None,
    "sum() with AverageValue": Recipe(sum, MetricType.AVERAGE_VALUE),
    "avg() with Value": Recipe(mean, MetricType.VALUE),
    "avg() with AverageValue": Recipe(mean, MetricType.AVERAGE_VALUE),
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
        virtual_time.run(loop.run(MINUTES * 60, keda=True))
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


PICTURES: Mapping[str, Callable[[], str]] = {
    "demo.svg": demo,
    "replicas.svg": replicas,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
