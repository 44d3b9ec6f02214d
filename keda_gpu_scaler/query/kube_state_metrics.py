"""kube-state-metrics: the query for pods and their owners. The source reads the answer.

Pure text. One query for all triggers: a few rows for each pod, the owners of ReplicaSets and Jobs,
and rows for exceptions. The label `stat` of each row says what it is about; without it `or` would
drop one of two rows that are equal without their names.

The query is written to be cheap with thousands of pods. The server does not join what several
metrics say of one pod: a join costs it more than the rows that it saves. And the branches with a
row for each pod come last, as each `or` reads all rows before it again.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from keda_gpu_scaler.query.profiles.model import GPU_RESOURCES
from keda_gpu_scaler.query.promql_texts import alternatives, marked
from keda_gpu_scaler.query.snapshot_query import SplittableQuery

STAT = "stat"
PODS = "kube_pod_owner"
_COUNTED = "kube_deployment_status_replicas|kube_statefulset_status_replicas"
JOBS = f'group by (job, __name__) ({{__name__=~"{PODS}|{_COUNTED}",exported_namespace=""}})'
"""Which scrape jobs show kube-state-metrics, and whether pods are among what they show.

Without `honor_labels` the namespace of a pod is in another label, and a list of pods would look
empty: such a job is not used.
"""
_GPU_RESOURCES = "|".join(f"{re.sub('[./]', '_', start)}.+" for start in GPU_RESOURCES)
"""The names of extended resources as kube-state-metrics writes them."""
_REQUESTS = "kube_pod_container_resource_requests"
_CLAIM_NAMES = ("claim_name", "resourceclaim_name", "resourceclaim_template_name")
"""The labels with a pod's own name for a claim, the claim's and its template's."""
SETTLED_SECONDS = 120.0
"""A list of pods counts as complete after this time: twice the longest usual scrape interval."""
_LATELY = "10m"
PAST_SECONDS = 300.0
_HOUR = f"[1h:{PAST_SECONDS:.0f}s]"
"""The range and step for the past: it may not show what lasted less than one step."""
LINKS = {
    "replicaset": ("ReplicaSet", "kube_replicaset_owner"),
    "job_name": ("Job", "kube_job_owner"),
}
"""Owners that mostly have an owner themselves, by their label."""
COUNTS = {
    "deployment": ("Deployment", "kube_deployment_status_replicas"),
    "statefulset": ("StatefulSet", "kube_statefulset_status_replicas"),
    "replicaset": ("ReplicaSet", "kube_replicaset_status_replicas"),
}
WANTED = {
    "deployment": ("Deployment", "kube_deployment_spec_replicas"),
    "statefulset": ("StatefulSet", "kube_statefulset_replicas"),
    "replicaset": ("ReplicaSet", "kube_replicaset_spec_replicas"),
}
"""How many replicas an owner asks for (`spec.replicas`), by the label of the owner."""
IS_CONTROLLER = "owner_is_controller"
_READY = 'condition="true"'


@dataclass(frozen=True, slots=True)
class KubeStatePromql(SplittableQuery):
    """Everything about the pods of some namespaces."""

    jobs: frozenset[str]
    """The scrape jobs of kube-state-metrics."""
    new_namespaces: frozenset[str] = frozenset()
    """Those that have no known recent past; it is asked for as well."""
    claims_without_gpus: frozenset[str] = frozenset()
    """ResourceClaims and their templates that are known to be for no GPU, by their names."""

    @property
    def text(self) -> str:
        """The PromQL."""
        new_namespaces = self.new_namespaces & self.names
        branches = [
            *_health(self.jobs),
            *(_past(new_namespaces) if new_namespaces else ()),
            *_present(self.names, self.claims_without_gpus),
        ]
        return " or ".join(marked(expression, STAT, stat) for stat, expression in branches)


def _present(
    namespaces: Collection[str], claims_without_gpus: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each kind of row about the present, with its stat; those with many rows last."""
    here = _Here(namespaces)
    # Not kube_namespace_created: it shows every namespace, also where its pods are not listed.
    yield "covered", f"group by (namespace) ({here.any_of(_COUNTED)})"
    # Most pods ask for CPU: without a row, a list of allowed metrics leaves requests out.
    usual = here.all(_REQUESTS, f'resource=~"cpu|{_GPU_RESOURCES}"')
    yield "requests", f"group by (namespace) ({usual})"
    for label, (_, metric) in COUNTS.items():
        yield "empty", f"max by (namespace, {label}) ({here.all(metric)}) == 0{here.alone(label)}"
    for label, (_, metric) in WANTED.items():
        yield "wanted", f"max by (namespace, {label}) ({here.all(metric)}) > 0{here.alone(label)}"
    yield "deleting", here.pods("kube_pod_deletion_timestamp")
    phases = here.all("kube_pod_status_phase", 'phase=~"Pending|Succeeded|Failed"')
    yield "phase", f"max by (namespace, pod, phase) ({phases} == 1)"
    for label, (_, metric) in LINKS.items():
        # Those without any owner have a row that says so.
        owned = here.all(metric, f'{IS_CONTROLLER}!="false"') + here.in_use(label)
        yield "owner", f"max by (namespace, {label}, owner_kind, owner_name) ({owned})"
    requests = here.all(_REQUESTS, f'resource=~"{_GPU_RESOURCES}"')
    yield "gpu", f"max by (namespace, pod) ({requests} > 0)"
    # It does not show for which device a claim is: all count, but those known to be for no GPU.
    names = _CLAIM_NAMES if claims_without_gpus else ()
    unknown = (f"{name}!~{alternatives(claims_without_gpus)}" for name in names)
    yield "gpu", here.pods("kube_pod_resourceclaim_info", *unknown)
    yield "created", here.pods("kube_pod_created")
    yield "ready", here.pods("kube_pod_status_ready", _READY)
    yield "since", here.pods("kube_pod_status_ready_time")
    owner = f"owner_kind, owner_name, {IS_CONTROLLER}"
    yield "pod", f"max by (namespace, pod, {owner}) ({here.all(PODS)})"


def _past(namespaces: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the past of pods that were not watched: whether and when they became Ready."""
    here = _Here(namespaces)
    condition = here.all("kube_pod_status_ready", _READY)
    before = f"(max by (namespace, pod) ({condition} offset {_LATELY}) == 1)"
    timed = here.pods("kube_pod_status_ready_time")
    untimed = f"(max by (namespace, pod) ({condition}) == 1) unless on (namespace, pod) {timed}"
    yield "lately", f"{untimed} unless on (namespace, pod) {before}"
    unready = f"and on (namespace, pod, uid) ({condition} == 0)"
    yield "once", f"max by (namespace, pod) (max_over_time({condition}{_HOUR}) {unready}) == 1"


def _health(jobs: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the health of the scrape targets."""
    up = f"up{{job=~{alternatives(jobs)}}}"
    yield "scraped", f"max by (job, instance) (timestamp({up}) and {up} == 1)"
    yield "down", f"max by (job, instance) ({up}) == 0"
    # A millisecond less: up to Prometheus 2 a range includes the instant it begins at.
    span = f"[{SETTLED_SECONDS - 1:.0f}s999ms]"
    good = f"min_over_time({up}{span}) == 1 and {up} offset {SETTLED_SECONDS:.0f}s"
    yield "settled", f"max by (job, instance) (count_over_time({up}{span}) and {good})"


class _Here:
    """Selectors that are confined to some namespaces."""

    def __init__(self, namespaces: Collection[str]) -> None:
        self._here = f"namespace=~{alternatives(namespaces)}"

    def all(self, metric: str, *matchers: str) -> str:
        """Every series of a metric."""
        return f"{metric}{{{','.join([self._here, *matchers])}}}"

    def any_of(self, metrics: str) -> str:
        """Every series of several metrics."""
        return f'{{__name__=~"{metrics}",{self._here}}}'

    def pods(self, metric: str, *matchers: str) -> str:
        """One row per pod; duplicates of several kube-state-metrics become one."""
        return f"max by (namespace, pod) ({self.all(metric, *matchers)})"

    def alone(self, label: str) -> str:
        """Confine counts to objects without owner: Deployments leave many ReplicaSets behind."""
        if label not in LINKS:
            return ""
        others = self.all(LINKS[label][1], f'{IS_CONTROLLER}!="true"')
        return f" and on (namespace, {label}) {others}"

    def in_use(self, label: str) -> str:
        """Leave out the owners without pods."""
        if label not in COUNTS:
            return ""
        return f" unless on (namespace, {label}) ({self.all(COUNTS[label][1])} == 0)"
