"""Kubernetes objects → values, with the few fields that are needed. Pure.

Nothing else of an object is read: most of a pod is what its controllers note about it. Times are
those of the API server; they have to agree with the clocks of the samples within seconds.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct, field

from keda_gpu_scaler.autoscaling import scale_in
from keda_gpu_scaler.query.profiles.model import DEVICE_CLASS, GPU_RESOURCES, OTHER_RESOURCES
from keda_gpu_scaler.snapshot.evidence import PodKey, PodStatement, Unschedulable
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import NO_OWNER, Owner, Selected
from keda_gpu_scaler.times import TIME_STEP_SECONDS
from keda_gpu_scaler.transport import http_client

Amounts = dict[str, str | float]
"""Resources with their amounts."""
LABELS = 200
"""The most labels of a pod; usual pods have ten. A key and its value have up to 380 characters."""
OBJECTS = 150_000
"""As many pods as Kubernetes is made for; each takes 1.3 KiB."""
FIRST_STATUS = timedelta(seconds=10)
"""A kubelet's first status says both that a pod started and that it is not Ready. A change to not
Ready that comes later than this was a change from Ready."""
_INT32_DIGITS = 10


class _OwnerReference(Struct):
    kind: str
    name: str
    controller: bool | None = None


class _Annotations(Struct):
    """What controllers note about ReplicaSets, and what schedulers and they read of pods."""

    deployment_replicas: str = field(default="", name="deployment.kubernetes.io/desired-replicas")
    deployment_revision: str = field(default="", name="deployment.kubernetes.io/revision")
    rollout_replicas: str = field(default="", name="rollout.argoproj.io/desired-replicas")
    rollout_revision: str = field(default="", name="rollout.argoproj.io/revision")
    gpu_fraction: str = field(default="", name="gpu-fraction")
    gpu_memory: str = field(default="", name="gpu-memory")
    deletion_cost: str | None = field(default=None, name=scale_in.COST)
    deletion_cost_mark: str | None = field(default=None, name=scale_in.MARK)


class _Metadata(Struct, rename="camel"):
    namespace: str
    name: str
    resource_version: str
    labels: dict[str, str] | None = None
    annotations: _Annotations | None = None
    owner_references: list[_OwnerReference] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class _Resources(Struct, frozen=True):
    requests: Amounts | None = None
    limits: Amounts | None = None


class _Container(Struct):
    resources: _Resources | None = None


class _Claim(Struct, rename="camel"):
    """A ResourceClaim of a pod; which device it is for is in another object."""

    name: str | None = None
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _TargetReference(Struct, rename="camel"):
    """What a ScaledObject scales."""

    name: str = ""
    api_version: str | None = None
    kind: str | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    resource_claims: list[_Claim] | None = None
    scale_target_ref: _TargetReference | None = None


class _Condition(Struct, frozen=True, rename="camel"):
    type: str
    status: str
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class _TargetResource(Struct, frozen=True):
    """The resource that KEDA found for the kind of a scale target."""

    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""


class _Status(Struct, frozen=True, rename="camel"):
    phase: str | None = None
    start_time: datetime | None = None
    conditions: list[_Condition] | None = None
    target: _TargetResource | None = field(default=None, name="scaleTargetGVKR")


class Item(Struct):
    """An object: a pod, a ScaledObject, or the metadata of any."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def key(self) -> PodKey:
        return self.metadata.namespace, self.metadata.name

    @property
    def owner(self) -> Owner:
        """The owner that controls the object; `NO_OWNER`: there is none."""
        for reference in self.metadata.owner_references or ():
            if reference.controller:
                return Owner(reference.kind, reference.name)
        return NO_OWNER


class ListedPod(NamedTuple):
    """The data kept of a pod."""

    statement: PodStatement
    labels: Mapping[str, str]


class Controller(NamedTuple):
    """The data kept of a ReplicaSet or a Job, which controls pods."""

    owner: Owner
    """`NO_OWNER`: it has none."""
    revision: int = 0
    """Of its owner's revisions; the newest one has the newest number of replicas."""
    wanted: int | None = None
    """How many replicas its owner asks for; None: it does not say."""


class Resource(NamedTuple):
    """One kind of object, as URLs name it."""

    group: str
    version: str
    plural: str
    metadata_only: bool = False
    most: int = OBJECTS
    """A list of more is an error."""
    place: str = ""
    """Such as namespaces/ml; empty: everywhere."""

    def __str__(self) -> str:
        """Return the name as in kubectl: pods, replicasets.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, place: str = "") -> str:
        """Return the URL path of all objects of its place, or of those in another one."""
        start = f"/apis/{self.group}" if self.group else "/api"
        return "/".join(filter(None, (start, self.version, place or self.place, self.plural)))


class ScaleReference(NamedTuple):
    """The scale subresource of one object."""

    namespace: str
    resource: Resource
    name: str

    def __str__(self) -> str:
        """Return the object it belongs to: models.example.com/bert in ml."""
        return f"{self.resource}/{self.name} in {self.namespace}"

    @property
    def path(self) -> str:
        return f"{self.resource.path(f'namespaces/{self.namespace}')}/{self.name}/scale"

    @property
    def pods(self) -> Selected:
        return Selected(self.namespace, str(self.resource), self.name)


def controller(item: Item) -> Controller:
    """Return the data kept of a ReplicaSet or a Job, of which only metadata is known.

    The controllers of Deployments and Rollouts note there how many replicas these ask for.
    """
    notes = item.metadata.annotations or _Annotations()
    for replicas, revision in (
        (notes.deployment_replicas, notes.deployment_revision),
        (notes.rollout_replicas, notes.rollout_revision),
    ):
        wanted = _count(replicas)
        if wanted is not None:
            return Controller(item.owner, _count(revision) or 0, wanted)
    return Controller(item.owner)


def pod(item: Item, without_gpus: Collection[str] = ()) -> ListedPod:
    """Return the data kept of a pod.

    `without_gpus` are the names of ResourceClaims, their templates and DeviceClasses, and the
    beginnings of those of extended resources, that are known to be for no GPU.
    """
    metadata, status, labels = item.metadata, item.status, item.metadata.labels or {}
    conditions = {condition.type: condition for condition in status.conditions or ()}
    # A pod not yet on a node has no condition Ready, and is not Ready.
    readiness = conditions.get("Ready", _Condition("Ready", "False"))
    ready, since = readiness.status == "True", readiness.last_transition_time
    created, started = metadata.creation_timestamp, status.start_time
    asks_gpu, devices = _asks_gpu(item, without_gpus)
    statement = PodStatement(
        owners=frozenset({item.owner} - {NO_OWNER}),
        created_at=created.timestamp() if created else None,
        ready=ready,
        ready_at=since.timestamp() + TIME_STEP_SECONDS if ready and since else None,
        was_ready=bool(not ready and since and started and since - started > FIRST_STATUS),
        ended=status.phase in {"Succeeded", "Failed"} or metadata.deletion_timestamp is not None,
        asks_gpu=asks_gpu,
        devices=devices,
        unschedulable=_unschedulable(conditions.get("PodScheduled"), created),
    )
    return ListedPod(statement, labels if len(labels) <= LABELS else {})


def target(item: Item) -> workload.Workload | ScaleReference | str:
    """Return the scale target of a ScaledObject, or why there is none; the defaults are KEDA's.

    For a kind without a rule for its pods it is the scale subresource. The resource of such a kind
    is the one that KEDA wrote to the status, if that is about the same kind.
    """
    reference, namespace = item.spec.scale_target_ref, item.metadata.namespace
    if reference is None or not workload.is_name(reference.name):
        return "no object can be called what its scaleTargetRef names"
    group, _, _ = (reference.api_version or "apps/v1").rpartition("/")
    word = reference.kind or "Deployment"
    kind = workload.kind_of_target(group, word)
    if kind is not None:
        return workload.Workload(kind, namespace, reference.name)
    resolved = item.status.target or _TargetResource()
    if (resolved.group, resolved.kind) != (group, word):
        shown = f"{word}.{group}" if group else word
        return f"its scaleTargetRef is a {shown}, and its status does not say yet what KEDA found"
    # These names become part of a URL.
    if not all(map(workload.is_name, (resolved.version, resolved.resource, group or "core"))):
        return "its status.scaleTargetGVKR names no resource"
    return ScaleReference(
        namespace, Resource(group, resolved.version, resolved.resource), reference.name
    )


def _asks_gpu(item: Item, without_gpus: Collection[str]) -> tuple[bool | None, frozenset[str]]:
    """Tell whether a pod asks for a GPU, and for which resources that may be one.

    A pod does not show which device a ResourceClaim is for. It counts as one for a GPU: a pod whose
    GPU is overlooked takes its load with it, and one that has none only holds the replicas.
    """
    spec, notes, devices = item.spec, item.metadata.annotations, set[str]()
    if notes is not None and (notes.gpu_fraction or notes.gpu_memory):  # of KAI or Run:ai
        return True, frozenset()
    for claim in spec.resource_claims or ():
        names = claim.name, claim.resource_claim_name, claim.resource_claim_template_name
        if not any(name in without_gpus for name in names):
            return True, frozenset()
    others = (*OTHER_RESOURCES, *(name for name in without_gpus if "/" in name))
    for container in [*(spec.containers or ()), *(spec.init_containers or ())]:
        resources = container.resources or _Resources()
        amounts = [*(resources.requests or {}).items(), *(resources.limits or {}).items()]
        for resource, amount in amounts:
            is_gpu = resource.startswith(GPU_RESOURCES)
            is_extended = "/" in resource and "kubernetes.io/" not in resource
            if resource.startswith(DEVICE_CLASS):
                is_gpu = resource.removeprefix(DEVICE_CLASS) not in without_gpus
            if str(amount) == "0" or resource.startswith(others):
                continue
            if is_gpu:
                return True, frozenset()
            if is_extended:
                devices.add(resource)
    return None if devices else False, frozenset(devices)


def _unschedulable(condition: _Condition | None, created: datetime | None) -> Unschedulable | None:
    """Return since when the scheduler finds no node for a pod; one with a gate it does not try."""
    if condition is None or condition.reason != "Unschedulable":
        return None
    since = condition.last_transition_time or created
    # What follows is about each node again: why no other pod can make room.
    message, _, _ = condition.message.partition(" preemption: ")
    return Unschedulable(since.timestamp(), http_client.printable(message)) if since else None


def _count(text: str) -> int | None:
    """Return a whole number; None: it is none, or longer than one that Kubernetes writes."""
    known = text.isascii() and text.isdecimal() and len(text) <= _INT32_DIGITS
    return int(text) if known else None
