"""Pods that come and go while the load stays: the number of replicas does not move with them.

Where pod statuses are known, a pod that loads, crashes or waits for a GPU counts for nothing. By
exporters alone `warmup` stands in for that: pods younger than it change nothing, whatever their
GPUs show. One that is older and never becomes Ready counts as what its GPU shows: the scenarios
bound the damage.
"""

from collections.abc import Callable, Iterable, Mapping

import pytest
from lightkube.models.core_v1 import Pod as PodModel
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod
from lightkube.types import PatchType

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import evidences
from tests.e2e.lab import Lab
from tests.e2e.under_load import SHORT_MAX_AGE, goes_to_zero, the_hpa_has_a_number

STARTUP_SECONDS = 6
WARMUP = "12s"
"""A pod's series begin when it is placed: this covers its start and the end of the pod before."""
DRAIN = "2s"
"""Long enough for a scrape to see old and new pods side by side."""
START_TIMEOUT = "45s"
"""The longest that a pod counts which went before any exporter showed it."""
LONGER_THAN_THE_WARMUP = 14
"""And than the window after it."""
READY = 'sum(kube_pod_status_ready{condition="true"})'
PENDING = 'sum(kube_pod_status_phase{phase="Pending"})'
CRASHING = {"e2e/crash": "true"}
NEW = {"e2e/version": "2"}
NOWHERE = {"nodeSelector": {"e2e/nowhere": "true"}}


async def open_four(lab: Lab, *, loading_percent: float, surge: int) -> None:
    """Run four replicas under 230 %, and an HPA that acts on every number at once."""
    await lab.deploy(
        "bert",
        replicas=4,
        load=230,
        loading_percent=loading_percent,
        startup_seconds=STARTUP_SECONDS,
        drain=DRAIN,
        strategy={"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}},
    )
    await lab.reaches("bert", 4)
    trigger = lab.gpu("bert", warmup=WARMUP, startTimeout=START_TIMEOUT)
    await lab.autoscale("bert", trigger, min_replicas=0, stabilization_seconds=0)
    await the_hpa_has_a_number(lab)


async def roll_out(lab: Lab, annotations: Mapping[str, str | None], **spec: object) -> None:
    """Change the template of the pods: the Deployment replaces them, as its strategy says."""
    lab.timeline.note(f"bert's template becomes {annotations} {spec}")
    template = {"metadata": {"annotations": annotations}, "spec": spec}
    change = {"spec": {"template": template}}
    await lab.client.patch(
        Deployment, "bert", change, namespace=lab.name, patch_type=PatchType.MERGE
    )


async def rolled_out(lab: Lab, since_seconds: float) -> None:
    """Wait until an update that began after that time has come to its end."""

    async def has_ended() -> bool:
        seen = lab.timeline.path("bert", "rolled out", since_seconds)
        return False in seen and seen[-1] is True

    await lab.wait(has_ended, "bert is rolled out")


def counts(lab: Lab, aspect: str, since_seconds: float = 0) -> list[int]:
    """Return how many pods there were, or were Ready, in order."""
    seen = lab.timeline.path("bert", aspect, since_seconds)
    return [each for each in seen if isinstance(each, int)]


@pytest.mark.generations
@evidences.each_with("loading_percent", [0, 100], core=(100, EvidenceSource.KUBE_STATE_METRICS))
async def test_a_rolling_update_at_load_moves_no_replicas(lab: Lab, loading_percent: float) -> None:
    await open_four(lab, loading_percent=loading_percent, surge=2)
    began = lab.timeline.now_seconds
    await roll_out(lab, NEW)
    await rolled_out(lab, began)
    await lab.stays("bert", 4, for_seconds=LONGER_THAN_THE_WARMUP)
    assert lab.path("bert", began) == [4], lab.story()
    assert min(counts(lab, "ready", began)) == 4, lab.story()
    assert max(counts(lab, "pods", began)) > 4, lab.story()
    await goes_to_zero(lab)


def crashes(pods: Iterable[PodModel]) -> bool:
    """Tell whether a container has begun again and again."""
    statuses = [pod.status.containerStatuses or [] for pod in pods if pod.status]
    return any(each.restartCount > 2 for containers in statuses for each in containers)


def waits(pods: Iterable[PodModel]) -> bool:
    """Tell whether one pod has no place to run."""
    return [pod.status and pod.status.phase for pod in pods].count("Pending") == 1


@pytest.mark.parametrize(
    ("lab", "loading_percent", "annotations", "spec", "trouble", "replicas"),
    [
        pytest.param(
            EvidenceSource.EXPORTERS, 0, CRASHING, {}, crashes, 4, id="crash-at-0-exporters"
        ),
        # By its GPU alone, a pod that loads again and again is a pod with work to do.
        pytest.param(
            EvidenceSource.EXPORTERS, 100, CRASHING, {}, crashes, 5, id="crash-at-100-exporters"
        ),
        pytest.param(EvidenceSource.EXPORTERS, 100, NEW, NOWHERE, waits, 4, id="nowhere-exporters"),
        *(
            pytest.param(evidence_source, *row, 4, id=f"{name}-{evidence_source}")
            for evidence_source in EvidenceSource
            if evidence_source is not EvidenceSource.EXPORTERS
            for name, *row in (
                ("crash-at-100", 100, CRASHING, {}, crashes),
                ("nowhere", 100, NEW, NOWHERE, waits),
            )
        ),
    ],
    indirect=["lab"],
)
async def test_a_version_that_never_starts_adds_no_more_than_its_pod_shows(  # noqa: PLR0913, PLR0917 - columns
    lab: Lab,
    loading_percent: float,
    annotations: Mapping[str, str],
    spec: Mapping[str, Mapping[str, str]],
    trouble: Callable[[Iterable[PodModel]], bool],
    replicas: int,
) -> None:
    await open_four(lab, loading_percent=loading_percent, surge=1)
    began = lab.timeline.now_seconds
    await roll_out(lab, annotations, **spec)
    await lab.reaches("bert", replicas)
    await lab.stays("bert", replicas, for_seconds=16)
    assert trouble([pod async for pod in lab.client.list(Pod, namespace=lab.name)]), lab.story()
    assert counts(lab, "pods")[-1] - counts(lab, "ready")[-1] == 1, lab.story()

    undone = {field: dict.fromkeys(value) for field, value in spec.items()}
    await roll_out(lab, dict.fromkeys(annotations), **undone)
    await rolled_out(lab, began)
    await lab.reaches("bert", 4)
    assert set(lab.path("bert", began)) == {4, replicas}, lab.story()
    await goes_to_zero(lab)


async def number(lab: Lab, promql: str) -> float:
    """Return what one query answers; 0 for nothing."""
    found = await lab.prometheus.query(promql)
    return float(found[0]["value"][1]) if found else 0


async def test_replicas_that_find_no_gpu_are_given_back(lab: Lab) -> None:
    # Three nodes of eight GPUs: the fourth pod waits for ever.
    await lab.deploy("bert", replicas=3, gpus=8, load=2400)
    await lab.reaches("bert", 3)
    began = lab.timeline.now_seconds
    # None is given back while the others may have been full within what a trigger remembers.
    await lab.autoscale("bert", lab.gpu("bert", **SHORT_MAX_AGE), min_replicas=0)

    async def are_five() -> bool:
        return counts(lab, "pods")[-1] == 5

    # 300 % over 70 % per replica: 4.3, so 5, and not one more for the two that wait.
    await lab.wait(are_five, "bert has five pods")
    await lab.prometheus.wait_for(f"{PENDING} == 2")
    await lab.stays("bert", 5, for_seconds=12)
    assert await number(lab, READY) == 3, lab.story()

    await lab.offer("bert", 1250)
    await lab.reaches("bert", 3)
    await lab.stays("bert", 3, for_seconds=8)
    assert set(lab.path("bert", began)) <= {3, 4, 5}, lab.story()
    seconds = int(lab.timeline.now_seconds - began)
    ever = f'max_over_time(kube_pod_status_ready{{condition="true"}}[{seconds}s])'
    assert await number(lab, f"sum({ever})") == 3, "the pods at work are the ones that stay"
