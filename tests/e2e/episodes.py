"""ScaledObjects with a scaler that follows a script, and all that happens to them, with times."""

import contextlib
import functools
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import grpc
import lightkube
import msgspec
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler

from keda_gpu_scaler.autoscaling.api_objects import Behavior
from keda_gpu_scaler.autoscaling.rules import MetricType
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from testbed.cluster import generation
from testbed.cluster.control_plane import DOWNSCALE_STABILIZATION_SECONDS
from testbed.cluster.watching import following
from tests.e2e.lab import COOLDOWN_SECONDS
from tests.e2e.recorder import Context, Recorder
from tests.support.episodes import (
    HPA,
    KEDA,
    TARGET,
    Event,
    Limits,
    Pods,
    Poll,
    Recording,
    Scaled,
    Sync,
)

METRICS = "first", "second"
_TOGETHER_SECONDS = 1.0
"""Calls of one sync or poll come within less, those of the next one later."""


class Trouble(Enum):
    """What GetMetrics answers in place of a number."""

    ERROR = "error"
    EMPTY = "an empty list"


class Answer(NamedTuple):
    """What the scaler answers."""

    values: tuple[float | Trouble, ...]
    """For each metric."""
    active: bool


def says(*values: float | Trouble, active: bool = True) -> Answer:
    return Answer(values, active)


Script: TypeAlias = Mapping[float, Answer]
"""An answer from each time on, in seconds since the begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A ScaledObject and the script that its scaler follows."""

    script: Script
    replicas: int = 1
    min_replicas: int = 0
    max_replicas: int = 12
    idle_replicas: int | None = None
    metric_type: MetricType = MetricType.AVERAGE_VALUE
    startup_seconds: float = 0
    behavior: Mapping[str, Any] | None = None
    edits: Mapping[float, Mapping[str, int]] = field(default_factory=dict)
    """Fields of the spec from each time on."""


@dataclass(slots=True)
class _Round:
    """The calls of one sync or poll, with the answers by metric; None: an error or no value."""

    by_hpa: bool
    began: float
    at: float
    """When the last call came."""
    metric: str = ""
    """What the last call was about."""
    values: dict[str, float | None] = field(default_factory=dict)
    active: dict[str, bool | None] = field(default_factory=dict)


@dataclass(slots=True)
class ScriptedScaler(Recorder):
    """A scaler that answers each ScaledObject by its script."""

    scripts: Mapping[str, Script] = field(default_factory=dict)
    begin: float = field(default_factory=time.time)
    rounds: dict[str, list[_Round]] = field(default_factory=dict)
    """The syncs and polls of each ScaledObject."""

    def _answer(self, name: str) -> Answer:
        script, seconds = self.scripts[name], time.time() - self.begin
        return script[max(since for since in script if since <= seconds)]

    def _round(self, name: str, context: Context) -> _Round:
        """Return the sync or poll that a call belongs to."""
        # Only the HPA's calls have a deadline.
        now, by_hpa = time.time(), context.time_remaining() is not None
        rounds = self.rounds.setdefault(name, [])
        latest = next((each for each in reversed(rounds) if each.by_hpa == by_hpa), None)
        if latest is None or now - latest.began > _TOGETHER_SECONDS:
            latest = _Round(by_hpa, now, now)
            rounds.append(latest)
        latest.at = now
        return latest

    async def GetMetricSpec(self, request: Any, context: Context) -> Any:  # noqa: ARG002
        """Answer a target for each metric."""
        names = METRICS[: len(self._answer(request.name).values)]
        specs = [pb.MetricSpec(metricName=name, targetSizeFloat=TARGET) for name in names]
        return pb.GetMetricSpecResponse(metricSpecs=specs)

    async def GetMetrics(self, request: Any, context: Context) -> Any:
        """Answer the value of a metric."""
        name, metric = request.scaledObjectRef.name, request.metricName
        value = self._answer(name).values[METRICS.index(metric)]
        latest = self._round(name, context)
        latest.metric = metric
        latest.values[metric] = None if isinstance(value, Trouble) else value
        latest.active[metric] = None
        if value is Trouble.ERROR:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "as the script wants it")
        if value is Trouble.EMPTY:
            return pb.GetMetricsResponse()
        shown = pb.MetricValue(metricName=metric, metricValueFloat=value)
        return pb.GetMetricsResponse(metricValues=[shown])

    async def IsActive(self, request: Any, context: Context) -> Any:
        """Answer the activity."""
        active = self._answer(request.name).active
        latest = self._round(request.name, context)
        latest.active[latest.metric] = active
        return pb.IsActiveResponse(result=active)


class _Sight(NamedTuple):
    """The state of an object at a time."""

    at: float
    state: Any


@dataclass(slots=True)
class Watched:
    """All that was seen of a namespace, oldest first."""

    deployments: list[_Sight] = field(default_factory=list)
    hpas: list[_Sight] = field(default_factory=list)


@contextlib.asynccontextmanager
async def watching(client: lightkube.AsyncClient, namespace: str) -> AsyncIterator[Watched]:
    """Watch the Deployments and HPAs of a namespace until the block ends."""
    watched = Watched()

    async def watch(resource: Any, sights: list[_Sight]) -> None:
        async for _, state in client.watch(resource, namespace=namespace):
            sights.append(_Sight(time.time(), state))

    watches = (
        functools.partial(watch, Deployment, watched.deployments),
        functools.partial(watch, HorizontalPodAutoscaler, watched.hpas),
    )
    async with following(watches):
        yield watched


def recorded(name: str, episode: Episode, scaler: ScriptedScaler, watched: Watched) -> Recording:
    """Return what happened to a ScaledObject, in the order of the times."""
    begin = math.floor(scaler.begin)
    deployments = [sight for sight in watched.deployments if sight.state.metadata.name == name]
    hpas = [sight for sight in watched.hpas if sight.state.spec.scaleTargetRef.name == name]
    events = _rounds(scaler.rounds[name], METRICS[: len(episode.script[0].values)])
    events += _limits(hpas)
    events += _changes(deployments)
    events += _silent_syncs(hpas, episode.replicas, events)
    events.sort(key=lambda event: event.at)
    behavior = episode.behavior
    return Recording(
        ran=f"KEDA {generation.KEDA}, Kubernetes {generation.KUBERNETES}",
        replicas=episode.replicas,
        metric_type=episode.metric_type,
        min_replica_count=episode.min_replicas,
        idle_replica_count=episode.idle_replicas,
        cooldown_period=COOLDOWN_SECONDS,
        downscale_stabilization=DOWNSCALE_STABILIZATION_SECONDS,
        behavior=None if behavior is None else msgspec.convert(behavior, Behavior),
        events=tuple(
            msgspec.structs.replace(event, at=round(event.at - begin, 3)) for event in events
        ),
    )


def _rounds(rounds: Sequence[_Round], metrics: Sequence[str]) -> list[Event]:
    return [
        Sync(each.at, tuple(map(each.values.get, metrics)))
        if each.by_hpa
        else Poll(each.at, tuple(each.active.values()))
        for each in rounds
    ]


def _limits(hpas: Sequence[_Sight]) -> list[Event]:
    events: list[Event] = []
    known = None
    for at, hpa in hpas:
        limits = hpa.spec.minReplicas, hpa.spec.maxReplicas
        if limits != known:
            events.append(Limits(at, *limits))
            known = limits
    return events


def _changes(deployments: Sequence[_Sight]) -> list[Event]:
    """Return when the replicas changed, and the pods; the first sight is the begin."""
    events: list[Event] = []
    replicas, pods = deployments[0].state.spec.replicas, None
    for at, deployment in deployments:
        wanted = deployment.spec.replicas
        if wanted != replicas:
            # The HPA neither sets 0 nor leaves it; here KEDA changes nothing else.
            events.append(Scaled(at, wanted, HPA if wanted and replicas else KEDA))
            replicas = wanted
        status = deployment.status
        counts = (status.replicas or 0, status.readyReplicas or 0) if status else (0, 0)
        if counts != pods:
            events.append(Pods(at, *counts))
            pods = counts
    return events


def _silent_syncs(hpas: Sequence[_Sight], replicas: int, events: Sequence[Event]) -> list[Event]:
    """Return the syncs that ask for no metric: the first at zero, and those outside the limits."""
    first = min(sight.at for sight in hpas if sight.state.status.conditions)
    first_call = min(event.at for event in events if isinstance(event, Sync))
    syncs: list[Event] = [Sync(first, ())] if first < first_call else []
    minimum, maximum = 0, math.inf
    for event in sorted(events, key=lambda event: event.at):
        if isinstance(event, Limits):
            minimum, maximum = event.minimum, event.maximum
        if isinstance(event, Scaled):
            if event.by == HPA and not minimum <= replicas <= maximum:
                syncs.append(Sync(event.at - 0.001, ()))
            replicas = event.replicas
    return syncs
