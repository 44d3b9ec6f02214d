"""The Kubernetes API as evidence, asked with the permissions that deploy/ gives and no others.

There is no kube-state-metrics unless a scenario says so. A relay in front of the API server can be
shut: no replica count falls while it is shut, and afterwards the load decides again.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightkube
import pytest
import pytest_asyncio
from lightkube import codecs
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret, ServiceAccountToken

from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest
from tests.e2e.product import Scaler
from tests.e2e.programs import ROOT
from tests.e2e.relay import Door, Relay
from tests.e2e.under_load import (
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    deploy_under_load,
    follows_more_load,
    the_hpa_has_a_number,
)

ROLE = ROOT / "deploy" / "kubernetes-evidence.yaml"
RESOURCES = {"pods", "replicasets.apps", "jobs.batch", "scaledobjects.keda.sh"}
KUBE_STATE_METRICS = "kube-state-metrics"
LOADING_SECONDS = 20
"""Several times the `warmup` of the triggers here."""
CLIMBED = 3
"""Where a climb under `LOAD` ends: 77 % on each replica is near enough to 70 % for the HPA."""


@dataclass(slots=True)
class Watched:
    """A lab with a scaler that asks the API server, through a relay."""

    lab: Lab
    door: Relay
    kubeconfig: Path
    with_kube_state_metrics: Sequence[Mapping[str, Any]]
    """What Prometheus would scrape in other labs."""

    def trigger(self, **metadata: str) -> Manifest:
        """Return a trigger of ours that leaves `workload` out."""
        trigger = self.lab.gpu("", **metadata)
        del trigger["metadata"]["workload"]
        return trigger

    async def rests_on(self, evidence: str) -> None:
        """Wait until the newest decision uses this evidence."""

        async def does() -> bool:
            made = self.lab.decisions("bert")
            return bool(made) and made[-1]["evidence"] == evidence

        await self.lab.wait(does, f"decisions rest on {evidence}")


@pytest_asyncio.fixture
async def watched(lab: Lab) -> AsyncIterator[Watched]:
    """A lab without kube-state-metrics, with a scaler that asks the API server."""
    with_it = list(lab.prometheus.scrape_configs)
    await lab.prometheus.reload([one for one in with_it if one["job_name"] != KUBE_STATE_METRICS])
    configuration = json.loads(lab.kubeconfig.read_text())
    cluster = configuration["clusters"][0]["cluster"]
    async with Relay(int(cluster["server"].rpartition(":")[2])).standing() as door:
        cluster["server"] = f"https://{door.address}"
        configuration["users"][0]["user"]["token"] = await _token(lab.client)
        path = lab.directory / "kubeconfig"
        path.write_text(json.dumps(configuration))
        lab.scaler.stop()
        settings = {"KUBERNETES": "true"}
        url = lab.scaler.prometheus_url
        lab.scaler = Scaler(lab.directory, url, settings=settings, kubeconfig=path)
        try:
            await lab.scaler.start()
            yield Watched(lab, door, path, with_it)
        finally:
            lab.scaler.stop()


async def _token(client: lightkube.AsyncClient) -> str:
    """Create what deploy/ has, and return a token of its ServiceAccount."""
    for manifest in codecs.load_all_yaml(ROLE.read_text()):
        await client.apply(manifest, force=True)
    spec = TokenRequestSpec(audiences=[], expirationSeconds=3600)
    request = ServiceAccountToken(metadata=ObjectMeta(), spec=spec)
    issued = await client.create(request, "keda-gpu-scaler", namespace="keda")
    assert issued.status is not None
    assert issued.status.token is not None
    return issued.status.token


async def test_from_zero_and_back_without_a_workload_in_the_trigger(watched: Watched) -> None:
    """The model shows 100 % while it loads, much longer than `warmup`: one replica is enough."""
    lab = watched.lab
    await lab.deploy("bert", loading_percent=100, startup_seconds=LOADING_SECONDS)
    triggers = watched.trigger(), lab.router("bert")
    await lab.autoscale("bert", *triggers, min_replicas=0)
    await lab.becomes("bert", "empty")
    await lab.stays("bert", 0, for_seconds=3)

    await lab.offer("bert", 40)
    await lab.becomes("bert", "starting")
    await lab.reaches("bert", 1)
    await lab.becomes("bert", "measured")
    await lab.stays("bert", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)

    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)
    await lab.becomes("bert", "empty")
    assert lab.path("bert") == [0, 1, 0], lab.story()
    assert {made["evidence"] for made in lab.decisions("bert")} <= {"kubernetes", None}
    assert {made["workload"] for made in lab.decisions("bert")} == {"deployment/bert"}


async def test_a_target_of_another_kind_is_measured_by_its_own_selector(watched: Watched) -> None:
    """A ReplicationController stands for any scalable kind: no name rule identifies its pods."""
    lab = watched.lab
    await lab.deploy("other", replicas=1, load=100)
    await lab.deploy("bert", kind="ReplicationController")
    triggers = watched.trigger(), lab.router("bert")
    await lab.autoscale("bert", *triggers, min_replicas=0)
    await lab.becomes("bert", "empty")
    await lab.stays("bert", 0, for_seconds=3)

    await lab.offer("bert", LOAD)
    await lab.reaches("bert", CLIMBED)
    await lab.becomes("bert", "measured")

    lab.timeline.note("the API server cannot be reached: nobody else knows whose pods these are")
    await watched.door.turn(Door.SHUT)
    await lab.becomes("bert", "unknown")
    await lab.stays("bert", CLIMBED, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lost = lab.decisions("bert")[-1]
    assert (lost["value"], lost["active"]) == (None, True), lab.story()

    lab.timeline.note("the API server can be reached again")
    await watched.door.turn(Door.OPEN)
    await lab.becomes("bert", "measured")
    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)
    await lab.becomes("bert", "empty")
    known = [made for made in lab.decisions("bert") if made["evidence"] is not None]
    assert {made["workload"] for made in known} == {"replicationcontrollers/bert"}
    assert max(lab.path("bert")) == CLIMBED, lab.story()


@pytest.mark.core
async def test_the_role_is_enough_and_opens_nothing_else(watched: Watched) -> None:
    lab = watched.lab

    async def all_watched() -> bool:
        return {one["resource"] for one in lab.scaler.events("kubernetes.watching")} == RESOURCES

    await lab.wait(all_watched, "everything is watched")
    assert lab.scaler.events("kubernetes.lost") == []
    for resource in RESOURCES:
        up = await lab.scaler.counted("keda_gpu_scaler_kubernetes_watch_up", resource=resource)
        assert up == 1
    configuration = lightkube.KubeConfig.from_file(watched.kubeconfig)
    async with lightkube.AsyncClient(configuration, trust_env=False) as client:
        with pytest.raises(lightkube.ApiError, match="forbidden"):
            await anext(aiter(client.list(Secret, namespace=lab.name)))


@pytest.mark.parametrize("door", [pytest.param(Door.SHUT, marks=pytest.mark.core), Door.JAMMED])
async def test_without_the_api_server_exporters_are_believed_and_nothing_falls(
    watched: Watched, door: Door
) -> None:
    lab = watched.lab
    await deploy_under_load(lab)
    await lab.autoscale("bert", watched.trigger(), min_replicas=0)
    await the_hpa_has_a_number(lab)
    await watched.rests_on("kubernetes")

    lab.timeline.note("the API server cannot be reached")
    await watched.door.turn(door)
    await watched.rests_on("exporters")
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lost = {one["resource"] for one in lab.scaler.events("kubernetes.lost")}
    assert lost == RESOURCES
    assert lab.scaler.events("source.evidence")[-1]["level"] == "warning"
    await lab.offer("bert", MORE_LOAD)
    await follows_more_load(lab)

    lab.timeline.note("the API server can be reached again")
    await watched.door.turn(Door.OPEN)
    await watched.rests_on("kubernetes")
    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)


async def test_without_the_api_server_kube_state_metrics_is_next(watched: Watched) -> None:
    lab = watched.lab
    await deploy_under_load(lab)
    await lab.autoscale("bert", watched.trigger(), min_replicas=0)
    await watched.rests_on("kubernetes")
    await lab.prometheus.reload(watched.with_kube_state_metrics)
    await watched.door.turn(Door.SHUT)
    await watched.rests_on(KUBE_STATE_METRICS)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    weaker = [one for one in lab.scaler.events("source.evidence") if one["level"] == "warning"]
    assert "the Kubernetes API: cannot " in weaker[0]["reason"]
