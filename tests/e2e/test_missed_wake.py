"""A demand begins while the scaler, KEDA or the API server is away, and still wakes its workload.

KEDA polls when it starts and then every 300 s: where it does not start, only a stream can wake.
"""

from pathlib import Path

from tests.e2e import keda, streams, waking
from tests.e2e.lab import Lab
from tests.e2e.own_cluster import open_own_lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN


async def test_a_demand_that_began_while_the_scaler_was_away_wakes_when_it_is_back(
    lab: Lab,
) -> None:
    await _sleeps(lab)
    lab.timeline.note("the scaler is killed")
    lab.scaler.kill()
    await lab.offer("requests", 5)
    await lab.stays("bert", 0, for_seconds=3)
    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await waking.wakes(lab, "bert")


async def test_a_demand_that_began_while_keda_was_away_wakes_when_it_is_back(
    tmp_path: Path, lab_name: str
) -> None:
    async with open_own_lab(lab_name, keda.current(), tmp_path) as (cluster, lab):
        await _sleeps(lab)
        operator = cluster.programs["keda-operator"]
        lab.timeline.note("KEDA's operator is killed")
        operator.kill()
        await lab.offer("requests", 5)
        await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)
        lab.timeline.note("KEDA's operator is started")
        operator.start()
        await waking.wakes(lab, "bert")


async def test_a_push_that_keda_loses_with_the_api_server_is_repeated(
    tmp_path: Path, lab_name: str
) -> None:
    async with open_own_lab(lab_name, keda.current(), tmp_path) as (cluster, lab):
        await _sleeps(lab)
        api_server = cluster.programs["kube-apiserver"]
        lab.timeline.note("the API server is killed")
        api_server.kill()
        await lab.offer("requests", 5)

        async def found() -> bool:
            return bool(lab.decisions("bert")[-1]["active"])

        await lab.wait(found, "the scaler finds that bert is active")
        # The stream pushes in that moment, and KEDA gives up at once.
        await lab.stays("bert", 0, for_seconds=3)
        lab.timeline.note("the API server is started")
        api_server.start()
        await waking.wakes(lab, "bert")


async def _sleeps(lab: Lab) -> None:
    await lab.deploy("bert")
    demand = await lab.offers_nothing("requests")
    await waking.asleep(lab, "bert", streams.push(lab, "bert", demandQuery=demand))
