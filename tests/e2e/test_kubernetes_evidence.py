"""The Kubernetes API as evidence, asked with the permissions that deploy/ gives and no others.

There is no kube-state-metrics here. A relay in front of the API server can be shut: no replica
count falls while it is shut, and afterwards the load decides again.
"""

import json

import lightkube
import pytest
from lightkube import codecs
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret, ServiceAccountToken

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.programs import ROOT
from tests.e2e.lab import Lab
from tests.e2e.relay import Door, Relay
from tests.e2e.under_load import (
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    deploy_under_load,
    follows_more_load,
    the_hpa_has_a_number,
)

ROLE = ROOT / "deploy" / "kubernetes-evidence.yaml"
RESOURCES = {"pods", "replicasets.apps", "jobs.batch", "scaledobjects.keda.sh"}


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


async def _rests_on(lab: Lab, evidence: str) -> None:
    """Wait until the newest decision uses this evidence."""
    await lab.wait(
        lambda: [made["evidence"] for made in lab.decisions("bert")][-1:] == [evidence],
        f"decisions rest on {evidence}",
    )


@pytest.mark.core
@pytest.mark.parametrize("lab", [EvidenceSource.KUBERNETES], indirect=True, ids=str)
async def test_the_role_is_enough_and_without_the_api_server_exporters_are_believed(
    lab: Lab,
) -> None:
    configuration = json.loads(lab.kubeconfig.read_text())
    cluster = configuration["clusters"][0]["cluster"]
    async with Relay(int(cluster["server"].rpartition(":")[2])) as door:
        cluster["server"] = f"https://{door.address}"
        configuration["users"][0]["user"]["token"] = await _token(lab.client)
        lab.scaler.kubeconfig = lab.directory / "kubeconfig"
        lab.scaler.kubeconfig.write_text(json.dumps(configuration))
        await _opens_nothing_else(lab)
        await lab.scaler.restart()
        await deploy_under_load(lab)
        trigger = lab.gpu("bert")
        del trigger["metadata"]["workload"]
        await lab.autoscale("bert", trigger, min_replicas=0)
        await the_hpa_has_a_number(lab)
        await _rests_on(lab, "kubernetes")
        for resource in RESOURCES:
            up = await lab.scaler.counted("keda_gpu_scaler_kubernetes_watch_up", resource=resource)
            assert up == 1, resource

        lab.timeline.note("the API server cannot be reached")
        await door.turn(Door.SHUT)
        await _rests_on(lab, "exporters")
        await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
        assert lab.scaler.events("source.evidence")[-1]["level"] == "warning"
        await lab.offer("bert", MORE_LOAD)
        await follows_more_load(lab)

        lab.timeline.note("the API server can be reached again")
        await door.turn(Door.OPEN)
        await _rests_on(lab, "kubernetes")
        await lab.offer("bert", 0)
        await lab.reaches("bert", 0)


async def _opens_nothing_else(lab: Lab) -> None:
    known = lightkube.KubeConfig.from_file(str(lab.scaler.kubeconfig))
    async with lightkube.AsyncClient(known, trust_env=False) as client:
        with pytest.raises(lightkube.ApiError, match="forbidden"):
            await anext(aiter(client.list(Secret, namespace=lab.name)))
