"""Pods that get their devices by ResourceClaims, allocated by the real scheduler.

No exporter names them here: so it is with dcgm-exporter without KUBERNETES_ENABLE_DRA.
"""

import pytest
from lightkube.resources.apps_v1 import Deployment
from lightkube.types import PatchType

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import claims, manifests
from tests.e2e.lab import Lab
from tests.e2e.under_load import (
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    REPLICAS,
    SHORT_MAX_AGE,
    the_hpa_has_a_number,
)

SHARE = LOAD / 2
"""What the two pods that exporters show have of the load; two replicas would do for it alone."""
OF_THE_CLUSTER = (
    pytest.param(EvidenceSource.KUBE_STATE_METRICS, marks=pytest.mark.core),
    EvidenceSource.KUBERNETES,
)


async def _move_two(lab: Lab) -> None:
    """Replace the request for a GPU by a claim in two pods, and go no further in that rollout."""
    bert = manifests.workload(
        "Deployment", lab.name, "bert", replicas=REPLICAS, gpus=1, annotations={"e2e/startup": "0s"}
    )
    change = {
        "minReadySeconds": 500,
        "template": claims.pod_template(bert["spec"]["template"]),
    }
    await lab.client.patch(
        Deployment, "bert", {"spec": change}, namespace=lab.name, patch_type=PatchType.MERGE
    )

    async def have_moved() -> bool:
        return len(await claims.pods_with_devices(lab)) == REPLICAS // 2

    await lab.wait(have_moved, "two pods have a device by a claim")


@pytest.mark.parametrize("lab", OF_THE_CLUSTER, indirect=True, ids=str)
async def test_pods_that_moved_to_claims_take_nothing_away_before_they_are_shown(lab: Lab) -> None:
    two_at_once = {"rollingUpdate": {"maxUnavailable": REPLICAS // 2, "maxSurge": 0}}
    await lab.deploy("bert", replicas=REPLICAS, load=LOAD, strategy=two_at_once)
    await lab.reaches("bert", REPLICAS)
    trigger = lab.gpu("bert", **SHORT_MAX_AGE)
    await lab.autoscale("bert", trigger, min_replicas=0, max_replicas=REPLICAS)
    await the_hpa_has_a_number(lab)
    async with claims.published(lab):
        await _move_two(lab)
        await lab.offer("bert", SHARE)
        await lab.stays("bert", REPLICAS, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)
        assert lab.path("bert") == [REPLICAS], lab.story()
        held = lab.decisions("bert")[-1]
        assert (held["value"], held["active"]) == (None, True), lab.story()

        lab.timeline.note("the operator says that these claims are for no GPU")
        await lab.scaler.restart(CLAIMS_WITHOUT_GPUS=claims.TEMPLATE)
        await lab.becomes("bert", "measured")
        await lab.reaches("bert", 2)
