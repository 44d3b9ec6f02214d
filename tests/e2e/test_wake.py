"""From zero to one within seconds: by a demand, and by a second trigger.

KEDA polls every 300 s in these scenarios unless they say otherwise: it is the stream that wakes.
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


@pytest.mark.core
@pytest.mark.generations
async def test_a_trigger_of_kedas_beside_ours_wakes_at_its_poll(lab: Lab) -> None:
    triggers = waking.push(lab, "bert"), lab.router("bert")
    await lab.deploy("bert")
    await waking.asleep(lab, "bert", *triggers, polling_seconds=1)
    await lab.offer("bert", 120)
    await waking.wakes(lab, "bert")
    # From then on the GPUs decide: 120 % over 70 % per replica is 1.7.
    await lab.reaches("bert", 2)
