"""Which pods the ReplicaSet controller should take first: the least busy ones, by their cost.

Pure: `deletion-cost` writes the costs, and people may run what is printed. Every cost is below 0,
which is what a pod without one counts as: a pod whose load is not known is never taken before one
whose load is. A record may come from anything that answers on the scaler's port, so a line of it is
a comment or one command about a Kubernetes name.
"""

from collections.abc import Iterator

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling.scale_in import COST
from keda_gpu_scaler.record.record import PodRecord, Record
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import KINDS_BY_ALIAS, Kind
from keda_gpu_scaler.times import LEAST_GRACE_SECONDS

_OTHERS = {
    Kind.STATEFUL_SET: "a StatefulSet always takes the pod with the highest number",
    Kind.LEADER_WORKER_SET: "a LeaderWorkerSet always takes the group with the highest number",
    Kind.DAEMON_SET: "a DaemonSet has one pod for each node",
    Kind.JOB: "a Job's controller does not look at costs",
    Kind.CRON_JOB: "a Job's controller does not look at costs",
}
"""Kinds whose pods no ReplicaSet controls, and what happens instead."""
_GONE = {"ended", "given up"}


def drain(record: Record) -> Iterator[str]:
    """Yield lines for a shell: a comment, or a command about one pod, the least busy first."""
    yield _comment(f"{record.scaled_object}: {record.workload} by {record.metric_name}")
    values = {setting.key: setting.value for setting in record.settings}
    namespace = values.get("namespace", "")
    if not workload.is_namespace(namespace):
        yield "# no costs: the namespace of its pods is not known here"
        return
    kind = KINDS_BY_ALIAS.get(record.workload.partition("/")[0])
    if kind in _OTHERS:
        yield f"# no costs: {_OTHERS[kind]}"
        return
    costs = costs_of(record)
    if not costs:
        yield "# no costs: no pod's load is known"
    annotate = f"kubectl annotate pod --namespace {namespace}"
    by_name = {pod.name: pod for pod in record.pods}
    for name, cost in costs.items():
        now, load, busiest = _level(by_name[name])
        moment = f", busiest moment {busiest:g} {record.gpu_unit}" if busiest >= 0 else ""
        yield _comment(f"{now:g} {record.gpu_unit} now, load {load:g} {record.gpu_unit}{moment}")
        yield f"{annotate} {name} --overwrite {COST}={cost}"
    for pod in record.pods:
        if pod.name in costs or pod.state in _GONE:
            continue
        yield _comment(f"{pod.name} gets none, and loses one from before: {pod.reason}")
        if workload.is_name(pod.name):
            yield f"{annotate} {pod.name} {COST}-"
    if record.pods_left_out:
        yield f"# {record.pods_left_out} more pods are not listed, and get none"


def costs_of(record: Record) -> dict[str, int]:
    """Return the cost of each pod whose load is known, the least busy one's first."""
    known = [
        pod
        for pod in record.pods
        if pod.state not in _GONE and pod.load is not None and workload.is_name(pod.name)
    ]
    known.sort(key=lambda pod: (_level(pod), pod.name))
    levels = sorted({_level(pod) for pod in known})
    return {pod.name: levels.index(_level(pod)) - len(levels) for pod in known}


def _level(pod: PodRecord) -> tuple[float, float, float]:
    """Return how busy a pod is: its busiest GPU now, its mean, its busiest moment, -1 if none.

    A scale-in cuts requests under way, which only the newest numbers are about: a pod that is idle
    by now goes before one that has just begun to work, whatever their means are. Where a newest
    number cannot be believed, the mean stands in for it.
    """
    load = pod.load or 0.0
    since = max((gpu.sampled_at for gpu in pod.gpus), default=0.0) - LEAST_GRACE_SECONDS
    newest = [
        load if gpu.value is None else gpu.value for gpu in pod.gpus if gpu.sampled_at > since
    ]
    busiest = max((gpu.busiest for gpu in pod.gpus if gpu.busiest is not None), default=-1.0)
    return max(newest, default=load), load, busiest


def _comment(text: str) -> str:
    """Return a comment of one line, whatever is in the text."""
    return f"# {errors.without_controls(text[:300])}".rstrip()
