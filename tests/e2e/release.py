"""The chart as users install it: a release in KEDA's namespace, its Secrets, and triggers for it.

The release is called as the examples' `scalerAddress` says, so that they apply unchanged.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import trustme
import yaml

from testbed.cluster.keda import NAMESPACE
from testbed.cluster.manifests import Manifest, secret
from testbed.cluster.network import loopback
from testbed.cluster.shell import Shell
from tests.e2e.counts import Counts
from tests.e2e.lab import Lab
from tests.support import certificates

NAME = "keda-gpu-scaler"
HOST = f"{NAME}.{NAMESPACE}.svc"
ADDRESS = f"{HOST}:6000"
HTTP_HOST = f"{NAME}-http.{NAMESPACE}.svc"
SERVER_SECRET, CLIENT_SECRET = "scaler-tls", "keda-client-tls"
TOKEN_SECRET, TOKEN = "scaler-token", "longer-than-anybody-would-guess"
_ON_IT = f"{NAME} --namespace {NAMESPACE}"
PODS = f"--namespace {NAMESPACE} --selector app.kubernetes.io/name={NAME}"
"""The release's pods in kubectl's syntax."""
_SHORT = {
    "prometheus_step": "1s",
    "prometheus_collection": "2s",
    "demand_interval": "1s",
    "connection_max_age": "5s",
}
"""As for the scalers beside the cluster; and KEDA reconnects within seconds."""
_MAY_CHANGE = {"events", "events.events.k8s.io", "leases.coordination.k8s.io"}
"""What the control plane writes by itself."""


@dataclass(slots=True)
class Release:
    """One installation, of which a cluster has one at a time."""

    shell: Shell
    lab: Lab
    authority: trustme.CA = field(default_factory=trustme.CA)
    """Of the scaler's certificate and of KEDA's."""

    async def install(self, values: Mapping[str, Any]) -> None:
        """Install the chart with these values, and the lab's Prometheus as the source."""
        source = {"prometheus_url": self.lab.scaler.prometheus_url, **_SHORT}
        # As nodes have the image that were given it.
        await self._helm("install", {**values, "image": {"repository": NAME}, "settings": source})

    async def upgrade(self, values: Mapping[str, Any]) -> None:
        """Change only these values, and wait until every pod is replaced."""
        async with self._replaced():
            await self._helm("upgrade --reuse-values", values)

    async def roll_back(self) -> None:
        """Go back to the first revision, and wait until every pod is replaced."""
        async with self._replaced():
            await self.shell.expect(f"helm rollback {_ON_IT} 1 --wait --timeout 90s")

    async def uninstall(self) -> None:
        """Uninstall it if it is installed, and wait until its pods are gone as well."""
        await self.shell.expect(f"helm uninstall {_ON_IT} --ignore-not-found --wait")
        await self.shell.expect(f"kubectl wait {PODS} --for=delete pod --timeout=60s")

    async def show(self, what: str) -> str:
        return await self.shell.expect(f"kubectl {what} {PODS}")

    async def counts(self) -> list[Counts]:
        addresses = await self.show("get pods -o jsonpath='{.items[*].status.podIP}'")
        return [Counts(f"http://{loopback(each)}:8080/metrics") for each in addresses.split()]

    async def share_secrets(self) -> None:
        """Create the Secrets that both sides of mTLS read, and that of the HTTP port."""
        await self.apply_secret(SERVER_SECRET, self.authority.issue_cert(HOST, HTTP_HOST))
        client = self.authority.issue_cert(common_name="keda-operator", organization_name="keda")
        await self.apply_secret(CLIENT_SECRET, client)
        await self.lab.apply(secret(NAMESPACE, TOKEN_SECRET, {"token": TOKEN}))

    async def apply_secret(self, name: str, pair: trustme.LeafCert) -> None:
        """Write a certificate, its key and the authority into a Secret, or write them anew."""
        texts = {
            "ca.crt": self.authority.cert_pem.bytes().decode(),
            "tls.crt": certificates.chain(pair).decode(),
            "tls.key": certificates.key_of(pair).decode(),
        }
        await self.lab.apply(secret(NAMESPACE, name, texts))

    async def forget_secrets(self) -> None:
        names = f"{SERVER_SECRET} {CLIENT_SECRET} {TOKEN_SECRET}"
        await self.shell.expect(f"kubectl delete secret --namespace {NAMESPACE} {names}")

    def push(self, **metadata: str) -> Manifest:
        """Return a trigger that asks the release with KEDA's certificate, without a `workload`."""
        trigger = self.lab.gpu("", scalerAddress=ADDRESS, enableTLS="true", **metadata)
        del trigger["metadata"]["workload"]
        authentication = {"kind": "ClusterTriggerAuthentication", "name": NAME}
        return trigger | {"type": "external-push", "authenticationRef": authentication}

    @contextlib.asynccontextmanager
    async def _replaced(self) -> AsyncIterator[None]:
        before = " ".join((await self.show("get pods -o name")).split())
        yield
        gone = f"kubectl wait --namespace {NAMESPACE} --for=delete {before} --timeout=60s"
        await self.shell.expect(gone)

    async def _helm(self, action: str, values: Mapping[str, Any]) -> None:
        command = f"helm {action} {_ON_IT} deploy/helm/{NAME} --values - --wait --timeout 90s"
        await self.shell.expect(command, typed=yaml.safe_dump(values))


async def everything(shell: Shell) -> set[str]:
    """Return the name of each object in the cluster, whatever its kind."""
    kinds = set((await shell.expect("kubectl api-resources --verbs=list -o name")).split())
    listed = ",".join(sorted(kinds - _MAY_CHANGE))
    columns = "K:.kind,NS:.metadata.namespace,N:.metadata.name"
    command = f"kubectl get {listed} -A --no-headers -o custom-columns={columns}"
    return {" ".join(line.split()) for line in (await shell.expect(command)).splitlines()}
