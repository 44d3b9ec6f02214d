"""Claims about replicas that were asked for and are not there yet: they are not given back."""

import random
from collections.abc import Callable

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from testbed.triggers import spec
from tests.stories.loops.variants import seeded, told

pytestmark = pytest.mark.slow

seeds = seeded(range(1, 7))


def _about(level: float, seed: int, part: float = 0.03) -> Callable[[float], float]:
    """Return work that differs a little from half minute to half minute."""
    chance, drawn = random.Random(seed), dict[int, float]()
    return lambda t: drawn.setdefault(int(t // 30), level * chance.uniform(1 - part, 1 + part))


async def _without_nine(seed: int, evidence: EvidenceSource, evicted_after: float = 0.0) -> Loop:
    """Return the loop of twelve replicas, of which nine have just lost their nodes."""
    loop = Loop(_about(720.0, seed), evidence, replicas=12, seed=seed)
    await loop.run(600)
    loop.node_seconds = 360.0
    loop.lose(*loop.pods[:9], evicted_after=evicted_after)
    return loop


@told
@seeds
@pytest.mark.parametrize("evicted_after", [0.0, 300.0])
async def test_lost_nodes_take_no_replica_that_is_still_to_come(
    evicted_after: float, seed: int, evidence: EvidenceSource
) -> None:
    """Nine of twelve are gone; what the other three do, 300 %, would be the work of five."""
    loop = await _without_nine(seed, evidence, evicted_after)
    await loop.run(3600)
    assert min(loop.sizes) >= 11
    assert loop.overloaded_seconds <= evicted_after + 360 * 1.2 + 60 * 1.2 + 30


@told
@seeds
async def test_replicas_without_a_node_are_named_within_a_minute_and_until_they_have_one(
    seed: int, evidence: EvidenceSource
) -> None:
    """Half of the minute is that of kube-state-metrics, which is scraped every 30 s."""
    loop = await _without_nine(seed, evidence)
    await loop.run(60)
    waiting = sum(loop.clock < pod.placed for pod in loop.pods)
    assert loop.decisions[-1].unschedulable == waiting > 1
    words = f"; {loop.replicas} wanted, {waiting} unschedulable for up to "
    assert words in loop.decisions[-1].reason
    await loop.run(600)
    assert loop.decisions[-1].unschedulable == 0


@seeds
async def test_preempted_pods_are_replaced_one_after_the_other(seed: int) -> None:
    loop = Loop(_about(480.0, seed), replicas=8, seed=seed)
    await loop.run(600)
    loop.node_seconds = 300.0
    for _ in range(3):
        loop.lose(*[pod for pod in loop.pods if pod.works(loop.clock)][:2])
        await loop.run(200)
    await loop.run(3600)
    assert min(loop.sizes) >= 7


@seeds
async def test_load_that_rises_while_extra_pods_start_does_not_wait_for_them(seed: int) -> None:
    """The extra pods of a rolling update are not among the replicas that its owner asks for."""
    loop = Loop(lambda t: 480.0 if t < 700 else 1600.0, replicas=8, seed=seed)
    await loop.run(600)
    loop.start_seconds = 420.0
    for _ in range(4):
        loop.surge()
    await loop.run(240)
    assert loop.sizes[-1] > 8


@seeds
async def test_a_replica_that_finds_no_node_is_given_back_once_it_is_not_needed(seed: int) -> None:
    loop = Loop(lambda t: 255.0 if t < 900 else 180.0, replicas=3, seed=seed)
    loop.node_seconds = 1e6
    await loop.run(900)
    assert loop.sizes[-1] == 4
    await loop.run(900)
    assert loop.sizes[-1] == 3


@seeds
async def test_a_shortage_of_gpus_for_two_hours_gives_nothing_back_while_the_others_are_full(
    seed: int,
) -> None:
    """Far beyond startTimeout: what is given back would be asked for again."""
    loop = Loop(_about(720.0, seed), replicas=12, seed=seed)
    await loop.run(600)
    loop.node_seconds = 7200.0
    loop.lose(*loop.pods[:9])
    await loop.run(10_800)
    assert min(loop.sizes) >= 11


@seeds
async def test_beyond_start_timeout_what_finds_no_node_is_given_back_by_those_that_are_not_full(
    seed: int,
) -> None:
    loop = Loop(_about(240.0, seed), replicas=3, seed=seed, trigger=spec(startTimeout="10m"))
    loop.node_seconds = 1e6
    loop.resize(6)
    await loop.run(540)
    assert min(loop.sizes) == 6
    await loop.run(900)
    assert loop.sizes[-1] == 4


@seeds
async def test_survivors_that_flicker_around_the_threshold_ask_for_one_more_at_most(
    seed: int,
) -> None:
    """More than 10 % above at one instant is a reason for one, for the HPA's 300 s."""
    loop = Loop(_about(210.0, seed, 0.12), replicas=3, seed=seed)
    loop.node_seconds = 3600.0
    loop.resize(5)
    await loop.run(7200)
    assert set(loop.grown[1:]) <= {3, 4}
    assert len(loop.grown) <= 1 + 7200 / 300


@seeds
async def test_a_short_lull_while_replicas_are_waited_for_gives_none_of_them_back(
    seed: int,
) -> None:
    """The HPA remembers no recommendation of the time in which it was told to hold."""
    chance = random.Random(seed)
    lulls = [1500 + 400 * n + chance.uniform(0, 100) for n in range(4)]
    loop = Loop(
        lambda t: 90.0 if any(0 <= t - lull < 110 for lull in lulls) else 720.0,
        replicas=11,
        seed=seed,
    )
    await loop.run(900)
    loop.node_seconds = 2400.0
    loop.lose(*loop.pods[:8])
    await loop.run(2100)
    assert min(loop.sizes) == 11


@seeds
async def test_the_average_waits_like_the_sum(seed: int) -> None:
    """It is not what the replicas do, but no reason to do with fewer of them either."""
    loop = Loop(_about(720.0, seed), replicas=12, seed=seed, trigger=spec(aggregation="average"))
    loop.node_seconds = 360.0
    loop.lose(*loop.pods[:9])
    await loop.run(300)
    assert {one.value for one in loop.decisions[8:]} == {None}
    assert "9 more of its replicas are not Ready" in loop.decisions[-1].reason
