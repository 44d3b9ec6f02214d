"""How a made-up world speaks: the labels and jobs of its scrapes, and what its pods ask for.

The world says what is so. This puts it into raw rows and objects, and the scaler's own code reads
them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import msgspec

from keda_gpu_scaler.evidence.kube_state_metrics import read_evidence
from keda_gpu_scaler.evidence.kubernetes import objects
from keda_gpu_scaler.query.kube_state_texts import STAT, kube_state_text
from keda_gpu_scaler.snapshot.attribution import Breadth
from keda_gpu_scaler.snapshot.observation import Observation, Row, Target
from keda_gpu_scaler.sources.series import Exporters, read_observation
from keda_gpu_scaler.spec.spec import SnapshotQuery
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS
from testbed.series import stored

EXPORTERS_POD: Mapping[str, str] = {"namespace": "gpu-operator", "pod": "dcgm-exporter-x7kqp"}
TENANT = Target("tenant", "10.9.9.9:8000")
SAMPLE, AVERAGE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
BREADTHS = {"dcgm": Breadth(40, 12), TENANT.job: Breadth(1, 30)}
"""So many targets and namespaces each job shows: an exporter runs on all nodes."""
BLANK = 2.0**47
"""What DCGM shows where there is no number."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is so for as long as a world exists."""

    target_labels: Mapping[str, str] = field(default_factory=lambda: EXPORTERS_POD)
    """What the scrape job adds to the series of each exporter."""
    honor_labels: bool = False
    """Of two labels with one name the series' is kept; otherwise that is renamed."""
    gpus: int = 1
    """How many GPUs a pod has, which share its work."""
    resource: str = "nvidia.com/gpu"
    """What a pod asks for to get them."""
    collection_seconds: int = COLLECT_SECONDS
    """How often the source is set to believe that exporters read their GPUs."""
    tenant_shows: float | None = None
    """What another tenant's target says of each GPU that is shown, in percent; None: none does."""

    def stored(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the labels of an exporter's series as Prometheus stores it."""
        return stored(labels, self.target_labels, honor_labels=self.honor_labels)

    def read(
        self,
        rows: Iterable[Row],
        good_scrapes: Mapping[Target, Mapping[float, float]],
        snapshot_query: SnapshotQuery,
        at: float,
        step: float,
    ) -> Observation:
        """Return what the scaler reads in the answer to its query."""
        targets = [
            Row.of({**target._asdict(), **self.target_labels}, times.items())
            for target, times in good_scrapes.items()
        ]
        if self.tenant_shows is not None:
            every = {time for times in good_scrapes.values() for time in times}
            targets.append(Row.of(TENANT._asdict(), [(time, time) for time in sorted(every)]))
        exporters = Exporters(collection_seconds=self.collection_seconds, breadths=BREADTHS)
        return read_observation([*rows, *targets], snapshot_query, at, step, exporters)


class Asked(NamedTuple):
    """What is known of a pod by the resource that it asks for."""

    asks_gpu: bool | None
    devices: frozenset[str]


@cache
def asked_of_the_api(resource: str) -> Asked:
    """Return what is read of a pod's object in the Kubernetes API."""
    container = {"resources": {"limits": {"cpu": "4", resource: 1}}}
    metadata = {"namespace": "ml", "name": "bert", "resourceVersion": "1"}
    item = msgspec.convert(
        {"metadata": metadata, "spec": {"containers": [container]}}, objects.Item
    )
    statement = objects.pod(item).statement
    return Asked(statement.asks_gpu, statement.devices)


@cache
def asked_of_the_list(resource: str) -> Asked:
    """Return what is read of the rows that the query about kube-state-metrics selects."""
    name = re.sub(r"\W", "_", resource)
    pod = {"namespace": "ml", "pod": "bert", "owner_kind": "ReplicaSet", "owner_name": "bert"}
    rows = [Row.of({**pod, STAT: "pod", "owner_is_controller": "true"}, [(0.0, 1.0)])]
    rows.append(Row.of({"namespace": "ml", STAT: "requests"}, [(0.0, 1.0)]))
    for branch in kube_state_text(["k"], (), (), ["ml"]).split(', "", "")'):
        stat = branch.rpartition(f'"{STAT}", ')[-1].strip('"')
        matchers = re.findall(r'\bresource(=~|!~)"([^"]*)"', branch)
        if stat in {"gpu", "device"} and matchers:
            is_selected = [
                (how == "=~") == bool(re.fullmatch(text, name)) for how, text in matchers
            ]
            if all(is_selected):
                rows.append(Row.of({**pod, STAT: stat, "resource": name}, [(0.0, 1.0)]))
    (statement,) = read_evidence(rows).pods.values()
    return Asked(statement.asks_gpu, statement.devices)
