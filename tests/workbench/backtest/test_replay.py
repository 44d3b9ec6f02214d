"""A replay has the replicas of the loops, which go the whole way through the evaluator."""

import math
import random
from collections.abc import Callable

import pytest

from keda_gpu_scaler.autoscaling.rules import Hpa, Keda
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.workbench.backtest.recipes import RECIPES
from keda_gpu_scaler.workbench.backtest.replay import Outcome, Replay, clairvoyant, fixed, past
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import BEGIN, Loop
from testbed.triggers import demanding, spec
from tests.stories.loops.variants import seeded

STEPS = 240


def waves(chance: random.Random) -> list[float]:
    height, period = chance.uniform(50, 600), chance.uniform(40, 480)
    return [height * (1 + math.sin(step / period * 2 * math.pi)) for step in range(STEPS)]


def levels(chance: random.Random) -> list[float]:
    length = chance.choice((8, 20, 60))
    heights = [chance.uniform(0, 800) for _ in range(STEPS)]
    return [heights[step // length] for step in range(STEPS)]


def blocks(chance: random.Random) -> list[float]:
    height = chance.uniform(50, 600)
    return [0.0 if step // 80 % 2 else height for step in range(STEPS)]


def bursts(chance: random.Random) -> list[float]:
    mean = chance.uniform(50, 600)
    heights = [chance.expovariate(1 / mean) for _ in range(STEPS)]
    return [heights[step // 2] for step in range(STEPS)]


def replay(
    loads: list[float | None], trigger: TriggerSpec | None = None, **fields: object
) -> Outcome:
    work = Work(BEGIN, loads)
    arguments = {"hpa": Hpa(maximum=30), "keda": Keda(minimum=1, goes_to_zero=False), **fields}
    return Replay(work, trigger or spec(), **arguments).run()  # type: ignore[arg-type]


@pytest.mark.parametrize("curve", [waves, levels, blocks, bursts])
@seeded(range(8))
async def test_a_replay_has_the_replicas_of_the_whole_way(
    curve: Callable[[random.Random], list[float]], seed: int
) -> None:
    chance = random.Random(seed)
    loads = curve(chance)
    start, loading, to_zero = chance.choice((30, 60, 120, 300)), chance.choice((0, 100)), seed % 2
    loop = Loop(
        lambda seconds: loads[min(STEPS - 1, max(0, int(seconds // STEP_SECONDS)))],
        start_seconds=start,
        loading=loading,
        hpa=Hpa(maximum=30),
    )
    await loop.run(STEPS * STEP_SECONDS, keda=bool(to_zero))
    keda = Keda() if to_zero else Keda(minimum=1, goes_to_zero=False)
    outcome = replay([*loads], start_seconds=start, loading=loading, keda=keda)
    assert list(outcome.sizes) == loop.sizes
    assert outcome.overloaded_seconds == loop.overloaded_seconds
    assert outcome.replica_hours == pytest.approx(loop.replica_hours)


def test_what_is_unknown_changes_and_counts_nothing() -> None:
    known: list[float | None] = [300.0] * 60
    whole, holed = replay(known * 2), replay([*known, *[None] * 40, *known])
    assert holed.sizes[60:100] == (None,) * 40
    assert holed.sizes[:60] == whole.sizes[:60]
    assert holed.sizes[100] == holed.sizes[59] == 4
    assert holed.replica_hours == pytest.approx(whole.replica_hours, rel=0.05)


def test_the_demand_alone_scales_and_wakes() -> None:
    trigger = demanding("sum(requests)", threshold="", demandThreshold="10")
    loads = [0.0] * 30 + [250.0] * 60 + [0.0] * 100
    work = Work(BEGIN, loads, demands=[load / 5 for load in loads], replicas=[1])
    outcome = Replay(work, trigger, hpa=Hpa(maximum=30)).run()
    assert (outcome.sizes[29], max(filter(None, outcome.sizes)), outcome.sizes[-1]) == (0, 5, 0)
    assert outcome.wakes == 1
    assert 60 <= outcome.longest_wake_seconds <= 120


@pytest.mark.parametrize(("name", "most"), [("sum()", 5), ("avg() with Value", 5), ("avg()", 2)])
def test_recipes_scale_as_people_know_them(name: str, most: int) -> None:
    outcome = replay([300.0] * STEPS, recipe=RECIPES[name], loading=0.0)
    assert outcome.sizes[-1] == most


def test_what_needs_no_replay() -> None:
    work = Work(
        0.0,
        [50.0, 250.0, None, 90.0, 120.0],
        replicas=[1, 1, None, 1, 3],
        full=[False, True, False, False, False],
    )
    over = (0, 15, 15, 15, 15)
    assert fixed(work, 2) == (8 / 240, over, 0, 0, 0.0, (2, 2, None, 2, 2))
    assert clairvoyant(work, 15).sizes == (3, 3, None, 2, 2)
    assert clairvoyant(work, 15).overloaded_seconds == 0
    assert past(work) == (6 / 240, over, 1, 0, 0.0, (1, 1, None, 1, 3))
    assert work.coverage == 0.8
    assert work.saturation == 0.25
