"""Claims about a new pod that takes its share of the work, by exporters alone.

Nothing says when it became Ready, so `warmup` stands in for that.
"""

import random

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from tests.stories.loops.variants import seeded

pytestmark = pytest.mark.slow

seeds = seeded(range(6))


@pytest.mark.parametrize("start_seconds", [90.0, 110.0, 115.0, 120.0])
@pytest.mark.parametrize(
    ("work", "replicas", "most"), [(130, 2, 2), (200, 3, 4), (270, 4, 4), (340, 5, 5)]
)
@pytest.mark.parametrize("loading", [0.0, 100.0])
async def test_a_climb_overshoots_only_for_full_replicas_where_starts_take_as_long_as_warmup(
    loading: float, work: float, replicas: int, most: int, start_seconds: float
) -> None:
    """What one pod carried alone is not added to what two share: full ones ask for two more."""
    loop = Loop(
        lambda t: work if t >= 0 else 60.0,
        EvidenceSource.EXPORTERS,
        start_seconds=start_seconds,
        loading=loading,
    )
    await loop.run(1800)
    assert (loop.sizes[-1], max(loop.sizes)) == (replicas, most)
    assert loop.seconds_until(2) <= 105


@seeds
@pytest.mark.parametrize("start_seconds", [110.0, 120.0, 130.0])
async def test_a_rollout_adds_one_replica_at_most(start_seconds: float, seed: int) -> None:
    chance = random.Random(seed)
    loop = Loop(
        lambda _: 65.0 * 4,
        EvidenceSource.EXPORTERS,
        replicas=4,
        start_seconds=start_seconds,
        loading=0.0,
    )
    await loop.run(300)
    for old in list(loop.pods):
        loop.surge()
        await loop.run(start_seconds + 15 * chance.randint(1, 3))
        loop.delete(old)
        await loop.run(30)
    await loop.run(900)
    assert max(loop.sizes) <= 5
    assert loop.sizes[-1] == min(loop.sizes) == 4
