"""KEDA 2.16, the last version that reads only the integer fields of an answer."""

import pytest

from tests.e2e import generation
from tests.e2e.lab import Lab


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
    # On a busy machine a sample is late: five pods of six are then above their threshold of
    # 1.5, which is an answer, and 10 over the 2 of this KEDA are 5.
    allowed = {"coarse": (5, 6)}
    for name, (_, _, replicas) in cases.items():
        await lab.stays(name, *allowed.get(name, (replicas,)), for_seconds=4)
        await lab.offer(name, 0)
    for name in cases:
        await lab.reaches(name, 1)

    rounded = lab.scaler.events("trigger.target_rounded")
    assert [event["scaled_object"] for event in rounded] == ["coarse"], lab.story()
