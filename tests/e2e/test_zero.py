"""From zero, to what the arithmetic says, and back to zero."""

import pytest

from testbed.cluster import generation
from tests.e2e.lab import Lab


@pytest.mark.core
@pytest.mark.generations
async def test_a_workload_wakes_follows_its_load_and_goes_back_to_zero(lab: Lab) -> None:
    await lab.deploy("bert")
    triggers = lab.gpu("bert", threshold="70"), lab.router("bert")
    await lab.autoscale("bert", *triggers, min_replicas=0, max_replicas=8)
    await lab.stays("bert", 0, for_seconds=3)

    await lab.offer("bert", 250)
    # 250 % over 70 % per replica: 3.6, so 4; with 3 each would show 83 %, beyond the tolerance.
    await lab.reaches("bert", 4)
    await lab.stays("bert", 4, for_seconds=12)

    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)
    climb = lab.path("bert")
    top = climb.index(4)
    assert climb[: top + 1] == sorted(climb[: top + 1]), lab.story()
    assert climb[top:] == sorted(climb[top:], reverse=True), lab.story()


@pytest.mark.generations
@pytest.mark.skipif(not generation.KEDA_IS_OLDEST, reason="newer ones read fractions")
async def test_keda_that_reads_whole_numbers_only_follows_the_load(lab: Lab) -> None:
    # Workload: threshold, load, replicas. 150 over 22.5 are 6.7 and over 22 are 6.8, so 7 either
    # way. 12 over 1.5 would be 8: this KEDA divides by 2, and the scaler warns of that.
    cases = {"whole": ("70", 250, 4), "fraction": ("22.5", 150, 7), "coarse": ("1.5", 12, 6)}
    for name, (threshold, _, _) in cases.items():
        await lab.deploy(name, replicas=1)
        await lab.autoscale(name, lab.gpu(name, threshold=threshold))
    for name in cases:
        await lab.becomes(name, "measured")
    for name, (_, load, _) in cases.items():
        await lab.offer(name, load)
    for name, (_, _, replicas) in cases.items():
        await lab.reaches(name, replicas)
    rounded = lab.scaler.events("trigger.target_rounded")
    assert [event["scaled_object"] for event in rounded] == ["coarse"], lab.story()
