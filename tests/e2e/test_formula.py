"""A trigger in a formula of scalingModifiers: KEDA judges activity by the formula's value alone.

A hold gives the formula no value, which KEDA takes for inactive. With `forFormula` its polls get a
number that says what IsActive says, and the HPA, which could scale by it, gets none.
"""

from typing import Any

import pytest

from testbed.cluster import manifests
from tests.e2e.lab import COOLDOWN_SECONDS, Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import (
    LESS_LOAD,
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    SHORT_MAX_AGE,
    deploy_under_load,
    follows_more_load,
    goes_to_zero,
    node_of_some,
    the_hpa_has_a_number,
)

ALONE = "gpu / 70"
WITH_QUEUE = "gpu / 70 + queue / 1000"
"""The queue is above 0 throughout, and adds less than a tenth of a replica. KEDA rounds the value
to thousandths: less is 0."""


def advanced(formula: str) -> manifests.Manifest:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 4}}
    return {
        "scalingModifiers": {"formula": formula, "target": "1"},
        "horizontalPodAutoscalerConfig": {"behavior": behavior},
    }


async def autoscale(lab: Lab, formula: str, min_replicas: int = 0, **fields: Any) -> None:
    """Let a formula scale the workload, with the key and with zero allowed."""
    triggers = [lab.gpu("bert", forFormula="true", **SHORT_MAX_AGE) | {"name": "gpu"}]
    if "queue" in formula:
        await lab.offer("queue", 50)
        triggers.append(queue(lab, lab.offered("queue")))
        await lab.prometheus.wait_for(f"{lab.offered('queue')} > 0")
    await lab.autoscale(
        "bert", *triggers, min_replicas=min_replicas, advanced=advanced(formula), **fields
    )


def queue(lab: Lab, query: str) -> manifests.Manifest:
    trigger = lab.keda_prometheus(query, threshold="1000000", ignoreNullValues="false")
    return trigger | {"name": "queue"}


async def run_by_formula(lab: Lab, formula: str, **fields: Any) -> None:
    await deploy_under_load(lab)
    await autoscale(lab, formula, **fields)
    await the_hpa_has_a_number(lab)


@pytest.mark.core
async def test_a_formula_alone_keeps_its_replicas_while_prometheus_is_cut_off(lab: Lab) -> None:
    await run_by_formula(lab, ALONE)
    lab.timeline.note("Prometheus is cut off")
    await lab.door.turn(Door.SHUT)
    await lab.offer("bert", MORE_LOAD)
    await lab.becomes("bert", "unknown")
    await lab.stays("bert", REPLICAS, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)
    lab.timeline.note("Prometheus is back")
    await lab.door.turn(Door.OPEN)
    await follows_more_load(lab)
    await goes_to_zero(lab)


@pytest.mark.core
async def test_a_formula_with_a_queue_keeps_its_replicas_while_exporters_are_down(
    lab: Lab,
) -> None:
    await run_by_formula(lab, WITH_QUEUE)
    for exporter in lab.exporters.values():
        await exporter.turn(Door.SHUT)
    await lab.offer("bert", LESS_LOAD)
    await lab.wait(
        lambda: lab.decisions("bert")[-1]["value"] is None, "nothing is known of the load"
    )
    await lab.stays("bert", REPLICAS, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)
    assert lab.path("bert") == [REPLICAS], lab.story()
    for exporter in lab.exporters.values():
        await exporter.turn(Door.OPEN)
    await lab.reaches("bert", 2)


async def test_one_exporter_of_several_that_is_down_takes_no_replica_of_a_formula(
    lab: Lab,
) -> None:
    await run_by_formula(lab, WITH_QUEUE)
    lost = lab.exporters[await node_of_some(lab)]
    await lost.turn(Door.SHUT)
    await lab.becomes("bert", "partial")
    await lab.offer("bert", LESS_LOAD)
    await lab.stays("bert", REPLICAS, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)
    assert lab.path("bert") == [REPLICAS], lab.story()
    await lost.turn(Door.OPEN)
    await lab.reaches("bert", 2)


async def test_a_formula_holds_through_a_rollout_with_a_surge_and_adds_no_replica(
    lab: Lab,
) -> None:
    """A number of ours in the HPA during a hold would adopt the surge, pod by pod."""
    await lab.deploy(
        "bert",
        replicas=REPLICAS,
        load=LOAD,
        startup_seconds=COOLDOWN_SECONDS,
        strategy={"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}},
    )
    await lab.reaches("bert", REPLICAS)
    await autoscale(lab, WITH_QUEUE)
    await the_hpa_has_a_number(lab)
    await lab.door.turn(Door.SHUT)
    await lab.becomes("bert", "unknown")
    began = await lab.roll_out("bert")
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.path("bert", began) == [REPLICAS], lab.story()
    assert set(lab.timeline.path("bert", "pods", began)) - {REPLICAS}, lab.story()


async def test_a_formula_of_an_object_just_created_keeps_pods_that_start(lab: Lab) -> None:
    await lab.deploy("bert", replicas=2, startup_seconds=3 * COOLDOWN_SECONDS)
    await lab.is_known("bert")
    await autoscale(lab, ALONE, initialCooldownPeriod=0)
    await lab.becomes("bert", "starting")
    await lab.reaches("bert", 2)
    assert lab.path("bert") == [2], lab.story()
    await goes_to_zero(lab)


async def test_a_formula_goes_to_idle_replicas_only_when_it_is_idle(lab: Lab) -> None:
    await run_by_formula(lab, ALONE, min_replicas=2, idleReplicaCount=0)
    await lab.door.turn(Door.SHUT)
    await lab.becomes("bert", "unknown")
    await lab.stays("bert", REPLICAS, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)
    await lab.door.turn(Door.OPEN)
    await goes_to_zero(lab)


@pytest.mark.parametrize("by", ["queue", "demand"])
async def test_a_formula_wakes_from_zero_follows_the_load_and_goes_back(lab: Lab, by: str) -> None:
    await lab.deploy("bert")
    wakes_by = await lab.offers_nothing("door")
    demand = {"demandQuery": wakes_by} if by == "demand" else {}
    triggers = [lab.gpu("bert", forFormula="true", **demand) | {"name": "gpu"}]
    triggers += [queue(lab, wakes_by)] if by == "queue" else []
    formula = WITH_QUEUE if by == "queue" else ALONE
    await lab.autoscale("bert", *triggers, min_replicas=0, advanced=advanced(formula))
    await lab.stays("bert", 0, for_seconds=3)
    await lab.offer("door", 5)
    await lab.reaches("bert", 1)
    await lab.offer("bert", 120)
    await lab.reaches("bert", 2)
    await lab.offer("bert", 0)
    await lab.offer("door", 0)
    await lab.reaches("bert", 0)
    path = lab.path("bert")
    assert path[: path.index(2) + 1] == [0, 1, 2], lab.story()
