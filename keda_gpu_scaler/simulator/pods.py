"""What Kubernetes objects say about nodes and pods with GPUs. Pure.

Extended resources such as GPUs are asked for by limits; the scheduler never overcommits them.
"""

from collections.abc import Iterable, Iterator

from lightkube.models.core_v1 import Container, Node, NodeStatus, Pod, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.utils.quantity import parse_quantity

from keda_gpu_scaler.simulator import cluster, mirror

_GPU = "nvidia.com/gpu"
_COMPLETED = {"Succeeded", "Failed"}


def nodes(found: Iterable[Node]) -> Iterator[mirror.Node]:
    """Yield the nodes that have GPUs to give, be it 0 at the moment."""
    for node in found:
        metadata, status = node.metadata or ObjectMeta(), node.status or NodeStatus()
        allocatable = status.allocatable or {}
        if _GPU in allocatable:
            yield mirror.Node(metadata.name or "", _count(allocatable))


def pods(found: Iterable[Pod]) -> Iterator[mirror.Pod]:
    """Yield the pods that were given GPUs, as soon as they were placed on a node."""
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
    """Name the workload of a pod: its controller, or the Deployment behind a ReplicaSet."""
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
