"""The chart's admission policy on an API server, and why that refuses an object."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lightkube
from lightkube import ApiError, codecs
from lightkube.resources.core_v1 import Namespace

from tests.e2e import manifests
from tests.repository.chart import charts
from tests.support.processes import until


class Gate(NamedTuple):
    """A namespace whose scaler has the policy."""

    client: lightkube.AsyncClient
    namespace: str

    @property
    def address(self) -> str:
        """Where the release's Service is."""
        return f"{charts.RELEASE}.{self.namespace}.svc:6000"

    def scaled_object(self, *metadata: dict[str, str], **fields: str) -> dict[str, Any]:
        """Return a ScaledObject with a trigger for each of these metadata."""
        triggers = [
            {"type": "external", "metadata": {"scalerAddress": self.address} | one} | fields
            for one in metadata
        ]
        return {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"namespace": self.namespace, "name": f"so-{uuid.uuid4().hex[:8]}"},
            "spec": {"scaleTargetRef": {"name": "bert"}, "triggers": triggers},
        }

    async def refusal(self, document: dict[str, Any]) -> str | None:
        """Return why the API server refuses an object; None when it would accept it."""
        try:
            await self.client.create(codecs.from_dict(document), dry_run=True)
        except ApiError as error:
            return str(error.status.message)
        return None


@asynccontextmanager
async def open_gate(kubeconfig: Path, namespace: str, **values: str) -> AsyncIterator[Gate]:
    """Install the policy for a release in a namespace of its own, until the block ends."""
    configuration = lightkube.KubeConfig.from_file(kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="e2e", trust_env=False)
    gate = Gate(client, namespace)
    policy = _policy(namespace, {"admissionPolicy.enabled": "true", **values})
    try:
        await client.apply(codecs.from_dict(manifests.namespace(namespace)))
        for each in policy:
            await client.apply(codecs.from_dict(each), force=True)
        await _until_it_refuses(gate)
        yield gate
    finally:
        for each in policy:
            await client.delete(type(codecs.from_dict(each)), each["metadata"]["name"])
        await client.delete(Namespace, namespace)
        await client.close()


def _policy(namespace: str, values: dict[str, str]) -> list[charts.Object]:
    """Return the policy and its binding, as the chart makes them."""
    where = {"keda.namespace": charts.NAMESPACE, **values}
    flags = [f"--set={key}={value}" for key, value in where.items()]
    found = charts.objects(charts.template(*flags, namespace=namespace))
    policy = [one for one in found if one["kind"].startswith("ValidatingAdmissionPolicy")]
    assert len(policy) == 2
    return policy


async def _until_it_refuses(gate: Gate) -> None:
    """Wait until the API server applies the policy, some time after it has accepted it."""

    async def refuses() -> bool:
        return "keda-gpu-scaler: " in str(await gate.refusal(gate.scaled_object({})))

    await until(refuses, 30, "the policy is enforced")
