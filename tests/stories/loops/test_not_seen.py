"""Claims about Ready pods whose GPUs no exporter shows: they work, and are never left out."""

import math

import pytest

from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop
from testbed.triggers import spec
from tests.stories.loops.variants import seeded, told

pytestmark = pytest.mark.slow

seeds = seeded(range(1, 7))


@told
@seeds
@pytest.mark.parametrize("dark", [2, 3])
async def test_pods_on_nodes_without_an_exporter_are_not_left_out(
    dark: int, seed: int, evidence: EvidenceSource
) -> None:
    """Of four that share a GPU, one may have the labels."""
    loop = Loop(
        lambda _: 240.0, evidence, replicas=4, seed=seed, has_exporter=lambda number: number >= dark
    )
    await loop.run(7200)
    assert set(loop.sizes) == {4}
    assert not loop.overloaded_seconds
    assert {one.active for one in loop.decisions} == {True}
    assert loop.decisions[-1].unseen == tuple(pod.name for pod in loop.pods[:dark])
    assert loop.pods[0].name in loop.decisions[-1].reason


@seeds
async def test_replicas_grow_with_the_load_although_two_are_not_seen(seed: int) -> None:
    loop = Loop(
        lambda t: 240.0 if t < 600 else 480.0,
        replicas=4,
        seed=seed,
        has_exporter=lambda number: number > 1,
    )
    await loop.run(3600)
    assert loop.sizes[-1] == max(loop.sizes) == 7


@seeds
async def test_idle_replicas_are_given_back_beside_those_that_are_not_seen(seed: int) -> None:
    """What is not seen counts as on target, so the last step to zero is not done."""
    loop = Loop(
        lambda t: 240.0 if t < 1800 else 0.0,
        replicas=4,
        seed=seed,
        has_exporter=lambda number: number != 0,
    )
    await loop.run(7200, keda=True)
    assert loop.sizes[-1] <= 2


@told
@seeds
@pytest.mark.parametrize("replicas", [2, 3, 4])
async def test_a_dead_exporter_does_not_stop_the_growth_of_those_that_are_seen(
    replicas: int, seed: int, evidence: EvidenceSource
) -> None:
    loop = Loop(
        lambda t: 60.0 * replicas if t < 300 else 800.0, evidence, replicas=replicas, seed=seed
    )
    await loop.run(200)
    loop.pods[0].silent = loop.clock
    await loop.run(2400)
    assert 10 <= loop.sizes[-1] == max(loop.sizes) <= 13
    assert loop.overloaded_seconds <= 900


@seeds
async def test_a_gpu_that_shows_nothing_to_be_believed_does_not_stop_growth_either(
    seed: int,
) -> None:
    loop = Loop(lambda t: 120.0 if t < 300 else 800.0, replicas=2, seed=seed)
    loop.pods[0].refused_since = loop.clock + 200
    await loop.run(2400)
    assert loop.sizes[-1] >= 11
    loop.offered = lambda _: 0.0
    await loop.run(2400, keda=True)
    assert {one.active for one in loop.decisions[-20:]} == {True}
    whose = f"{loop.pods[0].gpus[0]} of {loop.pods[0].name}"
    assert f"no number of {whose} can be believed" in loop.decisions[-1].reason


@seeds
@pytest.mark.parametrize("replicas", [2, 3, 4])
async def test_where_no_new_pod_is_seen_growth_ends_at_what_the_known_ones_could_use(
    replicas: int, seed: int
) -> None:
    loop = Loop(
        lambda t: 60.0 * replicas if t < 300 else 2000.0,
        replicas=replicas,
        seed=seed,
        has_exporter=lambda number: number < replicas,
    )
    await loop.run(200)
    loop.pods[0].silent = loop.clock
    await loop.run(7200)
    assert replicas < max(loop.sizes) <= math.ceil(1.1 * 100 * replicas / 70)


@seeds
async def test_a_node_that_is_lost_adds_nothing(seed: int) -> None:
    """Its pod is not Ready: the other carries the work that there is, and shows it."""
    loop = Loop(lambda _: 95.0, replicas=2, seed=seed)
    await loop.run(300)
    loop.lose(loop.pods[0], evicted_after=600.0)
    await loop.run(600)
    assert set(loop.sizes) == {2}
    assert loop.decisions[-1].state is State.PARTIAL
    await loop.run(1200)
    assert loop.sizes[300 // STEP_SECONDS :].count(2) == len(loop.sizes) - 300 // STEP_SECONDS


@told
@seeds
async def test_a_replica_that_left_unseen_takes_no_other_with_it(
    seed: int, evidence: EvidenceSource
) -> None:
    """What it did is not in the sum before, and not yet in what the others show."""
    for work in (220.0, 235.0, 250.0, 285.0):
        loop = Loop(
            lambda t, work=work: 360.0 if t < 300 else work,  # type: ignore[misc]  # a default
            evidence,
            replicas=6,
            seed=seed,
            has_exporter=lambda number: number > 2,
            trigger=spec(window="4m"),
            hpa=Hpa(maximum=20, stabilization_seconds=0),
        )
        await loop.run(1800)
        assert min(loop.sizes) >= math.ceil(work / 77), (work, loop.grown)
