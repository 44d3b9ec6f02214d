"""Which pods the ReplicaSet controller should take first: the least busy ones, by their cost.

Pure, and nothing is written: it is for people, who may run what it prints. Every cost is below 0,
which is what a pod without one counts as: a pod whose load is not known is never taken before one
whose load is. A record may come from anything that answers on the scaler's port, so a line of it is
a comment or one command about a Kubernetes name.
"""

from collections.abc import Iterator

from keda_gpu_scaler import errors
from keda_gpu_scaler.record.record import PodRecord, Record
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import KINDS_BY_ALIAS, Kind

ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
_OTHERS = {
    Kind.STATEFUL_SET: "a StatefulSet always takes the pod with the highest number",
    Kind.LEADER_WORKER_SET: "a LeaderWorkerSet always takes the group with the highest number",
    Kind.DAEMON_SET: "a DaemonSet has one pod for each node",
    Kind.JOB: "a Job's controller does not look at costs",
    Kind.CRON_JOB: "a Job's controller does not look at costs",
}
"""Kinds whose pods no ReplicaSet controls, and what happens instead."""


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
    existing = [pod for pod in record.pods if pod.state not in {"ended", "given up"}]
    known = [pod for pod in existing if pod.load is not None and workload.is_name(pod.name)]
    if not known:
        yield "# no costs: no pod's load is known"
    annotate = f"kubectl annotate pod --namespace {namespace}"
    levels = sorted({_level(pod) for pod in known})
    for pod in sorted(known, key=lambda pod: (_level(pod), pod.name)):
        load, busiest = _level(pod)
        moment = f", busiest moment {busiest:g} {record.gpu_unit}" if busiest >= 0 else ""
        yield _comment(f"load {load:g} {record.gpu_unit}{moment}")
        cost = levels.index((load, busiest)) - len(levels)
        yield f"{annotate} {pod.name} --overwrite {ANNOTATION}={cost}"
    with_cost = {pod.name for pod in known}
    for pod in existing:
        if pod.name in with_cost:
            continue
        yield _comment(f"{pod.name} gets none, and loses one from before: {pod.reason}")
        if workload.is_name(pod.name):
            yield f"{annotate} {pod.name} {ANNOTATION}-"
    if record.pods_left_out:
        yield f"# {record.pods_left_out} more pods are not listed, and get none"


def _level(pod: PodRecord) -> tuple[float, float]:
    """Return how busy a pod is: its mean, and between equal ones its busiest moment, -1 if none."""
    busiest = max((gpu.busiest for gpu in pod.gpus if gpu.busiest is not None), default=-1.0)
    return pod.load or 0.0, busiest


def _comment(text: str) -> str:
    """Return a comment of one line, whatever is in the text."""
    return f"# {errors.without_controls(text[:300])}".rstrip()
