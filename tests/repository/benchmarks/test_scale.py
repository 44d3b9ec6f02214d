"""The benchmark of many triggers: its populations answer rightly, and a wrong answer fails."""

import pytest
from prometheus_client import generate_latest

from benchmarks import scale
from benchmarks.processes import ServerError
from tests.support.worlds import World, WorldPod


async def test_each_workload_is_answered_by_its_own_pods() -> None:
    async with scale.population(workloads=3, pods_each=2, others=4) as made:
        assert [right for _, right in made.asked] == [20, 22, 24]
        assert len(made.source.world.pods) == 10
        await made.same_poll()
        before = len(made.source.fetched)
        await made.anew()
        assert len(made.source.fetched) == before + 1


async def test_a_wrong_answer_fails() -> None:
    async with scale.population(workloads=2, pods_each=1) as made:
        made.asked[1] = made.asked[1][0], 99.0
        with pytest.raises(ServerError, match="expected 99"):
            await made.anew()


async def test_steady_pods_are_observed_as_any_others() -> None:
    pods = (WorldPod("bert-7b6667bd9-bbbbb", 40), WorldPod("bert-7b6667bd9-zzzzz", 50))
    for span in (300.0, 3600.0):
        assert scale.Steady(pods).observed(1000.0, span=span) == World(pods).observed(
            1000.0, span=span
        )


async def test_the_page_is_compared_with_what_prometheus_client_writes() -> None:
    async with scale.population(workloads=2, pods_each=1) as made:
        spent, plain = await scale.scraped(made.telemetry)
        assert spent >= 0
        assert plain >= 0
        assert b"keda_gpu_scaler_trigger_value{" in generate_latest(made.telemetry.registry)
