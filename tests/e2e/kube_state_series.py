"""What kube-state-metrics says about pods and their owners: its names and labels, its rules.

Only the series that identify pods and tell which are ready. Pure. Sources: the
metrics' pages in the documentation of kube-state-metrics 2.
"""

from collections.abc import Iterator, Sequence

from lightkube.models.apps_v1 import Deployment, ReplicaSet, StatefulSet
from lightkube.models.core_v1 import Container, Pod, PodCondition, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference

from tests.e2e.manifests import GPU

Labels = dict[str, str]
Sample = tuple[str, Labels, float]
_NO_OWNER = OwnerReference(apiVersion="", kind="", name="", uid="")


def of_pod(pod: Pod) -> Iterator[Sample]:
    """Yield everything about one pod."""
    metadata, spec = pod.metadata or ObjectMeta(), pod.spec or PodSpec(containers=[])
    status = pod.status or PodStatus()
    this = _this("pod", metadata) | {"uid": metadata.uid or ""}
    yield "kube_pod_info", this | _info(metadata, spec, status), 1
    yield from _owners("kube_pod_owner", this, metadata)
    if metadata.creationTimestamp is not None:
        yield "kube_pod_created", this, metadata.creationTimestamp.timestamp()
    if metadata.deletionTimestamp is not None:
        yield "kube_pod_deletion_timestamp", this, metadata.deletionTimestamp.timestamp()
    for phase in ("Pending", "Succeeded", "Failed", "Unknown", "Running"):
        yield "kube_pod_status_phase", this | {"phase": phase}, phase == status.phase
    for condition in status.conditions or ():
        yield from _readiness(this, condition)
    yield from _claims(this, spec, status)
    for container in spec.containers:
        yield from _requests(this | {"node": spec.nodeName or ""}, container)
    for each in status.containerStatuses or ():
        labels = {"container": each.name}
        yield "kube_pod_container_status_restarts_total", this | labels, each.restartCount


def of_replica_set(replica_set: ReplicaSet) -> Iterator[Sample]:
    """Yield the owner of one ReplicaSet."""
    metadata = replica_set.metadata or ObjectMeta()
    yield from _owners("kube_replicaset_owner", _this("replicaset", metadata), metadata)


def of_deployment(deployment: Deployment) -> Iterator[Sample]:
    """Yield how many pods one Deployment asks for and has."""
    this = _this("deployment", deployment.metadata or ObjectMeta())
    yield "kube_deployment_spec_replicas", this, _asked(deployment.spec.replicas)
    replicas = deployment.status and deployment.status.replicas
    yield "kube_deployment_status_replicas", this, replicas or 0


def of_stateful_set(stateful_set: StatefulSet) -> Iterator[Sample]:
    """Yield how many pods one StatefulSet asks for and has."""
    this = _this("statefulset", stateful_set.metadata or ObjectMeta())
    yield "kube_statefulset_replicas", this, _asked(stateful_set.spec.replicas)
    replicas = stateful_set.status and stateful_set.status.replicas
    yield "kube_statefulset_status_replicas", this, replicas or 0


def _asked(replicas: int | None) -> int:
    return 1 if replicas is None else replicas


def _this(kind: str, metadata: ObjectMeta) -> Labels:
    return {"namespace": metadata.namespace or "", kind: metadata.name or ""}


def _info(metadata: ObjectMeta, spec: PodSpec, status: PodStatus) -> Labels:
    owners = [each for each in metadata.ownerReferences or () if each.controller]
    owner = owners[0] if owners else _NO_OWNER
    return {
        "host_ip": status.hostIP or "",
        "pod_ip": status.podIP or "",
        "node": spec.nodeName or "",
        "created_by_kind": owner.kind,
        "created_by_name": owner.name,
        "priority_class": spec.priorityClassName or "",
        "host_network": _word(spec.hostNetwork),
    }


def _owners(name: str, this: Labels, metadata: ObjectMeta) -> Iterator[Sample]:
    owners: Sequence[OwnerReference] = metadata.ownerReferences or (_NO_OWNER,)
    for owner in owners:
        controls = _word(owner.controller) if owner.name else ""
        labels = {"owner_kind": owner.kind, "owner_name": owner.name}
        yield name, this | labels | {"owner_is_controller": controls}, 1


def _readiness(this: Labels, condition: PodCondition) -> Iterator[Sample]:
    """Yield nothing for a pod without the condition, such as one that was never scheduled."""
    if condition.type != "Ready":
        return
    for status in ("true", "false", "unknown"):
        is_so = condition.status.lower() == status
        yield "kube_pod_status_ready", this | {"condition": status}, is_so
    since = condition.lastTransitionTime
    if condition.status == "True" and since is not None:
        yield "kube_pod_status_ready_time", this, since.timestamp()


def _claims(this: Labels, spec: PodSpec, status: PodStatus) -> Iterator[Sample]:
    """Yield each ResourceClaim, as kube-state-metrics does since 2.20."""
    generated = {
        each.name: each.resourceClaimName or "" for each in status.resourceClaimStatuses or ()
    }
    for claim in spec.resourceClaims or ():
        labels = {
            "claim_name": claim.name,
            "resourceclaim_name": claim.resourceClaimName or generated.get(claim.name, ""),
            "resourceclaim_template_name": claim.resourceClaimTemplateName or "",
        }
        yield "kube_pod_resourceclaim_info", this | labels, 1


def _requests(this: Labels, container: Container) -> Iterator[Sample]:
    requests = (container.resources and container.resources.requests) or {}
    if GPU in requests:
        labels = {"container": container.name, "resource": "nvidia_com_gpu", "unit": "integer"}
        yield "kube_pod_container_resource_requests", this | labels, float(requests[GPU])


def _word(flag: bool | None) -> str:  # noqa: FBT001 - a field of a Kubernetes object
    return "true" if flag else "false"
