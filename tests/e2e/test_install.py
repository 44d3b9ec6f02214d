"""The chart, installed with helm on the real API server, and asked by the real KEDA.

It is asked through its own Service, with its own Secrets and permissions, while its pods run on
nodes of `tests.e2e.kubelet`. They come and go; the workloads that KEDA scales by them do not.
"""

import datetime as dt
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import trustme
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e import keda_log, router
from tests.e2e.cluster import Cluster
from tests.e2e.counts import Counts
from tests.e2e.furnishing import open_lab
from tests.e2e.keda import NAMESPACE
from tests.e2e.lab import Lab
from tests.e2e.release import (
    ADDRESS,
    CLIENT_SECRET,
    HOST,
    HTTP_HOST,
    IMAGE,
    NAME,
    PODS,
    SERVER_SECRET,
    SHORT,
    TOKEN,
    TOKEN_SECRET,
    Release,
    everything,
)
from tests.e2e.shell import Shell
from tests.e2e.under_load import LOAD, REPLICAS, deploy_under_load, the_hpa_has_a_number

pytestmark = pytest.mark.xdist_group("live")
MTLS = {
    "tls": {
        "enabled": True,
        "existingSecret": SERVER_SECRET,
        "client": {"existingSecret": CLIENT_SECRET},
    }
}
EVERYTHING = MTLS | {
    "http": {"tls": {"existingSecret": SERVER_SECRET}, "tokenSecret": {"name": TOKEN_SECRET}},
    "webhook": {"enabled": True, "tokenSecret": {"name": TOKEN_SECRET}},
    "kubernetesApi": {"enabled": True},
    "admissionPolicy": {"enabled": True},
    "metrics": {"dashboard": {"enabled": True}},
}
"""All that requires no other operator; some of it is in no namespace."""
RESTRICTED = "pod-security.kubernetes.io/enforce"
LONGER_THAN_A_CONNECTION = 8
TEST = f"helm test {NAME} --namespace {NAMESPACE} --timeout 60s"
EXAMPLE = "examples/scaledobjects/utilization.yaml"
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
        demand = router.offered(lab.name, f"{name}-requests")
        trigger = release.gpu_by_tls(name, demandQuery=demand, **metadata)
        await lab.autoscale(name, trigger | {"type": "external-push"}, min_replicas=0)
        await lab.stays(name, 0, for_seconds=1)
    await lab.offer("gpt-requests", 1)
    await lab.offer("bert-requests", REPLICAS * int(REQUESTS_EACH))
    await lab.offer("bert", LOAD)
    await lab.reaches("bert", REPLICAS)
    await lab.reaches("gpt", 1)


async def _certificate_changes(release: Release) -> None:
    """Replace the scaler's certificate while it is in use, and wait until all replicas show it."""
    ends = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(days=1)
    await release.show_certificate(release.authority.issue_cert(HOST, not_after=ends))

    async def shown() -> bool:
        pages = await release.metrics()
        return all(
            _number(page, EXPIRY, server="grpc", kind="server") == ends.timestamp()
            for page in pages
        )

    await release.lab.wait(shown, "every replica shows the new certificate")


def _number(page: str, metric: str, **labels: str) -> float | None:
    """Return one number of a metrics page."""
    samples = [
        sample
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == metric and sample.labels == labels
    ]
    return samples[0].value if samples else None


@pytest.mark.core
async def test_from_zero_and_back_through_an_upgrade_and_a_new_certificate(
    live: Cluster, release: Release
) -> None:
    lab = release.lab
    await release.share_certificates()
    await release.install(MTLS)
    await _wake(release)
    before = await _errors(live, lab)
    began = lab.timeline.now_seconds

    lab.timeline.note("the release is upgraded")
    await release.upgrade({"settings": {"log_level": "debug"}})
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_A_CONNECTION)
    # The old pods logged neither: KEDA asks the new ones.
    logs = await release.show("logs --tail=-1")
    assert '"log_level": "debug"' in logs, logs
    assert '"event": "decision.made"' in logs, logs

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


def _old_names(prometheus_url: str) -> dict[str, Any]:
    """Return values under the names that they had, all that is asked for being short."""
    variables = {f"KEDA_GPU_SCALER_{key.upper()}": value for key, value in SHORT.items()}
    return {
        "image": IMAGE,
        "prometheusUrl": prometheus_url,
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "kubernetesEvidence": {"enabled": True},
    }


def _new_names(old: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "image": old["image"],
        "prometheus": {"url": old["prometheusUrl"]},
        "extraEnv": old["env"],
        "kubernetesApi": old["kubernetesEvidence"],
    }


async def test_an_upgrade_from_old_names_to_new_ones_and_a_rollback_move_no_busy_workload(
    live: Cluster, release: Release
) -> None:
    lab = release.lab
    old = _old_names(lab.scaler.prometheus_url)
    assert "old names" not in await release.install_old(old)
    await deploy_under_load(lab)
    await lab.deploy("gpt", replicas=2, load=110)
    await lab.reaches("gpt", 2)
    for name in ("bert", "gpt"):
        await lab.autoscale(name, release.gpu(name), min_replicas=0)
        await the_hpa_has_a_number(lab, name)
    before = await _errors(live, lab)
    began = lab.timeline.now_seconds

    lab.timeline.note("the chart is upgraded, its values under their old names")
    told = await release.upgrade_to(old | {"settings": {"log_level": "debug"}})
    assert "- kubernetesEvidence is now kubernetesApi" in told, told
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_A_CONNECTION)

    lab.timeline.note("the values have their new names")
    told = await release.upgrade_to(_new_names(old) | {"settings": {"log_level": "info"}})
    assert "old names" not in told, told
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_A_CONNECTION)

    lab.timeline.note("the release is rolled back to the old chart")
    await release.roll_back(1)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_A_CONNECTION)

    assert lab.path("bert", began) == [REPLICAS], lab.story()
    assert lab.path("gpt", began) == [2], lab.story()
    assert await _errors(live, lab) == before, lab.story()


@pytest.mark.core
async def test_with_everything_on_helm_test_tells_right_from_wrong_and_uninstall_leaves_nothing(
    release: Release,
) -> None:
    await release.share_certificates()
    await release.share_token()
    before = await everything(release.shell)
    await release.install(EVERYTHING)
    assert await everything(release.shell) - before
    await _only_the_token_opens_the_metrics(release.shell)
    assert "health: SERVING" in await release.shell.expect(TEST)
    await release.apply_secret(CLIENT_SECRET, trustme.CA().issue_cert(common_name="somebody"))
    failed = await release.shell.run(f"{TEST} --logs")
    assert failed.status != 0, str(failed)
    assert "unable to get" not in failed.output, str(failed)
    assert "Phase:          Failed" in failed.output, str(failed)
    assert "have to be of a CA that it trusts" in failed.output, str(failed)
    await release.uninstall()
    assert not await everything(release.shell) - before


async def _only_the_token_opens_the_metrics(shell: Shell) -> None:
    secret = f"kubectl get secret -n {NAMESPACE} {CLIENT_SECRET} -o jsonpath='{{.data.ca\\.crt}}'"
    await shell.expect(f"{secret} | base64 --decode > ~/ca.crt")
    ask = f"curl -sS --cacert ~/ca.crt https://{HTTP_HOST}:8080/metrics"
    assert "keda_gpu_scaler" not in await shell.expect(ask)
    assert "keda_gpu_scaler" in await shell.expect(f"{ask} -H 'Authorization: Bearer {TOKEN}'")


async def test_by_its_own_role_it_finds_the_workload_and_examples_apply_unchanged(
    release: Release,
) -> None:
    lab = release.lab
    await release.install({"kubernetesApi": {"enabled": True}})
    trigger = release.gpu("gpt", demandQuery=router.offered(lab.name, "requests"))
    del trigger["metadata"]["workload"]
    await lab.deploy("gpt")
    await lab.autoscale("gpt", trigger, min_replicas=0)
    await lab.deploy("bert", replicas=1)
    apply = f"sed 's/namespace: inference/namespace: {lab.name}/' {EXAMPLE} | kubectl apply -f -"
    await release.shell.expect(apply)

    await lab.stays("gpt", 0, for_seconds=2)
    await lab.offer("requests", 1)
    await lab.reaches("gpt", 1)
    await lab.offer("gpt", 60)
    await lab.shows("gpt", "hpa metric 0", "60")
    await lab.offer("gpt", 0)
    await lab.offer("requests", 0)
    await lab.reaches("gpt", 0)
    assert '"evidence": "kubernetes"' in await release.show("logs --tail=-1")

    await lab.shows("bert", "keda Ready", "True ScaledObjectReady")
    await lab.shows("bert", "hpa target 0", "70")


@pytest.mark.core
async def test_the_kustomize_base_comes_up_answers_and_goes(shell: Shell) -> None:
    before = await everything(shell)
    await shell.expect("kubectl apply -k deploy/kustomize")
    await shell.expect(f"kubectl rollout status -n {NAMESPACE} deploy/{NAME} --timeout=60s")
    probe = f"kubectl exec -n {NAMESPACE} deploy/{NAME} -- keda-gpu-scaler probe {ADDRESS}"
    assert "health: SERVING" in await shell.expect(probe)
    await shell.expect("kubectl delete -k deploy/kustomize")
    await shell.expect(f"kubectl wait --for=delete pod {PODS} --timeout=60s")
    assert not await everything(shell) - before
