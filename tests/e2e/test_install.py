"""The chart, installed with helm on the real API server, and asked by the real KEDA.

It is asked through its own Service, with its own Secrets and permissions, while its pods run on
nodes of `testbed.cluster.kubelet`. They come and go; the workloads that KEDA scales by them do not.
"""

import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import trustme

from testbed.cluster.cluster import Cluster
from testbed.cluster.keda import NAMESPACE
from testbed.cluster.shell import Shell
from tests.e2e import keda_log
from tests.e2e.counts import Counts
from tests.e2e.furnishing import open_lab
from tests.e2e.lab import Lab
from tests.e2e.release import (
    ADDRESS,
    CLIENT_SECRET,
    HOST,
    HTTP_HOST,
    NAME,
    PODS,
    SERVER_SECRET,
    TOKEN,
    TOKEN_SECRET,
    Release,
    everything,
)
from tests.e2e.under_load import LOAD, REPLICAS

pytestmark = pytest.mark.xdist_group("live")
MTLS = {
    "tls": {
        "enabled": True,
        "existingSecret": SERVER_SECRET,
        "client": {"existingSecret": CLIENT_SECRET},
    },
    "kubernetesApi": {"enabled": True},
}
EVERYTHING = MTLS | {
    "http": {"tls": {"existingSecret": SERVER_SECRET}, "tokenSecret": {"name": TOKEN_SECRET}},
    "webhook": {"enabled": True, "tokenSecret": {"name": TOKEN_SECRET}},
    "admissionPolicy": {"enabled": True},
    "metrics": {"dashboard": {"enabled": True}},
}
"""All that requires no other operator; some of it is in no namespace."""
RESTRICTED = "pod-security.kubernetes.io/enforce"
LONGER_THAN_A_CONNECTION = 8
TEST = f"helm test {NAME} --namespace {NAMESPACE} --timeout 60s"
REQUESTS_EACH = "5"
EXPIRY = "keda_gpu_scaler_certificate_expiry_timestamp_seconds"


@pytest_asyncio.fixture
async def release(
    live: Cluster, shell: Shell, lab_name: str, tmp_path: Path
) -> AsyncIterator[Release]:
    """A lab with its own scaler stopped, and the means to install the chart, not yet installed."""
    label = f"kubectl label namespace {NAMESPACE}"
    await shell.expect(f"{label} {RESTRICTED}=restricted")
    async with open_lab(lab_name, live.kubeconfig, tmp_path) as lab:
        lab.scaler.stop()
        prepared = Release(shell, lab)
        await prepared.share_secrets()
        yield prepared
        await prepared.uninstall()
        await prepared.forget_secrets()
    await shell.expect(f"{label} {RESTRICTED}-")


async def _errors(live: Cluster, lab: Lab) -> float:
    """Return how many errors KEDA has counted in a lab, and logged for calls it did not repeat."""
    counts = Counts(live.keda.metrics_url)
    counted = [await counts.errors(lab.name, name) for name in ("bert", "gpt")]
    return sum(counted) + len(keda_log.failures(lab))


async def _wake(release: Release) -> None:
    """Wake two workloads by their demand: one for as many replicas as its load takes, one idle."""
    lab = release.lab
    wanted = {"bert": {"demandThreshold": REQUESTS_EACH}, "gpt": {}}
    for name, metadata in wanted.items():
        await lab.deploy(name)
        demand = lab.offered(f"{name}-requests")
        await lab.autoscale(name, release.push(demandQuery=demand, **metadata), min_replicas=0)
        await lab.stays(name, 0, for_seconds=1)
    await lab.offer("gpt-requests", 1)
    await lab.offer("bert-requests", REPLICAS * int(REQUESTS_EACH))
    await lab.offer("bert", LOAD)
    await lab.reaches("bert", REPLICAS)
    await lab.reaches("gpt", 1)


async def _certificate_changes(release: Release) -> None:
    """Replace the scaler's certificate while it is in use, and wait until all replicas show it."""
    ends = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(days=1)
    await release.apply_secret(SERVER_SECRET, release.authority.issue_cert(HOST, not_after=ends))

    async def shown() -> bool:
        labels = {"server": "grpc", "kind": "server"}
        found = [await each.total(EXPIRY, **labels) for each in await release.counts()]
        return set(found) == {ends.timestamp()}

    await release.lab.wait(shown, "every replica shows the new certificate")


@pytest.mark.core
async def test_from_zero_and_back_through_an_upgrade_a_rollback_and_a_new_certificate(
    live: Cluster, release: Release
) -> None:
    lab = release.lab
    await release.install(MTLS)
    # By its own role it finds which workload the ScaledObject scales.
    await _wake(release)
    before = await _errors(live, lab)
    began = lab.timeline.now_seconds

    lab.timeline.note("the release is upgraded")
    await release.upgrade({"settings": {"log_level": "debug"}})
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_A_CONNECTION)
    # The old pods did not log on this level: KEDA asks the new ones.
    logs = await release.show("logs --tail=-1")
    for words in ('"log_level": "debug"', '"event": "decision.made"', '"evidence": "kubernetes"'):
        assert words in logs, logs

    lab.timeline.note("the release is rolled back")
    await release.roll_back()
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_A_CONNECTION)

    lab.timeline.note("the certificate is another one")
    await _certificate_changes(release)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_A_CONNECTION)
    assert lab.path("bert", began) == [REPLICAS], lab.story()
    assert lab.path("gpt", began) == [1], lab.story()
    assert await _errors(live, lab) == before, lab.story()

    for name in ("bert", "bert-requests", "gpt-requests"):
        await lab.offer(name, 0)
    await lab.reaches("bert", 0)
    await lab.reaches("gpt", 0)


@pytest.mark.core
async def test_with_everything_on_helm_test_tells_right_from_wrong_and_uninstall_leaves_nothing(
    release: Release,
) -> None:
    before = await everything(release.shell)
    await release.install(EVERYTHING)
    assert await everything(release.shell) - before
    await _only_the_token_opens_the_metrics(release.shell)
    said = await release.shell.expect(TEST)
    assert "health: SERVING" in said
    assert "sources: each of them answers" in said
    await release.apply_secret(CLIENT_SECRET, trustme.CA().issue_cert(common_name="somebody"))
    failed = await release.shell.run(f"{TEST} --logs")
    assert failed.status != 0, str(failed)
    assert "unable to get" not in failed.output, str(failed)
    assert "Phase:          Failed" in failed.output, str(failed)
    assert "from a CA that it trusts" in failed.output, str(failed)
    await release.uninstall()
    assert not await everything(release.shell) - before


async def _only_the_token_opens_the_metrics(shell: Shell) -> None:
    secret = f"kubectl get secret -n {NAMESPACE} {CLIENT_SECRET} -o jsonpath='{{.data.ca\\.crt}}'"
    await shell.expect(f"{secret} | base64 --decode > ~/ca.crt")
    ask = f"curl -sS --cacert ~/ca.crt https://{HTTP_HOST}:8080/metrics"
    assert "keda_gpu_scaler" not in await shell.expect(ask)
    assert "keda_gpu_scaler" in await shell.expect(f"{ask} -H 'Authorization: Bearer {TOKEN}'")


@pytest.mark.core
async def test_the_kustomize_base_comes_up_answers_and_goes(shell: Shell) -> None:
    before = await everything(shell)
    await shell.expect("kubectl apply -k deploy/kustomize")
    await shell.expect(f"kubectl rollout status -n {NAMESPACE} deploy/{NAME} --timeout=60s")
    assert "health: SERVING" in await shell.expect(f"keda-gpu-scaler probe {ADDRESS}")
    await shell.expect("kubectl delete -k deploy/kustomize")
    await shell.expect(f"kubectl wait --for=delete pod {PODS} --timeout=60s")
    assert not await everything(shell) - before
