"""The chart as users install it: a release in KEDA's namespace, its Secrets, and triggers for it.

    release = Release(shell, lab)
    await release.install({"settings": {…}})
    await lab.autoscale("bert", release.gpu("bert"))
    await release.uninstall()

The release is called as the examples' `scalerAddress` says, so that they apply unchanged.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import trustme
import yaml

from tests.e2e.keda import NAMESPACE
from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest
from tests.e2e.shell import Shell
from tests.support import certificates

NAME = "keda-gpu-scaler"
HOST = f"{NAME}.{NAMESPACE}.svc"
ADDRESS = f"{HOST}:6000"
HTTP_HOST = f"{NAME}-http.{NAMESPACE}.svc"
SERVER_SECRET, CLIENT_SECRET = "scaler-tls", "keda-client-tls"
TOKEN_SECRET, TOKEN = "scaler-token", "longer-than-anybody-would-guess"
CHART = "deploy/helm/keda-gpu-scaler"
OLD_CHART = "tests/data/chart/keda-gpu-scaler-old-names.tgz"
"""The chart of the last commit before values were renamed."""
_ON_IT = f"{NAME} --namespace {NAMESPACE}"
PODS = f"--namespace {NAMESPACE} --selector app.kubernetes.io/name={NAME}"
"""The release's pods in kubectl's syntax."""
IMAGE = {"repository": NAME}
"""As nodes have it that were given the image."""
SHORT = {
    "prometheus_step": "1s",
    "prometheus_collection": "2s",
    "demand_interval": "1s",
    "connection_max_age": "5s",
}
"""As for the scalers beside the cluster; and KEDA reconnects within seconds."""
_MAY_CHANGE = {"events", "events.events.k8s.io", "leases.coordination.k8s.io"}
"""What the control plane writes by itself."""
CLIENT_AUTHENTICATION = {"kind": "ClusterTriggerAuthentication", "name": NAME}


@dataclass(slots=True)
class Release:
    """One installation, of which a cluster has one at a time."""

    shell: Shell
    lab: Lab
    authority: trustme.CA = field(default_factory=trustme.CA)
    """Of the scaler's certificate and of KEDA's."""

    async def install(self, values: Mapping[str, Any]) -> str:
        """Install the chart with these values, and the lab's Prometheus as the source."""
        return await self._helm("install", self._values(values))

    async def install_old(self, values: Mapping[str, Any]) -> str:
        """Install the chart as it was before values were renamed, with these values alone."""
        return await self._helm("install", values, OLD_CHART)

    async def upgrade(self, values: Mapping[str, Any]) -> None:
        """Change only these values, and wait until every pod is replaced."""
        async with self._replaced():
            await self._helm("upgrade --reuse-values", values)

    async def upgrade_to(self, values: Mapping[str, Any]) -> str:
        """Upgrade to the chart with these values alone, and wait until every pod is replaced."""
        async with self._replaced():
            return await self._helm("upgrade", values)

    async def roll_back(self, revision: int) -> None:
        """Go back to a revision, and wait until every pod is replaced."""
        async with self._replaced():
            await self.shell.expect(f"helm rollback {_ON_IT} {revision} --wait --timeout 90s")

    async def uninstall(self) -> None:
        """Uninstall it if it is installed, and wait until its pods are gone as well."""
        await self.shell.expect(f"helm uninstall {_ON_IT} --ignore-not-found --wait")
        await self.shell.expect(f"kubectl wait {PODS} --for=delete pod --timeout=60s")

    async def show(self, what: str) -> str:
        """Return kubectl's output about the release's pods, such as their `logs`."""
        return await self.shell.expect(f"kubectl {what} {PODS}")

    async def metrics(self) -> list[str]:
        """Return the metrics page of every replica."""
        addresses = await self.show("get pods -o jsonpath='{.items[*].status.podIP}'")
        pages = [f"curl -sSf http://{each}:8080/metrics" for each in addresses.split()]
        return [await self.shell.expect(page) for page in pages]

    async def share_certificates(self) -> None:
        """Create the Secrets that both sides of mTLS read."""
        await self.show_certificate(self.authority.issue_cert(HOST, HTTP_HOST))
        client = self.authority.issue_cert(common_name="keda-operator", organization_name="keda")
        await self.apply_secret(CLIENT_SECRET, client)

    async def show_certificate(self, certificate: trustme.LeafCert) -> None:
        """Have the scaler show this certificate, from the next look at its files on."""
        await self.apply_secret(SERVER_SECRET, certificate)

    async def apply_secret(self, name: str, pair: trustme.LeafCert) -> None:
        """Write a certificate, its key and the authority into a Secret, or write them anew."""
        texts = {
            "ca.crt": self.authority.cert_pem.bytes().decode(),
            "tls.crt": certificates.chain(pair).decode(),
            "tls.key": certificates.key_of(pair).decode(),
        }
        metadata = {"name": name, "namespace": NAMESPACE}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts}
        await self.lab.apply(secret)

    async def share_token(self) -> None:
        """Create the Secret with the token of the HTTP port and of the webhook."""
        metadata = {"name": TOKEN_SECRET, "namespace": NAMESPACE}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        await self.lab.apply({**secret, "stringData": {"token": TOKEN}})

    async def forget_secrets(self) -> None:
        """Delete the Secrets that are there."""
        names = f"{SERVER_SECRET} {CLIENT_SECRET} {TOKEN_SECRET}"
        delete = f"kubectl delete secret --namespace {NAMESPACE} --ignore-not-found {names}"
        await self.shell.expect(delete)

    def gpu(self, workload: str, **metadata: str) -> Manifest:
        """Return a trigger that asks the release."""
        return self.lab.gpu(workload, scalerAddress=ADDRESS, **metadata)

    def gpu_by_tls(self, workload: str, **metadata: str) -> Manifest:
        """Return a trigger that asks the release with the certificate made for KEDA."""
        trigger = self.gpu(workload, enableTLS="true", **metadata)
        return trigger | {"authenticationRef": CLIENT_AUTHENTICATION}

    def _values(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        source = {"prometheus_url": self.lab.scaler.prometheus_url, **SHORT}
        own = {"image": IMAGE, "settings": source | values.get("settings", {})}
        return {**values, **own}

    @contextlib.asynccontextmanager
    async def _replaced(self) -> AsyncIterator[None]:
        before = " ".join((await self.show("get pods -o name")).split())
        yield
        gone = f"kubectl wait --namespace {NAMESPACE} --for=delete {before} --timeout=60s"
        await self.shell.expect(gone)

    async def _helm(self, action: str, values: Mapping[str, Any], chart: str = CHART) -> str:
        command = f"helm {action} {_ON_IT} {chart} --values - --wait --timeout 90s"
        return await self.shell.expect(command, typed=yaml.safe_dump(values))


async def everything(shell: Shell) -> set[str]:
    """Return the name of each object in the cluster, whatever its kind."""
    kinds = set((await shell.expect("kubectl api-resources --verbs=list -o name")).split())
    listed = ",".join(sorted(kinds - _MAY_CHANGE))
    columns = "K:.kind,NS:.metadata.namespace,N:.metadata.name"
    command = f"kubectl get {listed} -A --no-headers -o custom-columns={columns}"
    return {" ".join(line.split()) for line in (await shell.expect(command)).splitlines()}
