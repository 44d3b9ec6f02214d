"""Pods that come and go while the load stays: the number of replicas does not move with them.

How a pod is that loads, crashes or waits for a GPU is a question of its readiness. Until the scaler
takes readiness from kube-state-metrics or the Kubernetes API it has `warmup`, and these scenarios
assert what follows from that: pods younger than it change nothing, whatever their GPUs show. A pod
that is older and never becomes Ready counts as what its GPU shows: the scenarios bound the damage.
That such a pod counts for nothing, and that a start longer than `warmup` is harmless, belongs to
the readiness evidence.
"""

import time
from collections.abc import Mapping

import pytest
from lightkube.resources.apps_v1 import Deployment
from lightkube.types import PatchType

from tests.e2e.lab import Lab

STARTUP_SECONDS = 6
WARMUP = "12s"
"""A pod's series begin when it is placed: this covers its start and the end of the pod before."""
DRAIN = "2s"
"""Long enough for a scrape to see old and new pods side by side."""
READY = 'sum(kube_pod_status_ready{condition="true"})'
PENDING = 'sum(kube_pod_status_phase{phase="Pending"})'
PODS = "count(kube_pod_info)"
CRASHED = "max(kube_pod_container_status_restarts_total) > 2"
NOWHERE = {"nodeSelector": {"e2e/nowhere": "true"}}


async def open_four(lab: Lab, *, loading_percent: float, surge: int) -> None:
    """Have four replicas that carry 230 %, and an HPA that believes every number at once."""
    await lab.deploy(
        "bert",
        replicas=4,
        load=230,
        loading_percent=loading_percent,
        startup_seconds=STARTUP_SECONDS,
        drain=DRAIN,
        strategy={"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}},
    )
    await lab.reaches("bert", 4, within_seconds=60)
    trigger = lab.gpu("bert", warmup=WARMUP)
    await lab.autoscale("bert", trigger, min_replicas=0, stabilization_seconds=0)

    async def measured() -> bool:
        return str(lab.timeline.last("bert", "hpa ScalingActive")).startswith("True")

    await lab.wait(measured, 60, "the HPA has a number")


async def roll_out(lab: Lab, annotations: Mapping[str, str | None], **spec: object) -> None:
    """Change the template of the pods: the Deployment replaces them, as its strategy says."""
    lab.timeline.note(f"bert's template becomes {annotations} {spec}")
    template = {"metadata": {"annotations": annotations}, "spec": spec}
    change = {"spec": {"template": template}}
    await lab.client.patch(
        Deployment, "bert", change, namespace=lab.name, patch_type=PatchType.MERGE
    )


async def number(lab: Lab, promql: str) -> float:
    """Return what one query answers; 0 for nothing."""
    found = await lab.prometheus.query(promql)
    return float(found[0]["value"][1]) if found else 0


async def shows(lab: Lab, promql: str, wanted: float, *, within_seconds: float) -> None:
    """Wait until a query answers this number."""

    async def does() -> bool:
        return await number(lab, promql) == wanted

    await lab.wait(does, within_seconds, f"{promql} is {wanted:g}")


@pytest.mark.parametrize("loading_percent", [0, 100])
async def test_a_rolling_update_at_load_moves_no_replicas(lab: Lab, loading_percent: float) -> None:
    await open_four(lab, loading_percent=loading_percent, surge=2)
    began, created = lab.timeline.now_seconds, int(time.time())
    await roll_out(lab, {"e2e/version": "2"})
    new = f"count(kube_pod_created >= {created} unless on (uid) kube_pod_deletion_timestamp)"
    await shows(lab, f"{READY} == {new} == {PODS}", 4, within_seconds=90)
    # Past the warm-up of the last pod and the window after it.
    await lab.stays("bert", 4, for_seconds=14)
    assert lab.path("bert", began) == [4], lab.story()
    seconds = int(lab.timeline.now_seconds - began)
    assert await number(lab, f"min_over_time({READY}[{seconds}s:1s])") == 4, lab.story()
    assert await number(lab, f"max_over_time({PODS}[{seconds}s:1s])") > 4, lab.story()


@pytest.mark.parametrize(
    ("loading_percent", "annotations", "spec", "seen", "replicas"),
    [
        pytest.param(0, {"e2e/crash": "true"}, {}, CRASHED, 4, id="crash-at-0"),
        # Until readiness is known, a pod that loads again and again is a pod with work to do.
        pytest.param(100, {"e2e/crash": "true"}, {}, CRASHED, 5, id="crash-at-100"),
        pytest.param(100, {"e2e/version": "2"}, NOWHERE, f"{PENDING} == 1", 4, id="nowhere"),
    ],
)
async def test_a_version_that_never_starts_adds_no_more_than_its_pod_shows(  # noqa: PLR0913, PLR0917 - columns
    lab: Lab,
    loading_percent: float,
    annotations: Mapping[str, str],
    spec: Mapping[str, Mapping[str, str]],
    seen: str,
    replicas: int,
) -> None:
    await open_four(lab, loading_percent=loading_percent, surge=1)
    began = lab.timeline.now_seconds
    await roll_out(lab, annotations, **spec)
    await lab.reaches("bert", replicas, within_seconds=60)
    await lab.stays("bert", replicas, for_seconds=16)
    assert await number(lab, seen), lab.story()
    assert await number(lab, f"{PODS} - {READY}") == 1, lab.story()

    undone = {field: dict.fromkeys(value) for field, value in spec.items()}
    await roll_out(lab, dict.fromkeys(annotations), **undone)
    await shows(lab, f"{PODS} == {READY}", 4, within_seconds=60)
    assert set(lab.path("bert", began)) == {4, replicas}, lab.story()


async def test_replicas_that_find_no_gpu_are_given_back(lab: Lab) -> None:
    # Three nodes of eight GPUs: the fourth pod waits for ever.
    await lab.deploy("bert", replicas=3, gpus=8, load=2400)
    await lab.reaches("bert", 3, within_seconds=60)
    began = lab.timeline.now_seconds
    await lab.autoscale("bert", lab.gpu("bert"), min_replicas=0)
    # 300 % over 70 % per replica: 4.3, so 5, and not one more for the two that wait.
    await shows(lab, PENDING, 2, within_seconds=60)
    await lab.stays("bert", 5, for_seconds=12)
    assert await number(lab, READY) == 3, lab.story()

    await lab.offer("bert", 1250)
    await lab.reaches("bert", 3, within_seconds=60)
    await lab.stays("bert", 3, for_seconds=8)
    assert set(lab.path("bert", began)) <= {3, 4, 5}, lab.story()
    seconds = int(lab.timeline.now_seconds - began)
    ever = f'max_over_time(kube_pod_status_ready{{condition="true"}}[{seconds}s])'
    assert await number(lab, f"sum({ever})") == 3, "the pods at work are the ones that stay"
