"""Lists a real cluster once a second and shows its nodes and pods.

This is the only part of the simulator that talks to Kubernetes. A failed list does not count as an
empty one: what is shown stays until both nodes and pods can be listed again. Pods request extended
resources such as GPUs by limits; the scheduler never overcommits them.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import NoReturn

import lightkube
from lightkube.models import core_v1
from lightkube.models.core_v1 import Container, NodeStatus, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, Pod
from lightkube.utils.quantity import parse_quantity

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kubernetes.api import configuration_text
from keda_gpu_scaler.transport import http_client
from keda_gpu_scaler.workbench.world import cluster

_GPU = "nvidia.com/gpu"
_PAUSE_SECONDS = 1


def nodes(listed: Iterable[core_v1.Node]) -> Iterator[tuple[str, int]]:
    """Yield the nodes that list GPUs as allocatable, even 0 of them, with their number."""
    for node in listed:
        metadata, status = node.metadata or ObjectMeta(), node.status or NodeStatus()
        if _GPU in (status.allocatable or {}):
            yield metadata.name or "", _count(status.allocatable)


def pods(listed: Iterable[core_v1.Pod]) -> Iterator[cluster.SimulatedPod]:
    """Yield the pods with GPUs, from the time they are scheduled to a node to their end."""
    for pod in listed:
        spec, status = pod.spec or PodSpec(containers=[]), pod.status or PodStatus()
        holders = [container for container in spec.containers if _gpus(container)]
        if not holders or not spec.nodeName or status.phase in {"Succeeded", "Failed"}:
            continue
        metadata = pod.metadata or ObjectMeta()
        name = metadata.name or ""
        conditions = {condition.type: condition.status for condition in status.conditions or []}
        yield cluster.SimulatedPod(
            uid=metadata.uid or name,
            name=name,
            workload=cluster.WorkloadKey(metadata.namespace or "", _workload(metadata)),
            node=spec.nodeName,
            gpus=sum(map(_gpus, holders)),
            container=holders[0].name,
            ready_at=-math.inf if conditions.get("Ready") == "True" else math.inf,
            terminating=metadata.deletionTimestamp is not None,
        )


def _workload(metadata: ObjectMeta) -> str:
    """Return the name of a pod's workload: its controller, or the Deployment of a ReplicaSet."""
    for owner in metadata.ownerReferences or []:
        if owner.controller and owner.kind == "ReplicaSet":
            revision = (metadata.labels or {}).get("pod-template-hash", "")
            return owner.name.removesuffix(f"-{revision}")
        if owner.controller:
            return owner.name
    return metadata.name or ""


def _gpus(container: Container) -> int:
    return _count(container.resources.limits if container.resources else None)


def _count(resources: dict[str, str] | None) -> int:
    """Read a quantity of GPUs; Kubernetes writes a thousand as `1k`."""
    return int(parse_quantity((resources or {}).get(_GPU)) or 0)


@contextlib.asynccontextmanager
async def following(  # noqa: PLR0913 - all but three have defaults
    shown: cluster.Cluster,
    on_list: Callable[[], None],
    report: Callable[[str], None],
    *,
    namespace: str | None = None,
    node_labels: Mapping[str, str] | None = None,
    pause_seconds: float = _PAUSE_SECONDS,
    config: lightkube.KubeConfig | None = None,
) -> AsyncIterator[None]:
    """Show what a cluster has until the block ends.

    `on_list` is called after every list that succeeded, `report` once when nodes and pods cannot be
    listed, and once when they can again. Without a namespace, pods of all namespaces are shown.
    SettingsError if the configuration, by default the service account or KUBECONFIG, names no
    cluster.
    """
    try:
        # The service account or KUBECONFIG, and nothing else from the environment: no proxy.
        api = lightkube.AsyncClient(config or lightkube.KubeConfig.from_env(), trust_env=False)
    except Exception as error:  # lightkube raises the errors of several libraries
        message = f"no cluster to follow: {configuration_text(error)}"
        raise errors.SettingsError(message) from error

    async def look() -> None:
        listed_nodes = api.list(Node, labels=dict(node_labels or {}))
        listed_pods = api.list(Pod, namespace=namespace or lightkube.ALL_NS)
        shown.show(
            dict(nodes([node async for node in listed_nodes])),
            pods([pod async for pod in listed_pods]),
        )

    async def follow() -> NoReturn:
        is_failing = False
        while True:
            try:
                await look()
            except Exception as error:  # noqa: BLE001 - whatever went wrong: no list is not an empty one
                if not is_failing:
                    report(f"cannot list nodes and pods: {http_client.error_text(error)}")
                is_failing = True
            else:
                if is_failing:
                    report("nodes and pods are listed again")
                is_failing = False
                on_list()
            await asyncio.sleep(pause_seconds)

    task = asyncio.create_task(follow(), name="kubernetes-lists")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()
