"""The scaler and KEDA come and go at load: the replicas stay, and the loop goes on by itself."""

import asyncio
from pathlib import Path

import pytest

from testbed.cluster.cluster import Cluster
from testbed.cluster.resources import ScaledObject
from tests.e2e import keda_log, waking
from tests.e2e.furnishing import open_lab
from tests.e2e.lab import Lab
from tests.e2e.product import Scaler
from tests.e2e.relay import Relay
from tests.e2e.under_load import (
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    deploy_under_load,
    follows_more_load,
    run_under_load,
    the_hpa_has_a_number,
)


async def _follows_the_load_again(lab: Lab) -> None:
    await lab.offer("bert", MORE_LOAD)
    await follows_more_load(lab)


@pytest.mark.core
@pytest.mark.generations
async def test_a_dead_scaler_takes_nothing_away_and_follows_the_load_when_it_is_back(
    lab: Lab,
) -> None:
    await deploy_under_load(lab)
    # With 0, KEDA 2.20 and 2.21 may take a poll that fails beside a request of the HPA for idle.
    await lab.autoscale("bert", lab.gpu("bert"), min_replicas=1)
    await the_hpa_has_a_number(lab)
    lab.timeline.note("the scaler is killed")
    lab.scaler.kill()
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.shows("bert", "keda Ready", "False TriggerError")
    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await _follows_the_load_again(lab)


async def test_a_scaler_that_comes_after_the_scaled_object_is_found(lab: Lab) -> None:
    lab.scaler.stop()
    await lab.deploy("bert", replicas=REPLICAS, load=LOAD)
    await lab.autoscale("bert", lab.gpu("bert"), min_replicas=0)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.shows("bert", "keda Ready", "False ScaledObjectCheckFailed")
    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await _follows_the_load_again(lab)


async def _is_asked(lab: Lab, scaler: Scaler) -> None:
    """Wait until a scaler is asked once more than until now."""
    before = len(scaler.events("decision.made"))
    await lab.wait(
        lambda: len(scaler.events("decision.made")) > before,
        f"KEDA asks the scaler at port {scaler.port}",
    )


@pytest.mark.core
@pytest.mark.generations
async def test_two_scalers_behind_one_address_are_rolled_and_no_evaluation_fails(lab: Lab) -> None:
    """The address leads each new connection to one that is ready, as that of a Service does."""
    first = lab.scaler
    second = Scaler(lab.directory, first.prometheus_url)
    async with Relay(first.port) as service:
        try:
            await second.start()
            await run_under_load(lab, scalerAddress=service.address)
            before = len(keda_log.failures(lab))
            for old, new in (first, second), (second, first):
                await _is_asked(lab, old)
                lab.timeline.note(f"the scaler at port {old.port} is stopped")
                service.target = new.port
                await asyncio.to_thread(old.stop)
                await _is_asked(lab, new)
                await lab.stays("bert", REPLICAS, for_seconds=4)
                await old.start()
            await _follows_the_load_again(lab)
            assert keda_log.failures(lab)[before:] == [], lab.story()
        finally:
            second.stop()


@pytest.mark.xdist_group("live")
async def test_keda_killed_at_load_finds_everything_again_and_what_began_meanwhile(
    live: Cluster, tmp_path: Path, lab_name: str
) -> None:
    async with open_lab(lab_name, live.kubeconfig, tmp_path) as lab:
        await lab.deploy("asleep")
        demand = await lab.offers_nothing("requests")
        await run_under_load(lab)
        # KEDA polls it when it starts and then every 300 s.
        await waking.asleep(lab, "asleep", waking.push(lab, "asleep", demandQuery=demand))
        operator = live.programs["keda-operator"]
        lab.timeline.note("KEDA's operator is killed")
        operator.kill()
        await waking.ended(lab, "CANCELLED", 1)
        await lab.offer("requests", 5)
        await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
        lab.timeline.note("KEDA's operator is started")
        operator.start()
        await waking.wakes(lab, "asleep")
        await _follows_the_load_again(lab)

        await lab.client.delete(ScaledObject, "asleep", namespace=lab.name)
        await waking.ended(lab, "CANCELLED", 2)
