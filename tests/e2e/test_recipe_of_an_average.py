"""The common recipe's own workload: a name that Kubernetes cuts, scraped once a minute."""

from lightkube.resources.core_v1 import Pod

from tests.e2e import exporters
from tests.e2e.lab import Lab

SERVICE = "58ecbfb07c7ae7056a96a3b1-image-common-production"
LONGEST_NAME = 63


async def _pods(lab: Lab) -> list[str]:
    """Return the names of the service's pods."""
    found = lab.client.list(Pod, namespace=lab.name, labels={"app": SERVICE})
    return [each.metadata.name or "" async for each in found if each.metadata]


async def test_pods_with_cut_names_are_found_and_scaled_at_one_scrape_a_minute(lab: Lab) -> None:
    await exporters.scrape(lab, scrape_interval="60s", scrape_timeout="10s")
    await lab.scaler.restart(PROMETHEUS_STEP="15s", PROMETHEUS_COLLECTION="30s")
    for name in (SERVICE, "average"):
        await lab.deploy(name, replicas=2, load=160)
    # The example's times are the defaults: a minute between two samples is what they are made for.
    applied = await exporters.autoscale_by(lab, "utilization", SERVICE, times={})
    assert applied["threshold"] == "70"
    recipe = lab.keda_prometheus('avg(DCGM_FI_DEV_GPU_UTIL{pod=~"average-.*"})', threshold="70")
    await lab.autoscale("average", recipe, max_replicas=12, stabilization_seconds=300)

    # Two pods at 80 % are 160 / 70. A pod counts when its samples span two scrapes.
    await lab.reaches(SERVICE, 3)
    pods = await _pods(lab)
    # The longest name that there is: nothing is left of the dash before the last five characters.
    assert {len(name) for name in pods} == {LONGEST_NAME}, pods
    assert {name[-6] for name in pods}.isdisjoint("-"), pods
    assert lab.path(SERVICE) == [2, 3], lab.story()
    # 80 % on average over 70 % is two, and the HPA shows it divided by the replicas again.
    assert lab.timeline.last("average", "hpa metric 0") == "40", lab.story()
    assert lab.path("average") == [2], lab.story()
