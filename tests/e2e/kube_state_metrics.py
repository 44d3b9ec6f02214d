"""A small kube-state-metrics of one namespace, in the process of the test.

It follows pods and their owners by watches, as the real one does, and answers a scrape at once
from what it knows.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import lightkube
from lightkube.resources.apps_v1 import Deployment, ReplicaSet, StatefulSet
from lightkube.resources.core_v1 import Pod
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keda_gpu_scaler.simulator import web
from tests.e2e import kube_state_series as series
from tests.e2e.watching import again

_SAMPLES: Mapping[Any, Callable[[Any], Iterable[series.Sample]]] = {
    Pod: series.of_pod,
    ReplicaSet: series.of_replica_set,
    Deployment: series.of_deployment,
    StatefulSet: series.of_stateful_set,
}


_ITSELF: series.Sample = (
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


@dataclass(slots=True, eq=False)
class _Known(Collector):
    """The objects there are, by resource and uid; a registry tells collectors apart by identity."""

    objects: dict[Any, dict[str, Any]] = field(
        default_factory=lambda: {resource: {} for resource in _SAMPLES}
    )

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with all its samples, as the text format demands."""
        metrics: dict[str, Metric] = {}
        for name, labels, value in self._samples():
            metric = metrics.setdefault(name, Metric(name, "As in kube-state-metrics.", "gauge"))
            metric.add_sample(name, labels, value)
        yield from metrics.values()

    def _samples(self) -> Iterator[series.Sample]:
        yield _ITSELF
        for resource, found in self.objects.items():
            for each in found.values():
                yield from _SAMPLES[resource](each)


@contextlib.asynccontextmanager
async def standing(client: lightkube.AsyncClient, namespace: str) -> AsyncIterator[int]:
    """Serve /metrics on a port of 127.0.0.1 until the block ends; yields the port."""
    known = _Known()
    server = web.server(_application(known))
    watches = [
        asyncio.create_task(
            again(functools.partial(_list_and_watch, client, namespace, resource, found)),
            name="kube-state-watch",
        )
        for resource, found in known.objects.items()
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


def _application(known: _Known) -> Starlette:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(known)

    async def metrics(request: Request) -> Response:
        del request
        return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/metrics", metrics)])
