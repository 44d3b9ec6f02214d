"""Changing over to this scaler while a workload serves, as the pages tell people to."""

import copy
from typing import Any

import pytest
from lightkube import ApiError, codecs

from testbed.cluster.resources import ScaledObject
from tests.e2e.lab import POLLING_SECONDS, SHORT_TIMES, Lab
from tests.repository.test_docs import ROOT
from tests.repository.test_docs_snippets import pieces

MIGRATE = ROOT / "docs" / "migrate"
REPLICAS = 4
OURS = "['s0-gpu-utilization']"
"""The metrics of the HPA."""


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


async def apply_own_hpa(lab: Lab) -> None:
    hpa = only("adapters.md", "HorizontalPodAutoscaler")
    hpa["metadata"]["namespace"] = lab.name
    hpa["spec"]["scaleTargetRef"]["name"] = "bert"
    await lab.apply(hpa)


@pytest.mark.core
async def test_an_hpa_of_ones_own_is_handed_over_and_no_replica_moves(lab: Lab) -> None:
    # 20 % on each of four, and 20 for a target: nothing to do.
    await lab.deploy("bert", replicas=REPLICAS, load=20 * REPLICAS)
    await lab.reaches("bert", REPLICAS)
    await apply_own_hpa(lab)
    handed = placed(lab, only("index.md", "ScaledObject"))

    unasked = copy.deepcopy(handed)
    del unasked["metadata"]["annotations"]

    async def is_refused() -> bool:
        try:
            await lab.client.apply(codecs.from_dict(unasked), force=True, dry_run=True)
        except ApiError as error:
            return "is already managed by the hpa 'gpu-hpa'" in str(error)
        return False

    # KEDA's webhook hears of the HPA from a watch, a moment after it was made.
    await lab.wait(is_refused, "KEDA refuses a ScaledObject beside the HPA")

    lab.timeline.note("handed over")
    await lab.apply(handed)
    await lab.shows("bert", "hpa metrics", OURS)
    await lab.stays("bert", REPLICAS, for_seconds=10)
    await lab.offer("bert", 120)
    await lab.reaches("bert", 6)
    assert lab.path("bert") == sorted(lab.path("bert")), lab.story()
    assert len(lab.timeline.path("bert", "hpa uid")) == 1, lab.story()

    lab.timeline.note("and back")
    await lab.client.delete(ScaledObject, "bert", namespace=lab.name)
    await lab.shows("bert", "hpa uid", "None")
    await lab.stays("bert", 6, for_seconds=6)
    await apply_own_hpa(lab)
