"""The HPA's own scale to zero, which Kubernetes 1.37 turned on, with the numbers of this scaler.

KEDA's adapter answers for a paused ScaledObject as well: then the HPA alone scales.
"""

import pytest
from lightkube.models.autoscaling_v2 import MetricSpec
from lightkube.types import PatchType

from tests.e2e import generation, router
from tests.e2e.lab import STABILIZATION_SECONDS, Lab
from tests.e2e.relay import Door
from tests.e2e.resources import ScaledObject
from tests.e2e.test_migration import autoscalers
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, the_hpa_has_a_number

PAUSED = {"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}}


async def handed_over(lab: Lab, workload: str) -> list[MetricSpec]:
    """Pause a ScaledObject, and return the metrics of the HPA that KEDA then deletes."""
    await the_hpa_has_a_number(lab, workload)
    (hpa,) = (await autoscalers(lab)).values()
    await lab.client.patch(
        ScaledObject, workload, PAUSED, namespace=lab.name, patch_type=PatchType.MERGE
    )

    async def gone() -> bool:
        return not await autoscalers(lab)

    await lab.wait(gone, "KEDA has deleted its HPA")
    assert hpa.spec is not None
    return hpa.spec.metrics or []


async def scale_natively(lab: Lab, workload: str, metrics: list[MetricSpec]) -> None:
    """Create an HPA that may go to zero by itself."""
    lab.timeline.note(f"an HPA of its own for {workload}")
    window = {"scaleDown": {"stabilizationWindowSeconds": STABILIZATION_SECONDS}}
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": workload, "namespace": lab.name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload},
            "minReplicas": 0,
            "maxReplicas": 12,
            "metrics": [each.to_dict() for each in metrics],
            "behavior": window,
        },
    }
    await lab.apply(hpa)


@pytest.mark.generations
@pytest.mark.skipif(generation.KUBERNETES != "1.37", reason="there HPAs do not go to zero")
async def test_an_hpa_that_goes_to_zero_by_itself_is_woken_by_a_demand_and_by_no_gpu(
    lab: Lab,
) -> None:
    demand = {"demandQuery": router.offered(lab.name, "requests"), "demandThreshold": "70"}
    await lab.offer("requests", 0)
    await lab.deploy("bert", replicas=2, load=120)
    await lab.deploy("rest")
    await lab.autoscale("bert", lab.gpu("bert", **demand))
    metrics = await handed_over(lab, "bert")
    assert len(metrics) == 2
    for workload in ("bert", "rest"):
        await scale_natively(lab, workload, metrics)
    await lab.stays("bert", 2, for_seconds=LONGER_THAN_THE_COOLDOWN)

    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)
    await lab.shows("bert", "hpa ScaledToZero", "True ScaledToZero")
    # What waits for GPUs shows on none: no pod, no GPU.
    await lab.offer("bert", 200)
    await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)

    await lab.offer("requests", 150)
    await lab.reaches("bert", 3)
    await lab.becomes("bert", "measured")
    lab.timeline.note("the exporters cannot be reached")
    for exporter in lab.exporters.values():
        await exporter.turn(Door.SHUT)
    await lab.offer("requests", 0)
    await lab.stays("bert", 3, for_seconds=LONGER_THAN_THE_COOLDOWN)

    # The HPA wakes only what it has put to rest itself.
    assert lab.path("rest") == [0], lab.story()
    await lab.shows("rest", "hpa ScalingActive", "False ScalingDisabled")
