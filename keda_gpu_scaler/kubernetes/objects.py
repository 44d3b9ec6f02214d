"""What Kubernetes objects say, with the few fields that are needed. Pure.

Times are the API server's; they and the clocks of the samples have to agree within seconds.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from keda_gpu_scaler import kinds, workload
from keda_gpu_scaler.evidence import GPU_RESOURCES, TIME_STEP_SECONDS, PodKey, Statement
from keda_gpu_scaler.spec import Owner

Json = Mapping[str, Any]

FIRST_STATUS_SECONDS = 10.0
"""A kubelet's first status says that a pod started and is not Ready in one go; a change to not
Ready that comes later than this was one from Ready."""
_ENDED = frozenset({"Succeeded", "Failed"})
_CONTAINERS = ("containers", "initContainers")
_AMOUNTS = ("requests", "limits")


def key(item: Json) -> PodKey:
    """Return the namespace and the name of an object."""
    metadata = item["metadata"]
    return str(metadata["namespace"]), str(metadata["name"])


def controller(item: Json) -> Owner | None:
    """Return the owner that controls an object; None where there is none."""
    for owner in item["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return Owner(str(owner["kind"]), str(owner["name"]))
    return None


def statement(pod: Json) -> Statement:
    """Return what the object of a pod says of it."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    owner, condition = controller(pod), _ready(status)
    ready, since = condition.get("status") == "True", _time(condition.get("lastTransitionTime"))
    return Statement(
        owners=frozenset() if owner is None else frozenset({owner}),
        created_at=_time(metadata.get("creationTimestamp")),
        ready=ready,
        ready_at=since + TIME_STEP_SECONDS if ready and since is not None else None,
        once_ready=not ready and _was_ready(since, _time(status.get("startTime"))),
        ended=status.get("phase") in _ENDED or bool(metadata.get("deletionTimestamp")),
        asks_gpu=_asks_gpu(pod.get("spec") or {}),
    )


def target(scaled_object: Json) -> workload.Workload | str:
    """Return what a ScaledObject scales, or what is wrong with that; the defaults are KEDA's."""
    namespace, _ = key(scaled_object)
    reference = scaled_object["spec"]["scaleTargetRef"]
    group, slash, _ = str(reference.get("apiVersion") or "apps/v1").rpartition("/")
    word, name = str(reference.get("kind") or "Deployment"), str(reference["name"])
    kind = kinds.of_target(group, word)
    if kind is None:
        shown = f"{word}.{group}" if slash else word
        return f"its scaleTargetRef is a {shown}, and no rule for the pods of those is known"
    return workload.Workload(kind, namespace, name)


def _ready(status: Json) -> Json:
    """Return the condition Ready; a pod that no node has yet has none, and is not."""
    conditions: list[Json] = status.get("conditions") or []
    return next((one for one in conditions if one.get("type") == "Ready"), {})


def _was_ready(unready_since: float | None, started_at: float | None) -> bool:
    if unready_since is None or started_at is None:
        return False
    return unready_since - started_at > FIRST_STATUS_SECONDS


def _asks_gpu(spec: Json) -> bool:
    """Tell whether a pod asks for a GPU, or for any device by a ResourceClaim.

    What device a claim is for is said elsewhere; one who measures the GPUs of pods that claim
    devices takes them for GPUs.
    """
    return bool(spec.get("resourceClaims")) or any(
        name.startswith(GPU_RESOURCES) and str(amount) != "0" for name, amount in _resources(spec)
    )


def _resources(spec: Json) -> Iterator[tuple[str, object]]:
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            for amounts in _AMOUNTS:
                yield from ((container.get("resources") or {}).get(amounts) or {}).items()


def _time(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()
