"""Changing over to this scaler while a workload serves, as the pages tell people to."""

import copy
from typing import Any

import pytest
from lightkube import ApiError
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler

from tests.e2e.lab import POLLING_SECONDS, SHORT_TIMES, Lab
from tests.e2e.resources import ScaledObject
from tests.repository.test_docs import ROOT
from tests.repository.test_docs_snippets import pieces

MIGRATE = ROOT / "docs" / "migrate"
REPLICAS = 4


def only(page: str, kind: str) -> dict[str, Any]:
    """Return the one object of this kind on a page about migration."""
    found = [piece.document for piece in pieces(MIGRATE / page)]
    (one,) = [each for each in found if each.get("kind") == kind]
    return copy.deepcopy(one)


def placed(lab: Lab, document: dict[str, Any]) -> dict[str, Any]:
    """Return a ScaledObject of a page with a lab's address, namespace and short times."""
    here = copy.deepcopy(document)
    here["metadata"]["namespace"] = lab.name
    here["spec"] |= {"pollingInterval": POLLING_SECONDS, "cooldownPeriod": 60}
    for trigger in here["spec"]["triggers"]:
        trigger["metadata"] |= {"scalerAddress": lab.scaler.address, **SHORT_TIMES}
    return here


async def autoscalers(lab: Lab) -> dict[str, HorizontalPodAutoscaler]:
    """Return every HPA there is, by its name."""
    found = lab.client.list(HorizontalPodAutoscaler, namespace=lab.name)
    return {each.metadata.name or "": each async for each in found if each.metadata}


async def identity(lab: Lab, name: str) -> str | None:
    """Return what distinguishes an HPA from another one of its name."""
    metadata = (await autoscalers(lab))[name].metadata
    assert metadata is not None
    return metadata.uid


def metrics(hpa: HorizontalPodAutoscaler) -> list[str]:
    """Return the names of an HPA's external metrics."""
    assert hpa.spec is not None
    return [each.external.metric.name for each in hpa.spec.metrics or () if each.external]


async def has_metric(lab: Lab, hpa: str, name: str) -> None:
    """Wait until there is one HPA, which works with this metric and no other."""

    async def has() -> bool:
        found = await autoscalers(lab)
        return {each: metrics(found[each]) for each in found} == {hpa: [name]}

    await lab.wait(has, f"{hpa} has {name}")


async def apply_own_hpa(lab: Lab) -> None:
    """Create the HPA that exists before the migration."""
    hpa = only("prometheus-adapter.md", "HorizontalPodAutoscaler")
    hpa["metadata"]["namespace"] = lab.name
    hpa["spec"]["scaleTargetRef"]["name"] = "bert"
    await lab.apply(hpa)


@pytest.mark.core
async def test_an_hpa_of_ones_own_is_handed_over_and_no_replica_moves(lab: Lab) -> None:
    # 20 % on each of four, and 20 for a target: nothing to do.
    await lab.deploy("bert", replicas=REPLICAS, load=20 * REPLICAS)
    await lab.reaches("bert", REPLICAS)
    await apply_own_hpa(lab)
    before = await identity(lab, "gpu-hpa")
    handed = placed(lab, only("index.md", "ScaledObject"))

    unasked = copy.deepcopy(handed)
    del unasked["metadata"]["annotations"]
    with pytest.raises(ApiError, match="is already managed by the hpa 'gpu-hpa'"):
        await lab.apply(unasked)

    lab.timeline.note("handed over")
    await lab.apply(handed)
    await has_metric(lab, "gpu-hpa", "s0-gpu-utilization")
    await lab.stays("bert", REPLICAS, for_seconds=10)
    await lab.offer("bert", 120)
    await lab.reaches("bert", 6)
    assert lab.path("bert") == sorted(lab.path("bert")), lab.story()
    assert await identity(lab, "gpu-hpa") == before

    lab.timeline.note("and back")
    await lab.client.delete(ScaledObject, "bert", namespace=lab.name)

    async def gone() -> bool:
        return not await autoscalers(lab)

    await lab.wait(gone, "KEDA deletes the HPA")
    await lab.stays("bert", 6, for_seconds=6)
    await apply_own_hpa(lab)


async def test_a_trigger_is_exchanged_in_place_and_the_workload_gets_what_it_lacked(
    lab: Lab,
) -> None:
    await lab.deploy("bert", replicas=2, load=350)
    await lab.reaches("bert", 2)
    recipe = lab.keda_prometheus(
        f'avg(DCGM_FI_DEV_GPU_UTIL{{namespace="{lab.name}",pod=~"bert-.*"}})', threshold="70"
    )
    await lab.autoscale("bert", recipe)
    await has_metric(lab, "keda-hpa-bert", "s0-prometheus")
    before = await identity(lab, "keda-hpa-bert")
    await lab.stays("bert", 2, for_seconds=6)

    lab.timeline.note("exchanged")
    await lab.patch("bert", triggers=[lab.gpu("bert")])
    await lab.reaches("bert", 5)
    assert lab.path("bert") == sorted(lab.path("bert")), lab.story()
    await has_metric(lab, "keda-hpa-bert", "s0-gpu-utilization")
    assert await identity(lab, "keda-hpa-bert") == before

    lab.timeline.note("and back")
    await lab.patch("bert", triggers=[recipe])
    await has_metric(lab, "keda-hpa-bert", "s0-prometheus")
