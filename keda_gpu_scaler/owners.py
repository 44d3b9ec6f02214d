"""Whether a pod is a workload's, by its owners: the exact answer where names only suggest one.

Pure. Owners are in Kubernetes' words: the controlling owner of a pod, and that one's own.
"""

from keda_gpu_scaler.kinds import Kind
from keda_gpu_scaler.spec import Owner

NOBODY = Owner("", "")
"""Stands for the owner of what is known to have none."""
_KINDS = {
    Kind.DEPLOYMENT: "Deployment",
    Kind.STATEFUL_SET: "StatefulSet",
    Kind.REPLICA_SET: "ReplicaSet",
    Kind.ROLLOUT: "Rollout",
    Kind.LEADER_WORKER_SET: "StatefulSet",
    Kind.DAEMON_SET: "DaemonSet",
    Kind.JOB: "Job",
    Kind.CRON_JOB: "CronJob",
}
"""Whom owner references name; an InferenceService and a Knative service own under other names."""
BETWEEN = {Kind.DEPLOYMENT: "ReplicaSet", Kind.ROLLOUT: "ReplicaSet", Kind.CRON_JOB: "Job"}
"""What stands between such a workload and its pods."""


def owner(kind: Kind, name: str) -> Owner | None:
    """Return the owner whose replicas are the workload's; None where it is not known by name.

    A LeaderWorkerSet's leaders belong to a StatefulSet of its name.
    """
    word = _KINDS.get(kind)
    return None if word is None else Owner(word, name)


def owns(kind: Kind, name: str, owners: frozenset[Owner]) -> bool | None:
    """Tell whether a pod with these owners is the workload's; None: only its name can tell.

    Where nobody says whose a ReplicaSet or a Job is, the pod's name has to do.
    """
    ours = owner(kind, name)
    if ours is None:
        return None
    if kind is Kind.LEADER_WORKER_SET:
        return any(_leads(ours, other) for other in owners)
    if ours in owners:
        return True
    is_open = {other.kind for other in owners} == {BETWEEN.get(kind)}
    return None if is_open else False


def _leads(leaders: Owner, other: Owner) -> bool:
    """Tell whether `other` is the StatefulSet of leaders, or that of one leader's workers."""
    group = other.name.removeprefix(f"{leaders.name}-")
    return other == leaders or (other.kind == leaders.kind and group.isdecimal())
