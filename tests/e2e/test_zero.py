"""From zero, to what the arithmetic says, and back to zero."""

import pytest

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
