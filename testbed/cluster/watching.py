"""Watches of the Kubernetes API that write every change of a scenario's objects to its timeline.

A watch misses no change, which a poll would: a dip to zero replicas that lasts a second is exactly
what these tests are looking for.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import httpx2
import lightkube
from lightkube import ApiError
from lightkube.resources.apps_v1 import Deployment, StatefulSet
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler

from testbed.cluster.resources import ScaledObject
from testbed.cluster.timeline import Timeline

_PAUSE_SECONDS = 0.5
"""After a watch that failed: an API server that is away is not asked without pause."""
_IDENTITY = "hpa uid"
Sight = tuple[str, str, object]
"""A subject, an aspect of it, and its value."""


@contextlib.asynccontextmanager
async def watching(
    client: lightkube.AsyncClient, namespace: str, timeline: Timeline
) -> AsyncIterator[None]:
    """Write down what happens in a namespace, until the block ends."""
    async with following(
        functools.partial(_watch, client, namespace, resource, sights, timeline)
        for resource, sights in _SIGHTS.items()
    ):
        yield


@contextlib.asynccontextmanager
async def following(watches: Iterable[Callable[[], Awaitable[None]]]) -> AsyncIterator[None]:
    """Keep up watches until the block ends."""
    tasks = [asyncio.create_task(again(watch), name="watch") for watch in watches]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def again(watch: Callable[[], Awaitable[None]]) -> None:
    """Watch for ever: a watch ends after minutes by the server's own will, or with the server."""
    while True:
        try:
            await watch()
        except (ApiError, httpx2.HTTPError):
            await asyncio.sleep(_PAUSE_SECONDS)


async def _watch(
    client: lightkube.AsyncClient,
    namespace: str,
    resource: Any,
    sights: Callable[[Any], Iterable[Sight]],
    timeline: Timeline,
) -> None:
    async for kind, found in client.watch(resource, namespace=namespace):
        if kind != "DELETED":
            for sight in sights(found):
                timeline.see(*sight)
        elif resource is HorizontalPodAutoscaler:
            timeline.see(found.spec.scaleTargetRef.name, _IDENTITY, None)


def _workload(found: Any) -> Iterator[Sight]:
    name = found.metadata.name
    yield name, "replicas", found.spec.replicas
    yield name, "ready", (found.status and found.status.readyReplicas) or 0
    yield name, "pods", (found.status and found.status.replicas) or 0
    yield name, "rolled out", _is_rolled_out(found)


def _is_rolled_out(found: Any) -> bool:
    """Tell whether every pod is of the newest template and Ready, as `kubectl rollout status`."""
    status = found.status
    if status is None or status.observedGeneration != found.metadata.generation:
        return False
    counts = {status.replicas, status.updatedReplicas, status.readyReplicas}
    return {count or 0 for count in counts} == {found.spec.replicas}


def _autoscaler(found: HorizontalPodAutoscaler) -> Iterator[Sight]:
    assert found.spec is not None
    name = found.spec.scaleTargetRef.name
    yield name, _IDENTITY, found.metadata and found.metadata.uid
    external = [each.external for each in found.spec.metrics or () if each.external]
    yield name, "hpa metrics", [each.metric.name for each in external]
    for index, each in enumerate(external):
        yield name, f"hpa target {index}", each.target.averageValue or each.target.value
    for index, metric in enumerate((found.status and found.status.currentMetrics) or ()):
        current = metric.external and metric.external.current
        yield name, f"hpa metric {index}", current and (current.averageValue or current.value)
    for condition in (found.status and found.status.conditions) or ():
        yield name, f"hpa {condition.type}", f"{condition.status} {condition.reason}"


def _scaled_object(found: Mapping[str, Any]) -> Iterator[Sight]:
    name = found["metadata"]["name"]
    for condition in found.get("status", {}).get("conditions", ()):
        said = f"{condition.get('status')} {condition.get('reason', '')}"
        yield name, f"keda {condition['type']}", said


_SIGHTS: Mapping[Any, Callable[[Any], Iterable[Sight]]] = {
    Deployment: _workload,
    StatefulSet: _workload,
    HorizontalPodAutoscaler: _autoscaler,
    ScaledObject: _scaled_object,
}
