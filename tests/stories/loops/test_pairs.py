"""Claims about two Prometheus behind one address, which answer in turns."""

import random

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop
from testbed.loops.monitoring import Second
from tests.stories.loops.variants import seeded

seeds = seeded(range(6))


def _second(seed: int) -> Second:
    """Return one that answers half of the requests."""
    return Second(lambda request, at: random.Random(f"{seed} {request} {at}").random() < 0.5)


@seeds
async def test_one_of_a_pair_that_restarts_as_the_last_pod_goes_wakes_nothing(seed: int) -> None:
    """It did not see the pod go, and shows it for as long as it looks back."""
    loop = Loop(lambda t: 60.0 if t < 0 else 0.0, EvidenceSource.EXPORTERS)
    loop.monitoring.second = second = _second(seed)
    while loop.replicas:
        await loop.run(STEP_SECONDS, keda=True)
    gone = loop.pods[0].gone
    second.down = (gone - 4 * seed - 1, gone + 20 + 5 * seed)
    asleep = len(loop.sizes)
    await loop.run(1800, keda=True)
    assert set(loop.sizes[asleep:]) == {0}


@seeds
@pytest.mark.parametrize("late_seconds", [15, 30])
async def test_a_pair_with_clocks_a_scrape_apart_loses_no_busy_pod(
    late_seconds: float, seed: int
) -> None:
    loop = Loop(lambda _: 60.0, EvidenceSource.EXPORTERS, replicas=0)
    loop.monitoring.second = second = _second(seed)
    second.late_seconds = late_seconds
    await loop.run(300, keda=True)
    loop.wake()
    await loop.run(1800, keda=True)
    assert set(loop.sizes[300 // STEP_SECONDS :]) == {1}
