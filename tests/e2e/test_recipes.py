"""The recipes of docs/migrate on the real KEDA: one scenario each, with its example and exporter.

The recipes count `pods * utilization / target`, rounded up: 23 % at a target of 20 % is two pods.
The recipe with alerts is in test_webhook.py.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod

from tests.e2e.lab import SHORT_TIMES, STABILIZATION_SECONDS, Lab
from tests.repository.test_examples import EXAMPLES, read

PATHS = {path.stem: path for path in EXAMPLES}
LEGACY, CUSTOM = "ack-legacy", "ack-dcgm-custom"
SERVICE = "58ecbfb07c7ae7056a96a3b1-image-common-production"
LONGEST_NAME = 63


async def scrape(lab: Lab, **changes: Any) -> None:
    """Change how Prometheus scrapes the exporters on the lab's nodes."""
    configs = [
        {**each, **changes} if each["job_name"] == "dcgm-exporter" else each
        for each in lab.prometheus.scrape_configs
    ]
    await lab.prometheus.reload(configs)


async def autoscale_by(
    lab: Lab, example: str, name: str, times: Mapping[str, str] = SHORT_TIMES
) -> dict[str, str]:
    """Apply an example's ScaledObject to a workload of another name, and return its metadata.

    These times are for the keys about time that the example leaves out.
    """
    here = read(PATHS[example])
    here["metadata"] |= {"namespace": lab.name, "name": name}
    here["spec"]["scaleTargetRef"]["name"] = name
    (trigger,) = here["spec"]["triggers"]
    own = {"workload": name, "scalerAddress": lab.scaler.address}
    trigger["metadata"] = {**times, **trigger["metadata"], **own}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": STABILIZATION_SECONDS}}
    here["spec"]["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    await lab.apply(here)
    return dict(trigger["metadata"])


@pytest.mark.parametrize(
    ("example", "exporter", "load"),
    [
        ("managed-cloud", CUSTOM, 23),
        ("gpu-exporter", LEGACY, 23),
        # 63 % over three minutes at a target of 40. A pod counts once its samples fill half a
        # window, which are 90 seconds here.
        ("duty-cycle", LEGACY, 63),
    ],
)
async def test_one_pod_becomes_two_and_is_one_again_afterwards(
    lab: Lab, example: str, exporter: str, load: float
) -> None:
    await scrape(lab, params={"exporter": [exporter]})
    # These exporters show whole numbers: 22 is the last one that the HPA's 10 % leave alone.
    await lab.deploy("at-the-edge", replicas=1, load=22)
    await lab.autoscale("at-the-edge", lab.gpu("at-the-edge", profile=exporter, threshold="20"))
    await lab.deploy("bert", replicas=1, load=load)
    applied = await autoscale_by(lab, example, "bert")
    assert applied["profile"] == exporter

    await lab.reaches("bert", 2)
    await lab.becomes("bert", "measured")
    # Each of two shows half, far below the target, which is still what the load asks for.
    await lab.stays("bert", 2, for_seconds=10)
    await lab.offer("bert", 0)
    await lab.reaches("bert", 1)
    assert lab.path("bert") == [1, 2, 1], lab.story()
    assert lab.path("at-the-edge") == [1], lab.story()
    assert lab.timeline.last("at-the-edge", "hpa metric 0") == "22", lab.story()


async def test_pods_with_cut_names_are_found_and_scaled_at_one_scrape_a_minute(lab: Lab) -> None:
    await scrape(lab, scrape_interval="60s", scrape_timeout="10s")
    await lab.scaler.restart(PROMETHEUS_STEP="15s", PROMETHEUS_COLLECTION="30s")
    for name in (SERVICE, "average"):
        await lab.deploy(name, replicas=2, load=160)
    # The example's times are the defaults: a minute between two samples is what they are made for.
    applied = await autoscale_by(lab, "utilization", SERVICE, times={})
    assert applied["threshold"] == "70"
    recipe = lab.keda_prometheus('avg(DCGM_FI_DEV_GPU_UTIL{pod=~"average-.*"})', threshold="70")
    await lab.autoscale("average", recipe, max_replicas=12, stabilization_seconds=300)

    # Two pods at 80 % are 160 / 70. A pod counts when its samples span two scrapes.
    await lab.reaches(SERVICE, 3)
    found = lab.client.list(Pod, namespace=lab.name, labels={"app": SERVICE})
    pods = [(each.metadata and each.metadata.name) or "" async for each in found]
    # The longest name that there is: nothing is left of the dash before the last five characters.
    assert {len(name) for name in pods} == {LONGEST_NAME}, pods
    assert {name[-6] for name in pods}.isdisjoint("-"), pods
    assert lab.path(SERVICE) == [2, 3], lab.story()
    # The common recipe keeps KEDA's metric type, which divides by the replicas a second time:
    # 80 % on average over 70 % is two, however many there are, and the HPA shows 40.
    assert lab.timeline.last("average", "hpa metric 0") == "40", lab.story()
    assert lab.path("average") == [2], lab.story()
