"""`deletion-cost` with the rights of the chart: the least busy pod goes, and nothing is left.

The ReplicaSet controller chooses by itself. Which pod is idle changes with each step, so that none
is chosen by its age.
"""

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Callable

import lightkube
import pytest
from lightkube import codecs
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod, ServiceAccountToken
from lightkube.types import PatchType

from keda_gpu_scaler.autoscaling.scale_in import COST, MARK
from testbed.processes import until
from testbed.programs import ROOT
from tests.e2e.lab import PATIENCE_SECONDS, Lab
from tests.e2e.product import Scaler
from tests.e2e.under_load import the_hpa_has_a_number

REPLICAS = 5
PERCENT = 70.0
STABILIZATION_SECONDS = 12
AHEAD = "4s"
"""In proportion to the HPA's sync, which comes every 2 s here and not every 15."""


async def test_the_least_busy_pod_goes_first_and_nothing_else_is_touched(
    lab: Lab, helm: str
) -> None:
    await lab.deploy("bert", replicas=REPLICAS, load=REPLICAS * PERCENT)
    await lab.reaches("bert", REPLICAS)
    async with _account(lab, helm) as (client, command):
        names = sorted(await _annotations(lab))
        lab.simulator.of_pod.update(dict.fromkeys(names, PERCENT))
        protected = names[0]
        await _annotate(lab.client, lab, protected, {COST: "100"})
        await _refuses_all_else(client, lab, names[1], protected)
        await lab.autoscale(
            "bert",
            lab.gpu("bert"),
            min_replicas=2,
            stabilization_seconds=STABILIZATION_SECONDS,
        )
        await the_hpa_has_a_number(lab)
        for idle in (names[3], names[1]):
            left = len(await _annotations(lab)) - 1
            await _goes_first(lab, idle, left)
        notes = await _annotations(lab)
        assert sorted(notes) == [name for name in names if name not in {names[3], names[1]}]
        assert notes[protected] == {COST: "100"}
        await _is(lab, lambda shown: _marked(shown) == set(), "all costs are removed")

        lab.simulator.of_pod[names[2]] = 0
        await _is(lab, lambda shown: names[2] in _marked(shown), f"{names[2]} has a cost")
        command.stop()
        assert _marked(await _annotations(lab)) == set(), lab.story()


async def _goes_first(lab: Lab, pod: str, left: int) -> None:
    """Let a pod be idle, and wait until it is gone and the others are still there."""
    lab.timeline.note(f"{pod} is idle")
    lab.simulator.of_pod[pod] = 0
    await _is(lab, lambda shown: pod in _marked(shown), f"{pod} has a cost")
    await lab.reaches("bert", left)
    await _is(lab, lambda shown: pod not in shown, f"{pod} is gone")


async def _refuses_all_else(
    client: lightkube.AsyncClient, lab: Lab, pod: str, protected: str
) -> None:
    """Wait until the policy is in force, which takes the API server some seconds."""

    async def is_refused(name: str, why: str, **metadata: object) -> bool:
        change = {"metadata": metadata}
        try:
            await client.patch(Pod, name, change, namespace=lab.name, patch_type=PatchType.MERGE)
        except lightkube.ApiError as error:
            return why in str(error)
        return False

    others = "only its two annotations"

    async def is_in_force() -> bool:
        return await is_refused(pod, others, annotations={"other": "x"})

    await until(is_in_force, PATIENCE_SECONDS, "another annotation is refused")
    assert await is_refused(pod, others, labels={"app": "other"})
    assert await is_refused(pod, others, finalizers=["example.com/other"])
    assert await is_refused(protected, "someone else stays", annotations={COST: "-1", MARK: "-1"})
    # It would be its own with the next change.
    assert await is_refused(protected, "someone else stays", annotations={MARK: "100"})
    await _annotate(client, lab, pod, {COST: "-1", MARK: "-1"})
    await _annotate(client, lab, pod, {COST: None, MARK: None})


async def _annotate(
    client: lightkube.AsyncClient, lab: Lab, pod: str, annotations: dict[str, str | None]
) -> None:
    change = {"metadata": {"annotations": annotations}}
    await client.patch(Pod, pod, change, namespace=lab.name, patch_type=PatchType.MERGE)


async def _annotations(lab: Lab) -> dict[str, dict[str, str]]:
    """Return the two annotations of each pod that is not being deleted."""
    return {
        str(pod.metadata.name): {
            key: value
            for key, value in (pod.metadata.annotations or {}).items()
            if key in {COST, MARK}
        }
        async for pod in lab.client.list(Pod, namespace=lab.name)
        if pod.metadata is not None and pod.metadata.deletionTimestamp is None
    }


def _marked(shown: dict[str, dict[str, str]]) -> set[str]:
    return {name for name, notes in shown.items() if MARK in notes}


async def _is(lab: Lab, holds: Callable[[dict[str, dict[str, str]]], bool], claim: str) -> None:
    async def is_so() -> bool:
        return holds(await _annotations(lab))

    try:
        await until(is_so, PATIENCE_SECONDS, claim)
    except TimeoutError as error:
        pytest.fail(f"{error}\n{lab.story()}")


@contextlib.asynccontextmanager
async def _account(lab: Lab, helm: str) -> AsyncIterator[tuple[lightkube.AsyncClient, Scaler]]:
    """Create what the chart has, run the command as its account, and yield that account as well."""
    values = (
        "image.repository=x",
        "deletionCost.enabled=true",
        f"deletionCost.namespaces={{{lab.name}}}",
    )
    words = [word for value in values for word in ("--set", value)]
    chart, only = "deploy/helm/keda-gpu-scaler", ("--show-only", "templates/deletioncost.yaml")
    command = [helm, "template", "x", chart, *only, "--namespace", lab.name, *words]
    rendered = await asyncio.to_thread(subprocess.check_output, command, cwd=ROOT, text=True)
    account = ""
    for manifest in codecs.load_all_yaml(rendered):
        if manifest.kind == "ServiceAccount":
            account = str(manifest.metadata and manifest.metadata.name)
        if manifest.kind != "Deployment":
            await lab.client.apply(manifest, force=True)
    spec = TokenRequestSpec(audiences=[], expirationSeconds=3600)
    request = ServiceAccountToken(metadata=ObjectMeta(), spec=spec)
    issued = await lab.client.create(request, account, namespace=lab.name)
    assert issued.status is not None
    configuration = json.loads(lab.kubeconfig.read_text())
    configuration["users"][0]["user"]["token"] = issued.status.token
    kubeconfig = lab.directory / "account"
    kubeconfig.write_text(json.dumps(configuration))
    running = Scaler(
        lab.directory,
        lab.scaler.prometheus_url,
        kubeconfig=kubeconfig,
        command=("deletion-cost", "--namespace", lab.name, "--ahead", AHEAD),
    )
    known = lightkube.KubeConfig.from_file(str(kubeconfig))
    await running.start()
    try:
        async with lightkube.AsyncClient(known, trust_env=False) as client:
            yield client, running
    finally:
        running.kill()
