"""The common start of every loss of data: four replicas under a load for four."""

import operator
from collections import Counter

from lightkube.resources.core_v1 import Pod

from tests.e2e.lab import COOLDOWN_SECONDS, Lab

LOAD = 230
"""Four replicas at 70 % each; what any three of them show asks for three."""
REPLICAS = 4
MORE_LOAD = 480
"""480 % over 70 % per replica: 6.9, so 7."""
LESS_LOAD = 120
"""Two replicas would do, and the part that some of the pods show asks for fewer still."""
LONGER_THAN_THE_COOLDOWN = 2 * COOLDOWN_SECONDS
SHORT_MAX_AGE = {"maxAge": "10s"}
"""Instead of 3 minutes, so that a loss of seconds outlives the last good samples."""
SEEN_FOR = "6s"
"""More than `warmup`: the scaler knows the load when KEDA asks about it for the first time."""


async def run_under_load(lab: Lab, **metadata: str) -> None:
    """Run the replicas, with scale to zero allowed, until the HPA works with what was measured."""
    await deploy_under_load(lab)
    await lab.autoscale("bert", lab.gpu("bert", **metadata), min_replicas=0)
    await the_hpa_has_a_number(lab)


async def deploy_under_load(lab: Lab) -> None:
    """Run the replicas until they have been seen for longer than a pod takes to warm up."""
    await lab.deploy("bert", replicas=REPLICAS, load=LOAD)
    await lab.reaches("bert", REPLICAS)
    seen = f'count(DCGM_FI_DEV_GPU_UTIL{{pod=~"bert-.*"}} offset {SEEN_FOR}) == {REPLICAS}'
    await lab.prometheus.wait_for(seen)


async def the_hpa_has_a_number(lab: Lab, workload: str = "bert") -> None:
    await lab.shows(workload, "hpa ScalingActive", "True ValidMetricFound")


async def follows_more_load(lab: Lab) -> None:
    """Wait until the replicas follow `MORE_LOAD`, and never were fewer on the way."""
    await lab.reaches("bert", 7)
    assert lab.path("bert") == sorted(lab.path("bert")), lab.story()


async def goes_to_zero(lab: Lab) -> None:
    """Offer nothing any more: a workload that really is idle goes to zero, and only ever down.

    It takes seconds, and a minute more where a scrape failed while one of its pods went.
    """
    began = lab.timeline.now_seconds
    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)
    assert lab.path("bert", began) == sorted(lab.path("bert", began), reverse=True), lab.story()


async def node_of_some(lab: Lab) -> str:
    """Return a node that runs at least one of the pods, and not all."""
    pods = [pod async for pod in lab.client.list(Pod, namespace=lab.name)]
    nodes = Counter(pod.spec.nodeName for pod in pods if pod.spec and pod.spec.nodeName)
    node, fewest = min(nodes.items(), key=operator.itemgetter(1))
    assert fewest < REPLICAS, nodes
    return node
