"""The scaler and KEDA come and go at load: the replicas stay, and the loop goes on by itself."""

from pathlib import Path

import pytest
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler

from tests.e2e import generation, keda, keda_log, streams
from tests.e2e.lab import Lab
from tests.e2e.name_server import NameServer
from tests.e2e.own_cluster import open_own_lab
from tests.e2e.product import Scaler
from tests.e2e.relay import Door
from tests.e2e.resources import ScaledObject
from tests.e2e.under_load import (
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    follows_more_load,
    run_under_load,
)


async def _follows_the_load_again(lab: Lab) -> None:
    await lab.offer("bert", MORE_LOAD)
    await follows_more_load(lab)


async def _is_asked(lab: Lab, scaler: Scaler) -> None:
    """Wait until a scaler is asked once more than until now."""
    before = len(scaler.events("decision.made"))

    async def asked() -> bool:
        return len(scaler.events("decision.made")) > before

    await lab.wait(asked, f"KEDA asks the scaler at {scaler.host}")


@pytest.mark.core
@pytest.mark.generations
async def test_a_dead_scaler_takes_nothing_away_and_follows_the_load_when_it_is_back(
    lab: Lab,
) -> None:
    await lab.deploy("gpt", replicas=REPLICAS, load=LOAD)
    await run_under_load(lab)
    # KEDA 2.20 can take the last error for idleness; its cooldown alone protects pods from that.
    await lab.autoscale("gpt", lab.gpu("gpt"), min_replicas=0, cooldown_seconds=120)
    await lab.becomes("gpt", "measured")
    # KEDA counts no failure of a scaler that is not there: these replicas never come. KEDA 2.16
    # counts nothing, and sets them at the first failure.
    if not generation.KEDA_IS_OLDEST:
        await lab.patch("gpt", fallback={"failureThreshold": 1, "replicas": 7})

    lab.timeline.note("the scaler is killed")
    lab.scaler.kill()
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.shows("bert", "keda Ready", "False TriggerError")
    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await _follows_the_load_again(lab)
    assert set(lab.path("gpt")) == {REPLICAS}, lab.story()


async def test_a_scaler_that_comes_after_the_scaled_object_is_found(lab: Lab) -> None:
    lab.scaler.stop()
    await lab.deploy("bert", replicas=REPLICAS, load=LOAD)
    await lab.autoscale("bert", lab.gpu("bert"), min_replicas=0)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.shows("bert", "keda Ready", "False ScaledObjectCheckFailed")
    lab.timeline.note("the scaler is started")
    await lab.scaler.start()
    await _follows_the_load_again(lab)


async def _complaint(lab: Lab, workload: str) -> str:
    """Return why the HPA has no number."""
    hpa = await lab.client.get(HorizontalPodAutoscaler, f"keda-hpa-{workload}", namespace=lab.name)
    conditions = (hpa.status and hpa.status.conditions) or []
    return " ".join(each.message or "" for each in conditions if each.type == "ScalingActive")


async def test_a_fresh_scaler_that_cannot_know_anything_yet_takes_nothing_away(lab: Lab) -> None:
    # Several, as KEDA fails by chance: a poll that follows a failed one counts as "inactive, no
    # error" when the HPA's request meets it, and no cooldown protects what was never active. The
    # HPA asks between polls, as it does by default.
    names = [f"bert-{index}" for index in range(8)]
    await lab.door.turn(Door.SHUT)
    for name in names:
        await lab.deploy(name, replicas=2, load=110)
        await lab.autoscale(
            name, lab.gpu(name), min_replicas=0, polling_seconds=5, initialCooldownPeriod=0
        )
    for name in names:
        await lab.becomes(name, "unknown")
    await lab.stays(names[0], 2, for_seconds=16)
    for name in names:
        assert "matching metrics" in await _complaint(lab, name), lab.story()
        assert lab.timeline.last(name, "keda Active") == "True ScalerActive", lab.story()
    lab.timeline.note("Prometheus can be reached")
    await lab.door.turn(Door.OPEN)
    for name in names:
        await lab.becomes(name, "measured")
    assert [lab.path(name) for name in names] == [[2]] * len(names), lab.story()


@pytest.mark.core
@pytest.mark.generations
async def test_two_scalers_behind_one_name_are_rolled_and_no_evaluation_fails(lab: Lab) -> None:
    first = lab.scaler
    second = Scaler(lab.directory, first.prometheus_url, host="127.0.0.2", port=first.port)
    async with NameServer("scaler.test", {first.host, second.host}).serving() as names:
        try:
            await second.start()
            await run_under_load(lab, scalerAddress=names.target(first.port))
            before = len(keda_log.failures(lab))
            for scaler in first, second:
                await _is_asked(lab, scaler)
                lab.timeline.note(f"the scaler at {scaler.host} is stopped")
                scaler.stop()
                await lab.stays("bert", REPLICAS, for_seconds=4)
                await scaler.start()
                lab.timeline.note(f"the scaler at {scaler.host} is started")
                await _is_asked(lab, scaler)
            await _follows_the_load_again(lab)
            assert keda_log.failures(lab)[before:] == [], lab.story()
        finally:
            second.stop()


async def test_a_new_scaler_behind_the_name_is_found_before_the_old_one_goes(lab: Lab) -> None:
    lab.scaler.stop()
    settings = {"CONNECTION_MAX_AGE": "5s"}
    old, new = (
        Scaler(lab.directory, lab.scaler.prometheus_url, f"127.0.0.{n}", lab.scaler.port, settings)
        for n in (1, 2)
    )
    async with NameServer("scaler.test", {old.host}).serving() as names:
        try:
            await old.start()
            lab.scaler = old
            await run_under_load(lab, scalerAddress=names.target(old.port))
            before = len(keda_log.failures(lab))
            await new.start()
            names.addresses = {old.host, new.host}
            lab.timeline.note("the name has a second address")
            await _is_asked(lab, new)
            names.addresses = {new.host}
            old.stop()
            lab.timeline.note("the first one is gone")
            await _follows_the_load_again(lab)
            assert keda_log.failures(lab)[before:] == [], lab.story()
        finally:
            old.stop()
            new.stop()


async def test_keda_killed_at_load_finds_everything_again(tmp_path: Path, lab_name: str) -> None:
    async with open_own_lab(lab_name, keda.current(), tmp_path) as (cluster, lab):
        await lab.deploy("pushed", replicas=REPLICAS, load=LOAD)
        await run_under_load(lab)
        await lab.autoscale("pushed", streams.push(lab, "pushed"), min_replicas=0)
        await lab.becomes("pushed", "measured")
        operator = cluster.programs["keda-operator"]
        lab.timeline.note("KEDA's operator is killed")
        operator.kill()
        await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
        lab.timeline.note("KEDA's operator is started")
        operator.start()
        await _follows_the_load_again(lab)

        # One stream ended with the old operator, and there is one more to end.
        await streams.ended(lab, "CANCELLED", 1)
        await lab.client.delete(ScaledObject, "pushed", namespace=lab.name)
        await streams.ended(lab, "CANCELLED", 2)
        assert lab.path("pushed") == [REPLICAS], lab.story()
