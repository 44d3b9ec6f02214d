"""From zero to one within seconds, by a demand.

KEDA polls every 300 s until the workload is awake: it is the stream that wakes.
"""

import pytest

from tests.e2e import waking
from tests.e2e.lab import Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN

LONGER_THAN_A_REPETITION = 20
"""A stream that pushes for a workload without pods does so every 15 s."""


@pytest.mark.core
@pytest.mark.generations
async def test_a_demand_wakes_a_workload_keeps_it_up_and_lets_it_go(lab: Lab) -> None:
    demand = await lab.offers_nothing("requests")
    await lab.deploy("bert")
    await waking.asleep(lab, "bert", waking.push(lab, "bert", demandQuery=demand))
    await lab.offer("requests", 5)
    await waking.wakes(lab, "bert")

    await lab.becomes("bert", "measured")
    known = await waking.last_activity(lab, "bert")
    await lab.stays("bert", 1, for_seconds=LONGER_THAN_A_REPETITION)
    assert await waking.last_activity(lab, "bert") == known, lab.story()

    await waking.poll_often(lab, "bert")
    await lab.stays("bert", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.offer("requests", 0)
    await lab.reaches("bert", 0)
    assert lab.path("bert") == [0, 1, 0], lab.story()
