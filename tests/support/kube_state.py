"""Pods and owners as kube-state-metrics shows them, for a Prometheus that tests write to."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from testbed.series import STALE, Series

INTERVAL_SECONDS = 30
TARGET = {"job": "kube-state-metrics", "instance": "10.0.1.1:8080"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One series of kube-state-metrics over a span of time, relative to the end of the history."""

    metric: str
    labels: Mapping[str, str]
    value: float = 1
    begin: float = -900
    end: float | None = None

    def series(self, now: float) -> Series:
        """Return the series; one that ended is marked stale."""
        last = 0.0 if self.end is None else self.end
        count = int((last - self.begin) // INTERVAL_SECONDS) + 1
        times = [now + self.begin + n * INTERVAL_SECONDS for n in range(count)]
        samples: list[tuple[float, float | None]] = [(time, self.value) for time in times]
        if self.end is not None:
            samples.append((times[-1] + INTERVAL_SECONDS, STALE))
        return Series(self.metric, {**TARGET, **self.labels}, samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubePod:
    """One pod with its owner; times are relative to the end of the history."""

    name: str
    owner: tuple[str, str] = ("ReplicaSet", "bert-7b6667bd9")
    namespace: str = "ml"
    created: float = -7200
    ready: bool | None = True
    """None: no node has it yet."""
    ready_since: float | None = -3600
    phase: str = "Running"
    unschedulable: bool = False
    deleting: bool = False
    asks_gpu: bool = True
    resources: Mapping[str, str] = field(default_factory=dict)
    """What else it requests, with the unit; an empty one is not shown."""
    claim: Mapping[str, str] | None = None
    """A ResourceClaim of it, as labels; kube-state-metrics shows it since 2.20."""
    begin: float = -900
    end: float | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def listed(self, now: float) -> Iterator[Listed]:
        kind, owner = self.owner
        controls = "true" if kind else ""
        yield self._one(
            "kube_pod_owner", owner_kind=kind, owner_name=owner, owner_is_controller=controls
        )
        yield self._one("kube_pod_created", now + self.created)
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            yield self._one("kube_pod_status_phase", float(phase == self.phase), phase=phase)
        if self.ready is not None:
            for condition in ("true", "false"):
                matches = self.ready == (condition == "true")
                yield self._one("kube_pod_status_ready", float(matches), condition=condition)
        if self.ready and self.ready_since is not None:
            yield self._one("kube_pod_status_ready_time", now + self.ready_since)
        if self.unschedulable:
            yield self._one("kube_pod_status_unschedulable")
        if self.deleting:
            yield self._one("kube_pod_deletion_timestamp", now + 30)
        resources = ("cpu", "nvidia_com_gpu") if self.asks_gpu else ("cpu",)
        requests = "kube_pod_container_resource_requests"
        for resource in resources:
            yield self._one(requests, container="bert", resource=resource)
        for resource, unit in self.resources.items():
            labels = {"resource": resource} | ({"unit": unit} if unit else {})
            yield self._one(requests, 1, container="bert", **labels)
        if self.claim is not None:
            yield self._one("kube_pod_resourceclaim_info", 1, **self.claim)

    def _one(self, metric: str, value: float = 1, **labels: str) -> Listed:
        pod = {"namespace": self.namespace, "pod": self.name, "uid": f"uid-{self.name}"}
        return Listed(
            metric=metric,
            labels={**pod, **labels, **self.extra},
            value=value,
            begin=self.begin,
            end=self.end,
        )


def link(kind: str, name: str, owner: tuple[str, str], namespace: str = "ml") -> Listed:
    """Return the series with the owner of a ReplicaSet or a Job; no kind: no owner."""
    metric, label = {
        "ReplicaSet": ("kube_replicaset_owner", "replicaset"),
        "Job": ("kube_job_owner", "job_name"),
    }[kind]
    controls = "true" if owner[0] else ""
    above = {"owner_kind": owner[0], "owner_name": owner[1], "owner_is_controller": controls}
    return Listed(metric=metric, labels={"namespace": namespace, label: name, **above})


def replicas(count: float, name: str = "bert", namespace: str = "ml") -> Listed:
    labels = {"namespace": namespace, "deployment": name}
    return Listed(metric="kube_deployment_status_replicas", labels=labels, value=count)


def stateful(count: float, name: str = "queue", namespace: str = "ml") -> Listed:
    labels = {"namespace": namespace, "statefulset": name}
    return Listed(metric="kube_statefulset_status_replicas", labels=labels, value=count)


def wanted(count: float, name: str = "bert", namespace: str = "ml") -> Listed:
    labels = {"namespace": namespace, "deployment": name}
    return Listed(metric="kube_deployment_spec_replicas", labels=labels, value=count)


def up(begin: float = -900, value: float = 1, end: float | None = None) -> Listed:
    return Listed(metric="up", labels={}, value=value, begin=begin, end=end)


BERT = link("ReplicaSet", "bert-7b6667bd9", ("Deployment", "bert"))


def history(now: float, parts: Iterable[KubePod | Listed]) -> list[Series]:
    """Return the series of all parts, ending at `now`."""
    return [one.series(now) for one in _listed(now, parts)]


def page(now: float, parts: Iterable[KubePod | Listed]) -> Iterator[str]:
    """Yield the lines that it shows of all parts at `now`: names in Kubernetes need no escapes."""
    for one in _listed(now, parts):
        labels = ",".join(f'{label}="{text}"' for label, text in one.labels.items())
        yield f"{one.metric}{{{labels}}} {one.value:.0f}"


def _listed(now: float, parts: Iterable[KubePod | Listed]) -> Iterator[Listed]:
    for part in parts:
        yield from part.listed(now) if isinstance(part, KubePod) else (part,)
