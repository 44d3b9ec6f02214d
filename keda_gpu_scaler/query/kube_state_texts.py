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

from keda_gpu_scaler.query.profiles.model import GPU_RESOURCES, OTHER_RESOURCES
from keda_gpu_scaler.query.promql_texts import alternatives, marked

STAT = "stat"
PODS = "kube_pod_owner"
LISTED_KINDS = {
    "kube_deployment_status_replicas": "Deployment",
    "kube_statefulset_status_replicas": "StatefulSet",
}
"""The kinds of owners that are listed if a metric is shown: it has a series for each of them."""
_COUNTED = "|".join(LISTED_KINDS)
JOBS = (
    "count by (job, __name__) (group by (job, __name__, namespace) "
    f'({{__name__=~"{PODS}|{_COUNTED}",exported_namespace=""}}))'
)
"""Which scrape jobs show kube-state-metrics, of how many namespaces, and whether pods are among it.

Without `honor_labels` the namespace of a pod is in another label, and a list of pods would look
empty: such a job is not used.
"""


def _resources(starts: Collection[str]) -> str:
    """Return the pattern of extended resources, with names as kube-state-metrics writes them."""
    return "|".join(f"{re.sub('[^a-zA-Z0-9]', '_', start)}.*" for start in starts)


_GPU_RESOURCES = _resources(GPU_RESOURCES)
_NO_DEVICES = "cpu|memory|storage|ephemeral_storage|hugepages_.*|attachable_volumes_.*"
_REQUESTS = "kube_pod_container_resource_requests"
GPU_REQUESTS = f'{_REQUESTS}{{resource=~"{_GPU_RESOURCES}"}}'
"""Which pods ask for a GPU."""
_CLAIM_NAMES = ("claim_name", "resourceclaim_name", "resourceclaim_template_name")
"""The labels with a pod's own name for a claim, the claim's and its template's."""
SETTLED_SECONDS = 120.0
"""A list of pods counts as complete after this time: twice the longest usual scrape interval."""
PAST_SECONDS = 300.0
_HOUR = f"[1h:{PAST_SECONDS:.0f}s]"
"""The range and step for the past: it may not show what lasted less than one step."""
KINDS = {
    "deployment": "Deployment",
    "statefulset": "StatefulSet",
    "replicaset": "ReplicaSet",
    "job_name": "Job",
}
"""The kinds of objects that own pods, by the label that names such an object."""
LINKS = {"replicaset": "kube_replicaset_owner", "job_name": "kube_job_owner"}
"""What shows the owner of an object that mostly has one, by the object's label."""
_REPLICAS = {
    "deployment": ("kube_deployment_status_replicas", "kube_deployment_spec_replicas"),
    "statefulset": ("kube_statefulset_status_replicas", "kube_statefulset_replicas"),
    "replicaset": ("kube_replicaset_status_replicas", "kube_replicaset_spec_replicas"),
}
"""What shows how many replicas an owner has, and how many it asks for, by the owner's label."""
IS_CONTROLLER = "owner_is_controller"
_CONTROLLER = f"owner_kind, owner_name, {IS_CONTROLLER}"
_READY = 'condition="true"'


def kube_state_text(
    jobs: Collection[str],
    new_namespaces: Collection[str],
    without_gpus: Collection[str],
    namespaces: Collection[str],
) -> str:
    """Return the query for everything about the pods of some namespaces.

    `jobs` are the scrape jobs of kube-state-metrics; `new_namespaces` those with no known recent
    past, which is asked for as well; `without_gpus` ResourceClaims, their templates and
    beginnings of extended resources that are known to be for no GPU.
    """
    branches = list(_health(jobs))
    if new := set(new_namespaces).intersection(namespaces):
        branches += _past(_Selectors(new))
    branches += _present(_Selectors(namespaces), without_gpus)
    return " or ".join(marked(expression, STAT, stat) for stat, expression in branches)


class _Selectors:
    """Selectors that are confined to some namespaces."""

    def __init__(self, namespaces: Collection[str]) -> None:
        self._here = f"namespace=~{alternatives(namespaces)}"

    def all(self, metric: str, *matchers: str) -> str:
        return f"{metric}{{{','.join([self._here, *matchers])}}}"

    def pods(self, metric: str, *matchers: str) -> str:
        """One row per pod; duplicates of several kube-state-metrics become one."""
        return f"max by (namespace, pod) ({self.all(metric, *matchers)})"

    def by_uid(self, metric: str, *matchers: str) -> str:
        """One row per UID: a pod comes again under its name.

        One of two kube-state-metrics still shows the old one then.
        """
        return f"max by (namespace, pod, uid) ({self.all(metric, *matchers)})"


def _present(here: _Selectors, without_gpus: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each kind of row about the present, with its stat; those with many rows last."""
    # Not kube_namespace_created: it shows every namespace, also where its pods are not listed.
    counted = here.all("", f'__name__=~"{_COUNTED}"')
    yield "covered", f"group by (namespace) ({counted})"
    # Most pods ask for CPU: without a row, a list of allowed metrics leaves requests out.
    usual = here.all(_REQUESTS, f'resource=~"cpu|{_GPU_RESOURCES}"')
    yield "requests", f"group by (namespace) ({usual})"
    # Deployments leave many ReplicaSets behind: only those without an owner are counted.
    unowned = here.all(LINKS["replicaset"], f'{IS_CONTROLLER}!="true"')
    alone = {"replicaset": f" and on (namespace, replicaset) {unowned}"}
    for label, (metric, _) in _REPLICAS.items():
        count = f"max by (namespace, {label}) ({here.all(metric)})"
        # Of other kinds each has a row: what has none does not exist.
        yield "replicas", f"{count} == 0{alone[label]}" if label in alone else count
    for label, (_, metric) in _REPLICAS.items():
        count = f"max by (namespace, {label}) ({here.all(metric)})"
        yield "wanted", f"{count} > 0{alone.get(label, '')}"
    yield "deleting", here.by_uid("kube_pod_deletion_timestamp")
    phases = here.all("kube_pod_status_phase", 'phase=~"Pending|Succeeded|Failed"')
    yield "phase", f"max by (namespace, pod, uid, phase) ({phases} == 1)"
    unschedulable = here.all("kube_pod_status_unschedulable")
    yield "unschedulable", f"max by (namespace, pod) ({unschedulable} == 1)"
    empty = here.all("kube_replicaset_status_replicas")
    in_use = {"replicaset": f" unless on (namespace, replicaset) ({empty} == 0)"}
    for label, metric in LINKS.items():
        # Those without any owner have a row that says so.
        owned = here.all(metric, f'{IS_CONTROLLER}!="false"') + in_use.get(label, "")
        yield "owner", f"max by (namespace, {label}, owner_kind, owner_name) ({owned})"
    starts = sorted(name for name in without_gpus if "/" in name)
    excluded = [f'resource!~"{_resources(starts)}"'] if starts else []
    requests = here.all(_REQUESTS, f'resource=~"{_GPU_RESOURCES}"', *excluded)
    yield "gpu", f"max by (namespace, pod) ({requests} > 0)"
    others = "|".join([_NO_DEVICES, _GPU_RESOURCES, _resources(OTHER_RESOURCES)])
    # Extended resources have this unit; a rule may have dropped it.
    unknown_device = here.all(_REQUESTS, 'unit=~"|integer"', f'resource!~"{others}"', *excluded)
    yield "device", f"max by (namespace, pod, resource) ({unknown_device} > 0)"
    # It does not show for which device a claim is: all count, but those known to be for no GPU.
    claims = {name for name in without_gpus if "/" not in name}
    names = _CLAIM_NAMES if claims else ()
    unknown = (f"{name}!~{alternatives(claims)}" for name in names)
    yield "gpu", here.pods("kube_pod_resourceclaim_info", *unknown)
    yield "created", here.by_uid("kube_pod_created")
    yield "ready", here.by_uid("kube_pod_status_ready", _READY)
    yield "since", here.by_uid("kube_pod_status_ready_time")
    yield "pod", f"max by (namespace, pod, {_CONTROLLER}) ({here.all(PODS)})"


def _past(here: _Selectors) -> Iterator[tuple[str, str]]:
    """Yield the past of pods that were not watched: when they became Ready, and which have left."""
    condition = here.all("kube_pod_status_ready", _READY)
    before = f"(max by (namespace, pod) ({condition} offset 10m) == 1)"
    timed = here.pods("kube_pod_status_ready_time")
    untimed = f"(max by (namespace, pod) ({condition}) == 1) unless on (namespace, pod) {timed}"
    yield "lately", f"{untimed} unless on (namespace, pod) {before}"
    unready = f"and on (namespace, pod, uid) ({condition} == 0)"
    yield "once", f"max by (namespace, pod) (max_over_time({condition}{_HOUR}) {unready}) == 1"
    listed = here.all(PODS)
    lately = f"last_over_time({listed}[{SETTLED_SECONDS:.0f}s])"
    gone = f"{lately} unless on (namespace, pod) {listed}"
    yield "left", f"max by (namespace, pod, {_CONTROLLER}) ({gone})"


def _health(jobs: Collection[str]) -> Iterator[tuple[str, str]]:
    up = f"up{{job=~{alternatives(jobs)}}}"
    yield "scraped", f"max by (job, instance) (timestamp({up}) and {up} == 1)"
    yield "down", f"max by (job, instance) ({up}) == 0"
    # A millisecond less: up to Prometheus 2 a range includes the instant it begins at.
    span = f"[{SETTLED_SECONDS - 1:.0f}s999ms]"
    good = f"min_over_time({up}{span}) == 1 and {up} offset {SETTLED_SECONDS:.0f}s"
    yield "settled", f"max by (job, instance) (count_over_time({up}{span}) and {good})"
