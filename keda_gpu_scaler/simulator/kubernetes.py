"""Lists a real cluster once a second and keeps its mirror up to date.

This is the only part of the simulator that talks to Kubernetes. A failed list does not count as an
empty one: the mirror keeps its content until both nodes and pods can be listed again. Pods request
extended resources such as GPUs by limits; the scheduler never overcommits them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field

import lightkube
from lightkube.models import core_v1
from lightkube.models.core_v1 import Container, NodeStatus, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, Pod
from lightkube.utils.quantity import parse_quantity

from keda_gpu_scaler.simulator import cluster, mirror
from keda_gpu_scaler.transport import client

_GPU = "nvidia.com/gpu"
_COMPLETED = {"Succeeded", "Failed"}


def nodes(found: Iterable[core_v1.Node]) -> Iterator[mirror.Node]:
    """Yield the nodes that list GPUs as allocatable, even 0 of them."""
    for node in found:
        metadata, status = node.metadata or ObjectMeta(), node.status or NodeStatus()
        allocatable = status.allocatable or {}
        if _GPU in allocatable:
            yield mirror.Node(metadata.name or "", _count(allocatable))


def pods(found: Iterable[core_v1.Pod]) -> Iterator[mirror.Pod]:
    """Yield the pods with GPUs, from the time they are scheduled to a node."""
    for pod in found:
        spec, status = pod.spec or PodSpec(containers=[]), pod.status or PodStatus()
        holders = [each for each in spec.containers if _gpus(each)]
        if holders and spec.nodeName:
            yield _pod(pod.metadata or ObjectMeta(), spec.nodeName, status, holders)


def _pod(
    metadata: ObjectMeta, node: str, status: PodStatus, holders: list[Container]
) -> mirror.Pod:
    name = metadata.name or ""
    return mirror.Pod(
        uid=metadata.uid or name,
        name=name,
        workload=cluster.Key(metadata.namespace or "", _workload(metadata)),
        node=node,
        gpus=sum(map(_gpus, holders)),
        container=holders[0].name,
        ready=any(
            each.type == "Ready" and each.status == "True" for each in status.conditions or []
        ),
        terminating=metadata.deletionTimestamp is not None,
        completed=status.phase in _COMPLETED,
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
    limits = container.resources.limits if container.resources else None
    return _count(limits or {})


def _count(resources: dict[str, str]) -> int:
    """Read a quantity; Kubernetes writes a thousand as `1k`."""
    return int(parse_quantity(resources.get(_GPU)) or 0)


_PAUSE_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Scope:
    """The nodes and pods to list."""

    namespace: str | None = None
    """None: all namespaces."""
    node_labels: dict[str, str] = field(default_factory=dict)


class Follower:
    """Lists nodes and pods repeatedly."""

    def __init__(
        self,
        shown: mirror.Mirror,
        scope: Scope,
        say: Callable[[str], None],
        pause_seconds: float = _PAUSE_SECONDS,
        config: lightkube.KubeConfig | None = None,
    ) -> None:
        """Read the configuration; ValueError says what is wrong with it.

        Args:
            shown: the mirror to keep up to date.
            scope: the nodes and pods to list.
            say: is told once when they cannot be listed, and once when they can again.
            pause_seconds: the pause between two lists.
            config: how to reach the cluster; None: by the service account or KUBECONFIG.
        """
        self._mirror = shown
        self._pause_seconds = pause_seconds
        self._scope = scope
        self._say = say
        self._client = _client(config)
        self._failing = False

    @contextlib.asynccontextmanager
    async def running(self, listed: Callable[[], None]) -> AsyncIterator[None]:
        """Follow until the block ends; `listed` is called after every list that succeeded."""
        try:
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(self._follow(listed), name="kubernetes-lists")
                yield
                following.cancel()
        finally:
            await self._client.close()

    async def _follow(self, listed: Callable[[], None]) -> None:
        while True:
            if await self._look():
                listed()
            await asyncio.sleep(self._pause_seconds)

    async def _look(self) -> bool:
        """Update the mirror and return whether that succeeded; a failure is reported once."""
        try:
            self._mirror.show(await self._nodes(), await self._pods())
        except Exception as error:  # noqa: BLE001 - whatever went wrong: no list is not an empty one
            self._say_once(f"cannot list nodes and pods: {client.error_text(error)}")
            return False
        self._say_once("")
        return True

    def _say_once(self, trouble: str) -> None:
        if self._failing is not bool(trouble):
            self._failing = bool(trouble)
            self._say(trouble or "nodes and pods are listed again")

    async def _nodes(self) -> list[mirror.Node]:
        found = self._client.list(Node, labels=dict(self._scope.node_labels))
        return list(nodes([each async for each in found]))

    async def _pods(self) -> list[mirror.Pod]:
        found = self._client.list(Pod, namespace=self._scope.namespace or lightkube.ALL_NS)
        return list(pods([each async for each in found]))


def _client(config: lightkube.KubeConfig | None) -> lightkube.AsyncClient:
    try:
        # The service account or KUBECONFIG, and nothing else from the environment: no proxy.
        return lightkube.AsyncClient(config or lightkube.KubeConfig.from_env(), trust_env=False)
    except KeyError as error:
        raise ValueError(f"no cluster to follow: the kubeconfig has no {error}") from error
    except Exception as error:  # lightkube raises the errors of several libraries
        raise ValueError(f"no cluster to follow: {client.error_text(error)}") from error
