"""kube-state-metrics: what it is asked about pods and owners, and what its rows mean.

Pure. One query for everybody: a row for each pod and for each Ready one, the owners of ReplicaSets
and Jobs that have pods, and rows for exceptions. Every row says in the label `stat` what it is
about, or `or` would drop one of two that are equal without their names.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from keda_gpu_scaler.evidence import GPU_RESOURCES, Evidence, PodKey, Statement
from keda_gpu_scaler.observation import Row, Target
from keda_gpu_scaler.query import alternatives, marked
from keda_gpu_scaler.spec import Owner

STAT = "stat"
PODS = "kube_pod_owner"
_NAMESPACED = f"{PODS}|kube_deployment_status_replicas|kube_statefulset_status_replicas"
JOBS = f'group by (job, __name__) ({{__name__=~"{_NAMESPACED}",exported_namespace=""}})'
"""Which scrape jobs show kube-state-metrics, and whether pods are among what they show.

Without `honor_labels` the namespace of a pod is in another label, and a list of pods would look
empty: such a job is as good as none.
"""
_GPU_RESOURCES = "|".join(f"{re.sub('[./]', '_', start)}.+" for start in GPU_RESOURCES)
"""As kube-state-metrics writes the names of extended resources."""
_SETTLED_SECONDS = 120.0
"""A list of pods is believed to be whole after this time: twice the longest usual scrape."""
_LATELY = "10m"
_HOUR = "[1h:5m]"
_LINKS = {
    "replicaset": ("ReplicaSet", "kube_replicaset_owner"),
    "job_name": ("Job", "kube_job_owner"),
}
"""Owners that mostly have an owner themselves: by their label."""
_COUNTS = {
    "deployment": ("Deployment", "kube_deployment_status_replicas"),
    "statefulset": ("StatefulSet", "kube_statefulset_status_replicas"),
    "replicaset": ("ReplicaSet", "kube_replicaset_status_replicas"),
}
_CONTROLLER = 'owner_is_controller="true"'
_READY = 'condition="true"'


def question(namespaces: Collection[str], jobs: Collection[str]) -> str:
    """Return the query for everything about the pods of these namespaces."""
    asked = _Asked(namespaces, jobs)
    return " or ".join(marked(expression, STAT, stat) for stat, expression in asked.branches())


class _Asked:
    """The query's parts, confined to some namespaces."""

    def __init__(self, namespaces: Collection[str], jobs: Collection[str]) -> None:
        self._here, self._jobs = f"namespace=~{alternatives(namespaces)}", alternatives(jobs)

    def branches(self) -> Iterator[tuple[str, str]]:
        """Yield each kind of row by its stat."""
        yield "pod", f"{self._owned()} * on (namespace, pod) group_left () {self._created()}"
        for label, (kind, metric) in _LINKS.items():
            yield "owner", self._link(label, kind, metric)
        yield from self._readiness()
        phases = self._all("kube_pod_status_phase", 'phase!="Running"')
        yield "phase", f"max by (namespace, pod, phase) ({phases}) == 1"
        yield "deleting", self._pods("kube_pod_deletion_timestamp")
        gpus = f'resource=~"{_GPU_RESOURCES}"'
        yield "gpu", f"{self._pods('kube_pod_container_resource_requests', gpus)} > 0"
        for label, (_, metric) in _COUNTS.items():
            yield "empty", f"max by (namespace, {label}) ({self._all(metric)}) == 0"
        speaking = f'{{__name__=~"{_NAMESPACED}|kube_namespace_created",{self._here}}}'
        yield "covered", f"group by (namespace) ({speaking})"
        up = f"up{{job=~{self._jobs}}}"
        yield "scraped", f"max by (job, instance) (timestamp({up}) and {up} == 1)"
        yield "down", f"max by (job, instance) ({up}) == 0"
        span = f"[{_SETTLED_SECONDS:.0f}s]"
        good = f"min_over_time({up}{span}) == 1 and {up} offset {_SETTLED_SECONDS:.0f}s"
        yield "settled", f"max by (job, instance) (count_over_time({up}{span}) and {good})"

    def _owned(self) -> str:
        """A pod with its controlling owner, or without one."""
        owners = self._all("kube_pod_owner", _CONTROLLER)
        owned = f"max by (namespace, pod, owner_kind, owner_name) ({owners})"
        return f"({owned} or on (namespace, pod) {self._pods('kube_pod_owner')})"

    def _created(self) -> str:
        """1 where nobody says when: a join would lose the pod."""
        created, exists = self._pods("kube_pod_created"), self._pods("kube_pod_owner")
        return f"({created} or on (namespace, pod) {exists})"

    def _link(self, label: str, kind: str, metric: str) -> str:
        owners = f"max by (namespace, {label}, owner_kind, owner_name)"
        pods = self._all("kube_pod_owner", f'owner_kind="{kind}"')
        named = f'label_replace({pods}, "{label}", "$1", "owner_name", "(.+)")'
        return f"{owners} ({self._all(metric, _CONTROLLER)}) and on (namespace, {label}) {named}"

    def _readiness(self) -> Iterator[tuple[str, str]]:
        ready, time = self._pods("kube_pod_status_ready", _READY), "kube_pod_status_ready_time"
        since = f"({self._pods(time)} or on (namespace, pod) ({ready} == 1))"
        yield "ready", f"{since} and on (namespace, pod) ({ready} == 1)"
        condition = self._all("kube_pod_status_ready", _READY)
        before = f"(max by (namespace, pod) ({condition} offset {_LATELY}) == 1)"
        untimed = f"({ready} == 1) unless on (namespace, pod) {self._pods(time)}"
        yield "lately", f"{untimed} unless on (namespace, pod) {before}"
        yield "unready", f"{ready} == 0"
        unready = f"and on (namespace, pod, uid) ({condition} == 0)"
        yield (
            "once",
            f"max by (namespace, pod) (max_over_time({condition}{_HOUR}) {unready}) == 1",
        )

    def _pods(self, metric: str, *matchers: str) -> str:
        """One row per pod; duplicates of several kube-state-metrics become one."""
        return f"max by (namespace, pod) ({self._all(metric, *matchers)})"

    def _all(self, metric: str, *matchers: str) -> str:
        return f"{metric}{{{','.join([self._here, *matchers])}}}"


def evidence(rows: Iterable[Row]) -> Evidence:
    """Return what the rows of `question` say."""
    by_stat: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_stat[row.labels.get(STAT, "")].append(row)
    owners = {_named(row, _LINKS): _owner(row.labels) for row in by_stat["owner"]}
    said = {
        stat: {_key(row): row.points[0][1] for row in by_stat[stat]}
        for stat in ("ready", "lately", "unready", "once", "deleting", "gpu")
    }
    phases = {_key(row): row.labels.get("phase", "") for row in by_stat["phase"]}
    return Evidence(
        pods={
            key: _statement(row, owners, key, said, phases.get(key, "Running"))
            for key, row in ((_key(row), row) for row in by_stat["pod"])
        },
        without_pods=frozenset(_named(row, _COUNTS) for row in by_stat["empty"]),
        covered=frozenset(row.labels.get("namespace", "") for row in by_stat["covered"]),
        scrapes={_target(row): row.points[0][1] for row in by_stat["scraped"]},
        settled={_target(row): _SETTLED_SECONDS / row.points[0][1] for row in by_stat["settled"]},
        down=frozenset(map(_target, by_stat["down"])),
    )


def _statement(
    row: Row,
    links: Mapping[tuple[str, Owner], Owner],
    key: PodKey,
    said: Mapping[str, Mapping[PodKey, float]],
    phase: str,
) -> Statement:
    created_at = row.points[0][1]
    ready_at = said["ready"].get(key, 1)
    return Statement(
        owners=_owners(row.labels, links),
        created_at=created_at if created_at > 1 else None,
        ready=_ready(key, said, phase),
        ready_at=ready_at if ready_at > 1 else None,
        lately=key in said["lately"],
        once_ready=key in said["once"],
        ended=phase in {"Succeeded", "Failed"} or key in said["deleting"],
        asks_gpu=key in said["gpu"],
    )


def _ready(key: PodKey, said: Mapping[str, Mapping[PodKey, float]], phase: str) -> bool | None:
    """A pod that no node has yet is not Ready, and has no row that says so."""
    if key in said["ready"]:
        return True
    return False if key in said["unready"] or phase == "Pending" else None


def _owners(
    labels: Mapping[str, str], links: Mapping[tuple[str, Owner], Owner]
) -> frozenset[Owner]:
    owner = _owner(labels)
    if not owner.name:
        return frozenset()
    above = links.get((labels.get("namespace", ""), owner))
    return frozenset({owner} if above is None else {owner, above})


def _owner(labels: Mapping[str, str]) -> Owner:
    return Owner(labels.get("owner_kind", ""), labels.get("owner_name", ""))


def _named(row: Row, kinds_by_label: Mapping[str, tuple[str, str]]) -> tuple[str, Owner]:
    """Return the namespace and the object that a row about an owner is of."""
    label = next((label for label in kinds_by_label if row.labels.get(label)), "")
    kind, _ = kinds_by_label.get(label, ("", ""))
    return row.labels.get("namespace", ""), Owner(kind, row.labels.get(label, ""))


def _key(row: Row) -> PodKey:
    return row.labels.get("namespace", ""), row.labels.get("pod", "")


def _target(row: Row) -> Target:
    return Target(row.labels.get("job", ""), row.labels.get("instance", ""))
