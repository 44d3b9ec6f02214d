"""Which pods the ReplicaSet controller should take first: the least busy ones, by their cost.

Pure, and nothing is written: it is for people, who may run what it prints. Every cost is below 0,
which is what a pod without one counts as: a pod whose load is not known is never taken before one
whose load is. A record may come from anything that answers on the scaler's port, so a line of it is
a comment or one command about a Kubernetes name.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from keda_gpu_scaler.record.record import Pod, Record
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.kinds import KINDS_BY_ALIAS, Kind

ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
_OTHERS = {
    Kind.STATEFUL_SET: "a StatefulSet always takes the pod with the highest number",
    Kind.LEADER_WORKER_SET: "a LeaderWorkerSet always takes the group with the highest number",
    Kind.DAEMON_SET: "a DaemonSet has one pod for each node",
    Kind.JOB: "a Job's controller does not look at costs",
    Kind.CRON_JOB: "a Job's controller does not look at costs",
}
"""Kinds whose pods no ReplicaSet controls, and what happens instead."""
_GONE = frozenset({"ended", "given up"})
_SHOWN = 300
"""Characters of a foreign text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What is to be written on one pod."""

    pod: str
    load: float
    busiest: float | None
    """The largest number of its GPUs within activationWindow."""
    cost: int
    """The lower, the sooner it goes; the same for pods that are equally busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A pod without a cost."""

    pod: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The pods of one trigger, the least busy first."""

    scaled_object: str
    """namespace/name"""
    namespace: str
    """Of the pods."""
    workload: str
    metric_name: str
    unit: str
    trouble: str | None
    """Why there are no costs; None: there are, as far as loads are known."""
    costs: tuple[Cost, ...]
    left: tuple[Left, ...]
    left_out: int
    """Pods that the record does not list: busier ones, or of an unknown load, without a cost."""


def drain(record: Record) -> Drain:
    """Return the costs of a trigger's pods whose load is known, and why others have none."""
    given = next((one.value for one in record.settings if one.key == "namespace"), "")
    namespace = given if workload.is_namespace(given) else ""
    kind = KINDS_BY_ALIAS.get(record.workload.partition("/")[0])
    trouble = _OTHERS.get(kind) if kind is not None else None
    if not namespace:
        trouble = "the namespace of its pods is not known here"
    there = [pod for pod in record.pods if pod.state not in _GONE]
    known = [pod for pod in there if pod.load is not None and workload.is_name(pod.name)]
    costs = () if trouble is not None else tuple(_costs(known))
    costly = {one.pod for one in costs}
    return Drain(
        scaled_object=record.scaled_object,
        namespace=namespace,
        workload=record.workload,
        metric_name=record.metrics[0].name if record.metrics else "",
        unit=record.unit,
        trouble=trouble,
        costs=costs,
        left=tuple(
            Left(pod=pod.name, reason=pod.reason)
            for pod in there
            if trouble is None and pod.name not in costly
        ),
        left_out=record.pods_left_out,
    )


def _costs(known: list[Pod]) -> Iterator[Cost]:
    levels = sorted({_level(pod) for pod in known})
    for pod in sorted(known, key=lambda pod: (_level(pod), pod.name)):
        load, busiest = _level(pod)
        cost = levels.index((load, busiest)) - len(levels)
        shown = None if busiest < 0 else busiest
        yield Cost(pod=pod.name, load=load, busiest=shown, cost=cost)


def _level(pod: Pod) -> tuple[float, float]:
    """Return how busy a pod is: its mean, and between equal ones its busiest moment."""
    busiest = max((gpu.busiest for gpu in pod.gpus if gpu.busiest is not None), default=-1.0)
    return pod.load or 0.0, busiest


def script(found: Drain) -> Iterator[str]:
    """Yield lines for a shell: a comment, or a command about one pod."""
    yield _comment(f"{found.scaled_object}: {found.workload} by {found.metric_name}")
    if found.trouble is not None:
        yield _comment(f"no costs: {found.trouble}")
        return
    if not found.costs:
        yield _comment("no costs: no pod's load is known")
    annotate = f"kubectl annotate pod --namespace {found.namespace}"
    for one in found.costs:
        seen = "" if one.busiest is None else f", busiest moment {one.busiest:g} {found.unit}"
        yield _comment(f"load {one.load:g} {found.unit}{seen}")
        yield f"{annotate} {one.pod} --overwrite {ANNOTATION}={one.cost}"
    for left in found.left:
        yield _comment(f"{left.pod} gets none, and loses one from before: {left.reason}")
        if workload.is_name(left.pod):
            yield f"{annotate} {left.pod} {ANNOTATION}-"
    if found.left_out:
        yield _comment(f"{found.left_out} more pods are not listed, and get none")


def _comment(text: str) -> str:
    """Return a comment of one line, whatever is in the text."""
    shown = "".join(one if one.isprintable() else "?" for one in text[:_SHOWN])
    return f"# {shown}".rstrip()
