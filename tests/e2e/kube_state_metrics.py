"""A small kube-state-metrics of one namespace, in the process of the test.

It follows pods and their owners by watches, as the real one does, and answers a scrape at once
from what it knows: only the series that identify pods and tell which are ready.
"""

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

from keda_gpu_scaler.workbench.world import web
from testbed.cluster.manifests import GPU
from testbed.cluster.watching import following
from tests.support import kube_state
from tests.support.kube_state import KubePod, Listed

Part = KubePod | Listed
_ITSELF = KubePod(
    name="kube-state-metrics-0",
    owner=("StatefulSet", "kube-state-metrics"),
    namespace="monitoring",
    asks_gpu=False,
)
"""A real one never runs in a cluster without pods: one that lists none does not collect them."""


@contextlib.asynccontextmanager
async def standing(client: lightkube.AsyncClient, namespace: str) -> AsyncIterator[int]:
    """Serve /metrics on a port of 127.0.0.1 until the block ends; yields the port."""
    known: dict[Any, dict[str, Any]] = {resource: {} for resource in _PARTS}

    async def metrics(_: Request) -> Response:
        parts = [
            part
            for resource, found in known.items()
            for each in found.values()
            for part in _PARTS[resource](each)
        ]
        # Kubernetes has points in time: there is no end of a history to count from.
        return PlainTextResponse("\n".join([*kube_state.page(0, [_ITSELF, *parts]), ""]))

    server = web.server(Starlette(routes=[Route("/metrics", metrics)]))
    watches = (
        functools.partial(_list_and_watch, client, namespace, resource, found)
        for resource, found in known.items()
    )
    async with following(watches):
        try:
            yield await server.start()
        finally:
            await server.stop()


async def _list_and_watch(
    client: lightkube.AsyncClient,
    namespace: str,
    resource: Any,
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


def _pod(pod: Any) -> Iterator[Part]:
    metadata, status = pod.metadata, pod.status
    ready = next((each for each in status.conditions or () if each.type == "Ready"), None)
    requests = [each.resources and each.resources.requests for each in pod.spec.containers]
    yield KubePod(
        name=metadata.name,
        namespace=metadata.namespace,
        owner=_controller(metadata),
        created=metadata.creationTimestamp.timestamp(),
        ready=ready and ready.status == "True",
        ready_since=ready and ready.lastTransitionTime.timestamp(),
        phase=status.phase,
        deleting=metadata.deletionTimestamp is not None,
        asks_gpu=any(GPU in (each or ()) for each in requests),
        extra={"uid": metadata.uid},
    )


def _replica_set(found: Any) -> Iterator[Part]:
    metadata = found.metadata
    yield kube_state.link("ReplicaSet", metadata.name, _controller(metadata), metadata.namespace)


def _deployment(found: Any) -> Iterator[Part]:
    name = found.metadata.name, found.metadata.namespace
    yield kube_state.wanted(found.spec.replicas, *name)
    yield kube_state.replicas(found.status.replicas or 0, *name)


def _stateful_set(found: Any) -> Iterator[Part]:
    labels = {"namespace": found.metadata.namespace, "statefulset": found.metadata.name}
    for metric, count in (
        ("kube_statefulset_replicas", found.spec.replicas),
        ("kube_statefulset_status_replicas", found.status.replicas or 0),
    ):
        yield Listed(metric=metric, labels=labels, value=count)


_PARTS: Mapping[Any, Callable[[Any], Iterator[Part]]] = {
    Pod: _pod,
    ReplicaSet: _replica_set,
    Deployment: _deployment,
    StatefulSet: _stateful_set,
}


def _controller(metadata: Any) -> tuple[str, str]:
    owners = ((each.kind, each.name) for each in metadata.ownerReferences or ())
    return next(owners, ("", ""))
