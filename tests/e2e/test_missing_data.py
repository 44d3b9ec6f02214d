"""Load that nobody shows: exporters that go away, and replicas that are not seen.

Missing data is never taken for idle: what the others show is a lower bound, which may raise the
number of replicas and never lowers it. Afterwards the load decides again, down to zero.
"""

import pytest
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e.lab import PATIENCE_SECONDS, Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import (
    LESS_LOAD,
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    SHORT_MAX_AGE,
    goes_to_zero,
    node_of_some,
    run_under_load,
)

AT_LEAST = 6
"""What four full replicas ask for: 400 % over 70 % per replica."""


async def _holds(lab: Lab, state: str) -> None:
    """Let the load fall while it is not known, for longer than the cooldown."""
    await lab.becomes("bert", state)
    await lab.offer("bert", LESS_LOAD)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.path("bert") == [REPLICAS], lab.story()


@pytest.mark.core
async def test_exporters_of_some_pods_that_are_gone_hold_every_replica_and_let_full_ones_raise(
    lab: Lab,
) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    lost = lab.exporters[await node_of_some(lab)]
    lab.timeline.note("an exporter is gone")
    await lost.turn(Door.SHUT)
    await _holds(lab, "partial")

    await lab.offer("bert", MORE_LOAD)
    await lab.wait(
        lambda: (lab.replicas("bert") or 0) >= AT_LEAST, f"bert has {AT_LEAST} replicas or more"
    )
    assert lab.path("bert") == sorted(lab.path("bert")), lab.story()
    lab.timeline.note("the exporter is back")
    await lost.turn(Door.OPEN)
    await lab.reaches("bert", 7)
    await goes_to_zero(lab)


@pytest.mark.core
@pytest.mark.parametrize("lab", [EvidenceSource.EXPORTERS], indirect=True, ids=str)
async def test_exporters_that_are_all_gone_hold_every_replica(lab: Lab) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    known = len(lab.decisions("bert"))
    everything = lab.prometheus.scrape_configs
    # Nothing marks their series as ended where their whole job goes: Prometheus shows their last
    # values, and an `up` of 1, for five minutes more.
    lab.timeline.note("the exporters go with their job")
    await lab.prometheus.reload(everything[1:])
    await _holds(lab, "unknown")
    lab.timeline.note("the exporters are back")
    await lab.prometheus.reload(everything)
    await lab.reaches("bert", 2)
    assert {made["active"] for made in lab.decisions("bert")[known:]} == {True}, lab.story()
    await goes_to_zero(lab)


@pytest.mark.core
async def test_replacements_that_wait_for_a_node_are_not_given_back(lab: Lab) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    kept = await node_of_some(lab)
    for node in lab.exporters:
        await _cordon(lab, node, is_cordoned=True)
    pods = [pod async for pod in lab.client.list(Pod, namespace=lab.name)]
    for pod in pods:
        assert pod.spec is not None
        assert pod.metadata is not None
        assert pod.metadata.name is not None
        if pod.spec.nodeName != kept:
            await lab.client.delete(Pod, pod.metadata.name, namespace=lab.name, grace_period=0)
    await lab.prometheus.wait_for('count(kube_pod_status_phase{phase="Pending"} == 1) >= 2')
    await lab.stays("bert", REPLICAS, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)

    for node in lab.exporters:
        await _cordon(lab, node, is_cordoned=False)
    await lab.reaches("bert", REPLICAS)
    assert lab.path("bert") == [REPLICAS], lab.story()


async def _cordon(lab: Lab, node: str, *, is_cordoned: bool) -> None:
    change = {"spec": {"unschedulable": is_cordoned}}
    await lab.client.patch(Node, node, change, patch_type=PatchType.MERGE)


@pytest.mark.core
async def test_a_wrong_name_removes_no_busy_pod_and_other_triggers_wake_from_zero(
    lab: Lab,
) -> None:
    """KEDA polls in the second in which the object is created, before the HPA asks."""
    await lab.deploy("ours", replicas=1, load=60)
    await lab.deploy("asleep")
    await lab.reaches("ours", 1)
    # A list in kube-state-metrics counts as complete after two minutes.
    await lab.prometheus.wait_for('up{job="kube-state-metrics"} offset 126s', PATIENCE_SECONDS)
    await lab.autoscale("ours", lab.gpu("ourz"), min_replicas=0, initialCooldownPeriod=0)
    triggers = lab.gpu("asleeq"), lab.router("asleep")
    await lab.autoscale("asleep", *triggers, min_replicas=0, initialCooldownPeriod=0)
    await lab.becomes("ours", "unknown")
    await lab.stays("ours", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.path("asleep") == [0], lab.story()
    assert {made["state"] for made in lab.decisions("ours")} == {"unknown"}
    meant = {
        "ours": "there is no deployment/ourz (did you mean ours?)",
        "asleep": "there is no deployment/asleeq (did you mean asleep?)",
    }
    for event in lab.scaler.events("trigger.workload_unlisted"):
        assert event["reason"].startswith(meant.pop(event["scaled_object"]))
    assert not meant

    await lab.offer("asleep", 30)
    await lab.reaches("asleep", 1)
    await lab.stays("asleep", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lab.timeline.note("the name is correct")
    await lab.autoscale("ours", lab.gpu("ours"), min_replicas=0)
    await lab.becomes("ours", "measured")
    assert lab.path("ours") == [1], lab.story()
