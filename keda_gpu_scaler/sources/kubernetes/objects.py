"""Kubernetes objects → values, with the few fields that are needed. Pure.

Nothing else of an object is read: most of a pod is what its controllers note about it. Times are
those of the API server; they have to agree with the clocks of the samples within seconds.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler.query.profiles.model import DEVICE_CLASS, GPU_RESOURCES
from keda_gpu_scaler.snapshot.evidence import TIME_STEP_SECONDS, PodKey, PodStatement
from keda_gpu_scaler.spec import kinds, workload
from keda_gpu_scaler.spec.workload import NO_OWNER, Owner, Selected

Json = Mapping[str, Any]
Amounts = dict[str, str | float] | None
"""Resources with their amounts."""
LABEL_BYTES = 16 * 1024
"""The text of a pod's labels, which can be hundreds of times as long as usual ones."""


class OwnerReference(TypedDict, total=False):
    """An owner of an object."""

    kind: str
    name: str
    controller: bool | None


Annotations = TypedDict(
    "Annotations",
    {
        "deployment.kubernetes.io/desired-replicas": str,
        "deployment.kubernetes.io/revision": str,
        "rollout.argoproj.io/desired-replicas": str,
        "rollout.argoproj.io/revision": str,
    },
    total=False,
)
"""What the controllers of Deployments and Rollouts note about their ReplicaSets."""


class Metadata(TypedDict, total=False):
    """The metadata of an object."""

    namespace: str
    name: str
    resourceVersion: str
    labels: msgspec.Raw
    annotations: Annotations | None
    ownerReferences: list[OwnerReference] | None
    creationTimestamp: str | None
    deletionTimestamp: str | None


class Resources(TypedDict, total=False):
    """The resources of a container."""

    requests: Amounts
    limits: Amounts


class Container(TypedDict, total=False):
    """A container of a pod."""

    resources: Resources | None


class Claim(TypedDict, total=False):
    """A ResourceClaim of a pod, by its names: which device it is for is in another object."""

    name: str
    resourceClaimName: str | None
    resourceClaimTemplateName: str | None


class Spec(TypedDict, total=False):
    """The spec of a pod or of a ScaledObject."""

    containers: list[Container] | None
    initContainers: list[Container] | None
    resourceClaims: list[Claim] | None
    scaleTargetRef: dict[str, str | None]


class Condition(TypedDict, total=False):
    """A condition of a pod."""

    type: str
    status: str
    lastTransitionTime: str | None


class Status(TypedDict, total=False):
    """The status of a pod or of a ScaledObject."""

    phase: str | None
    startTime: str | None
    conditions: list[Condition] | None
    scaleTargetGVKR: dict[str, str | None] | None


class Item(TypedDict, total=False):
    """An object, or what the API server says in place of one in a watch that fails."""

    metadata: Metadata
    spec: Spec | None
    status: Status | None
    code: int
    message: str


class Pod(NamedTuple):
    """The data kept of a pod."""

    said: PodStatement
    labels: Mapping[str, str]


class ReplicaSet(NamedTuple):
    """The data kept of a ReplicaSet."""

    owner: Owner
    """`NO_OWNER`: it has none."""
    revision: int = 0
    """Of its owner's revisions; the newest one has the newest number of replicas."""
    wanted: int | None = None
    """How many replicas its owner asks for; None: it does not say."""


class Scale(NamedTuple):
    """The scale subresource of one object, as URLs name it."""

    namespace: str
    group: str
    version: str
    plural: str
    name: str

    def __str__(self) -> str:
        """Return the object it belongs to: models.example.com/bert in ml."""
        return f"{self.resource}/{self.name} in {self.namespace}"

    @property
    def resource(self) -> str:
        """The kind of object as in kubectl: models.example.com."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """Its URL path."""
        start = f"/apis/{self.group}" if self.group else "/api"
        place = f"{self.version}/namespaces/{self.namespace}"
        return f"{start}/{place}/{self.plural}/{self.name}/scale"

    @property
    def pods(self) -> Selected:
        """The pods that the object selects."""
        return Selected(self.namespace, self.resource, self.name)


FIRST_STATUS_SECONDS = 10.0
"""A kubelet's first status says both that a pod started and that it is not Ready. A change to not
Ready that comes later than this was a change from Ready."""
_NO_LABELS = msgspec.Raw(b"null")
_LABELS = Decoder(dict[str, str] | None)
_REVISIONED = ("deployment.kubernetes.io", "rollout.argoproj.io")
"""Whose annotations a ReplicaSet of a Deployment and of a Rollout has."""
_DIGITS = 10
"""The longest number of 32 bits."""
_ENDED = frozenset({"Succeeded", "Failed"})
_CONTAINERS = ("containers", "initContainers")
_AMOUNTS = ("requests", "limits")


def key(item: Json) -> PodKey:
    """Return the namespace and the name of an object."""
    metadata = item["metadata"]
    return str(metadata["namespace"]), str(metadata["name"])


def controller(item: Json) -> Owner | None:
    """Return the owner that controls an object; None: there is none."""
    for owner in item["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return Owner(str(owner["kind"]), str(owner["name"]))
    return None


def above(item: Json) -> Owner:
    """Return the owner of an object that owns pods itself; `NO_OWNER`: there is none."""
    return controller(item) or NO_OWNER


def replica_set(item: Json) -> ReplicaSet:
    """Return the data kept of a ReplicaSet, of which only metadata is known.

    The controllers of Deployments and Rollouts note there how many replicas these ask for.
    """
    annotations = item["metadata"].get("annotations") or {}
    for prefix in _REVISIONED:
        wanted = _count(annotations.get(f"{prefix}/desired-replicas"))
        if wanted is not None:
            revision = _count(annotations.get(f"{prefix}/revision")) or 0
            return ReplicaSet(above(item), revision, wanted)
    return ReplicaSet(above(item))


def pod(item: Json, claims_without_gpus: Collection[str] = ()) -> Pod:
    """Return the data kept of a pod object; `statement` has the arguments."""
    said = statement(item, claims_without_gpus)
    return Pod(said, _labels(item["metadata"].get("labels", _NO_LABELS)))


def statement(pod: Json, claims_without_gpus: Collection[str] = ()) -> PodStatement:
    """Return the statement that a pod object makes about the pod.

    Args:
        pod: the object.
        claims_without_gpus: ResourceClaims, their templates and DeviceClasses that are known to be
            for no GPU, by their names.
    """
    metadata, status = pod["metadata"], pod.get("status") or {}
    owner, condition = controller(pod), _ready(status)
    ready, since = condition.get("status") == "True", _time(condition.get("lastTransitionTime"))
    return PodStatement(
        owners=frozenset() if owner is None else frozenset({owner}),
        created_at=_time(metadata.get("creationTimestamp")),
        ready=ready,
        ready_at=since + TIME_STEP_SECONDS if ready and since is not None else None,
        was_ready=not ready and _was_ready(since, _time(status.get("startTime"))),
        ended=status.get("phase") in _ENDED or bool(metadata.get("deletionTimestamp")),
        asks_gpu=_asks_gpu(pod.get("spec") or {}, claims_without_gpus),
    )


def target(scaled_object: Json) -> workload.Workload | Scale | str:
    """Return the scale target of a ScaledObject, or why there is none; the defaults are KEDA's.

    For a kind without a rule for its pods it is the scale subresource. The resource of such a kind
    is the one that KEDA wrote to the status, if that is about the same kind.
    """
    namespace, _ = key(scaled_object)
    reference = scaled_object["spec"]["scaleTargetRef"]
    group, _, _ = str(reference.get("apiVersion") or "apps/v1").rpartition("/")
    word, name = str(reference.get("kind") or "Deployment"), str(reference["name"])
    if not workload.is_name(name):
        return "no object can be called what its scaleTargetRef names"
    kind = kinds.of_target(group, word)
    if kind is not None:
        return workload.Workload(kind, namespace, name)
    found = (scaled_object.get("status") or {}).get("scaleTargetGVKR") or {}
    if (found.get("group") or "", found.get("kind")) != (group, word):
        shown = f"{word}.{group}" if group else word
        return f"its scaleTargetRef is a {shown}, and its status does not say yet what KEDA found"
    return _scale(namespace, found, name)


def _scale(namespace: str, found: Json, name: str) -> Scale | str:
    """Return the scale subresource; checked, because these names become part of a URL."""
    version, plural = str(found.get("version")), str(found.get("resource"))
    group = str(found.get("group") or "")
    if not all(map(workload.is_name, (version, plural, group or "core"))):
        return "its status.scaleTargetGVKR names no resource"
    return Scale(namespace, group, version, plural, name)


def _ready(status: Json) -> Json:
    """Return the condition Ready; empty: a pod not yet on a node has none, and is not Ready."""
    conditions: list[Json] = status.get("conditions") or []
    return next((one for one in conditions if one.get("type") == "Ready"), {})


def _was_ready(unready_since: float | None, started_at: float | None) -> bool:
    if unready_since is None or started_at is None:
        return False
    return unready_since - started_at > FIRST_STATUS_SECONDS


def _asks_gpu(spec: Json, claims_without_gpus: Collection[str]) -> bool:
    """Tell whether a pod asks for a GPU, or for a device that is not known to be none.

    A pod does not show which device a ResourceClaim is for. It counts as one for a GPU: a pod whose
    GPU is overlooked takes its load with it, and one that has none only holds the replicas.
    """
    return any(
        not any(name in claims_without_gpus for name in claim.values())
        for claim in spec.get("resourceClaims") or ()
    ) or any(
        _is_gpu(name, claims_without_gpus) and str(amount) != "0"
        for name, amount in _resources(spec)
    )


def _is_gpu(resource: str, claims_without_gpus: Collection[str]) -> bool:
    if resource.startswith(DEVICE_CLASS):
        return resource.removeprefix(DEVICE_CLASS) not in claims_without_gpus
    return resource.startswith(GPU_RESOURCES)


def _resources(spec: Json) -> Iterator[tuple[str, object]]:
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            for amounts in _AMOUNTS:
                yield from ((container.get("resources") or {}).get(amounts) or {}).items()


def _labels(text: msgspec.Raw) -> Mapping[str, str]:
    """Return labels; none where there are more than any usual pod has."""
    if memoryview(text).nbytes > LABEL_BYTES:
        return {}
    return _LABELS.decode(text) or {}


def _count(text: object) -> int | None:
    """Return a whole number; None: it is none, or longer than one that Kubernetes writes."""
    known = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    return int(str(text)) if known else None


def _time(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()
