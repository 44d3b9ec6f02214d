"""The HPA's own scale to zero, which Kubernetes 1.37 turned on, with the numbers of this scaler.

KEDA's adapter answers for a paused ScaledObject as well: then the HPA alone scales.
"""

import pytest
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler

from testbed.cluster import generation
from testbed.cluster.manifests import Manifest
from tests.e2e.lab import Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, the_hpa_has_a_number


async def handed_over(lab: Lab, workload: str) -> Manifest:
    """Pause a ScaledObject, and return the spec of the HPA that KEDA then deletes."""
    await the_hpa_has_a_number(lab, workload)
    hpa = await lab.client.get(HorizontalPodAutoscaler, f"keda-hpa-{workload}", namespace=lab.name)
    await lab.annotate(workload, paused="true")
    await lab.shows(workload, "hpa uid", "None")
    return dict(hpa.to_dict()["spec"])


async def scale_natively(lab: Lab, workload: str, spec: Manifest) -> None:
    """Create an HPA like this one that may go to zero by itself."""
    lab.timeline.note(f"an HPA of its own for {workload}")
    target = spec["scaleTargetRef"] | {"name": workload}
    await lab.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": workload, "namespace": lab.name},
            "spec": spec | {"minReplicas": 0, "scaleTargetRef": target},
        }
    )


@pytest.mark.generations
@pytest.mark.skipif(generation.KUBERNETES != "1.37", reason="there HPAs do not go to zero")
async def test_an_hpa_that_goes_to_zero_by_itself_is_woken_by_a_demand_and_by_no_gpu(
    lab: Lab,
) -> None:
    demand = {"demandQuery": lab.offered("requests"), "demandThreshold": "70"}
    await lab.offer("requests", 0)
    await lab.deploy("bert", replicas=2, load=120)
    await lab.deploy("rest")
    await lab.autoscale("bert", lab.gpu("bert", **demand))
    spec = await handed_over(lab, "bert")
    assert len(spec["metrics"]) == 2
    for workload in ("bert", "rest"):
        await scale_natively(lab, workload, spec)
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
