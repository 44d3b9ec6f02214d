"""A small kube-state-metrics of one namespace, in the process of the test.

It follows pods and their owners by watches, as the real one does, and answers a scrape at once
from what it knows: only the series that identify pods and tell which are ready.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import lightkube
from lightkube.resources.apps_v1 import Deployment, ReplicaSet, StatefulSet
from lightkube.resources.core_v1 import Pod
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keda_gpu_scaler.simulator import web
from tests.e2e.manifests import GPU
from tests.e2e.watching import again

Labels = dict[str, str]
Sample = tuple[str, Labels, float]
_ITSELF: Sample = (
    "kube_pod_owner",
    {
        "namespace": "monitoring",
        "pod": "kube-state-metrics-0",
        "uid": "0",
        "owner_kind": "StatefulSet",
        "owner_name": "kube-state-metrics",
        "owner_is_controller": "true",
    },
    1,
)
"""A real one never runs in a cluster without pods: one that lists none does not collect them."""


@contextlib.asynccontextmanager
async def standing(client: lightkube.AsyncClient, namespace: str) -> AsyncIterator[int]:
    """Serve /metrics on a port of 127.0.0.1 until the block ends; yields the port."""
    known: dict[Any, dict[str, Any]] = {resource: {} for resource in _SAMPLES}

    async def metrics(request: Request) -> Response:
        del request
        samples = [
            sample
            for resource, found in known.items()
            for each in found.values()
            for sample in _SAMPLES[resource](each)
        ]
        return PlainTextResponse("".join(map(_line, [_ITSELF, *samples])))

    server = web.server(Starlette(routes=[Route("/metrics", metrics)]))
    watches = [
        asyncio.create_task(
            again(functools.partial(_list_and_watch, client, namespace, resource, found))
        )
        for resource, found in known.items()
    ]
    try:
        yield await server.start()
    finally:
        for watch in watches:
            watch.cancel()
        await server.stop()
        await asyncio.gather(*watches, return_exceptions=True)


async def _list_and_watch(
    client: lightkube.AsyncClient,
    namespace: str,
    resource: Any,  # noqa: ANN401 - lightkube's resources have no common type
    found: dict[str, Any],
) -> None:
    listing = client.list(resource, namespace=namespace)
    listed = {each.metadata.uid: each async for each in listing}
    found.clear()
    found.update(listed)
    version = listing.resourceVersion
    async for kind, each in client.watch(resource, namespace=namespace, resource_version=version):
        if kind == "DELETED":
            found.pop(each.metadata.uid, None)
        else:
            found[each.metadata.uid] = each


def _line(sample: Sample) -> str:
    """Write a sample as the text format has it: names in Kubernetes need no escapes."""
    name, labels, value = sample
    pairs = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{pairs}}} {value}\n"


def _pod(pod: Any) -> Iterator[Sample]:  # noqa: ANN401 - a Pod whose parts are there
    metadata, status = pod.metadata, pod.status
    this = {"namespace": metadata.namespace, "pod": metadata.name, "uid": metadata.uid}
    yield from _owners("kube_pod_owner", this, metadata)
    yield "kube_pod_created", this, metadata.creationTimestamp.timestamp()
    if metadata.deletionTimestamp is not None:
        yield "kube_pod_deletion_timestamp", this, metadata.deletionTimestamp.timestamp()
    for phase in ("Pending", "Succeeded", "Failed", "Unknown", "Running"):
        yield "kube_pod_status_phase", this | {"phase": phase}, float(phase == status.phase)
    # A pod that was never scheduled has no such condition.
    for ready in (each for each in status.conditions or () if each.type == "Ready"):
        for condition in ("true", "false", "unknown"):
            is_so = float(ready.status.lower() == condition)
            yield "kube_pod_status_ready", this | {"condition": condition}, is_so
        if ready.status == "True":
            yield "kube_pod_status_ready_time", this, ready.lastTransitionTime.timestamp()
    for container in pod.spec.containers:
        requests = (container.resources and container.resources.requests) or {}
        if GPU in requests:
            resource = {"container": container.name, "resource": "nvidia_com_gpu"}
            labels = this | resource | {"unit": "integer"}
            yield "kube_pod_container_resource_requests", labels, float(requests[GPU])


def _replica_set(found: Any) -> Iterator[Sample]:  # noqa: ANN401 - a ReplicaSet
    this = {"namespace": found.metadata.namespace, "replicaset": found.metadata.name}
    yield from _owners("kube_replicaset_owner", this, found.metadata)


def _deployment(found: Any) -> Iterator[Sample]:  # noqa: ANN401 - a Deployment
    this = {"namespace": found.metadata.namespace, "deployment": found.metadata.name}
    yield "kube_deployment_spec_replicas", this, found.spec.replicas
    yield "kube_deployment_status_replicas", this, found.status.replicas or 0


def _stateful_set(found: Any) -> Iterator[Sample]:  # noqa: ANN401 - a StatefulSet
    this = {"namespace": found.metadata.namespace, "statefulset": found.metadata.name}
    yield "kube_statefulset_replicas", this, found.spec.replicas
    yield "kube_statefulset_status_replicas", this, found.status.replicas or 0


_SAMPLES: Mapping[Any, Callable[[Any], Iterator[Sample]]] = {
    Pod: _pod,
    ReplicaSet: _replica_set,
    Deployment: _deployment,
    StatefulSet: _stateful_set,
}


def _owners(name: str, this: Labels, metadata: Any) -> Iterator[Sample]:  # noqa: ANN401 - of an object
    """Yield the owners of an object; those without any owner have a row that says so."""
    for owner in metadata.ownerReferences or ():
        labels = {"owner_kind": owner.kind, "owner_name": owner.name}
        controls = "true" if owner.controller else "false"
        yield name, this | labels | {"owner_is_controller": controls}, 1
    if not metadata.ownerReferences:
        labels = {"owner_kind": "", "owner_name": "", "owner_is_controller": ""}
        yield name, this | labels, 1
