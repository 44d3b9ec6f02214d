"""What KEDA and the HPA did in a real cluster, beside what their rules make of the same answers.

`tests/e2e/test_episodes.py` records it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from keda_gpu_scaler.autoscaling.api_objects import Behavior, quantity
from keda_gpu_scaler.autoscaling.rules import (
    CLUSTERS,
    Hpa,
    Keda,
    Metric,
    MetricType,
    Scale,
    Tolerances,
)

FOLDER = Path(__file__).parents[1] / "autoscaling" / "episodes"
TARGET = 10.0
"""Of every metric."""
HPA, KEDA = "hpa", "keda"


class Sync(Struct, frozen=True, array_like=True, tag="sync"):
    """One sync of the HPA."""

    at: float
    """When the scaler answered last, in seconds since the begin."""
    values: tuple[float | None, ...]
    """A value for each metric; None: an error or an empty list. Without any: none was asked for."""


class Poll(Struct, frozen=True, array_like=True, tag="poll"):
    """One poll of KEDA in which it asked for the metrics."""

    at: float
    active: tuple[bool | None, ...]
    """The activity with each metric; None: an error."""


class Scaled(Struct, frozen=True, array_like=True, tag="scaled"):
    """The Deployment's `spec.replicas` changed."""

    at: float
    replicas: int
    by: str


class Pods(Struct, frozen=True, array_like=True, tag="pods"):
    """The replicas in the Deployment's status changed."""

    at: float
    existing: int
    ready: int


class Limits(Struct, frozen=True, array_like=True, tag="limits"):
    """The HPA's limits are these from now on."""

    at: float
    minimum: int
    maximum: int


Event: TypeAlias = Sync | Poll | Scaled | Pods | Limits


class Recording(Struct, frozen=True, rename="camel"):
    """What one ScaledObject went through."""

    ran: str
    """The versions of KEDA and Kubernetes."""
    replicas: int
    """At the begin."""
    metric_type: MetricType
    min_replica_count: int
    idle_replica_count: int | None
    cooldown_period: int
    downscale_stabilization: int
    """Of the controller manager."""
    behavior: Behavior | None
    events: tuple[Event, ...]
    """In their order."""


class Comparison(NamedTuple):
    """The replicas after a sync or a poll: what they became, and what the rules say."""

    cause: Sync | Poll
    before: int
    after: int
    ruled: int
    """By the rules."""

    @property
    def is_equal(self) -> bool:
        return self.after == self.ruled

    def __str__(self) -> str:
        return f"{self.cause}: {self.before} → {self.after}, by the rules {self.ruled}"


def read(name: str) -> Recording:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Recording)


def write(name: str, recording: Recording) -> None:
    """Write it down, an event on each line."""
    plain = msgspec.json.encode(recording).decode()
    (FOLDER / f"{name}.json").write_text(plain.replace(',["', ',\n["') + "\n")


def compared(recording: Recording) -> Iterator[Comparison]:
    """Yield each sync and each poll, with what the rules make of it."""
    hpa = Hpa(
        stabilization_seconds=recording.downscale_stabilization,
        tolerances=_tolerances(recording.behavior),
        behavior=recording.behavior,
    )
    keda = Keda(
        cooldown_seconds=recording.cooldown_period,
        minimum=recording.min_replica_count,
        goes_to_zero=0 in (recording.min_replica_count, recording.idle_replica_count),
    )
    replicas, existing, ready = recording.replicas, 0, 0
    for index, event in enumerate(recording.events):
        later = recording.events[index + 1 :]
        if isinstance(event, Scaled):
            replicas = event.replicas
        elif isinstance(event, Pods):
            existing, ready = event.existing, event.ready
        elif isinstance(event, Limits):
            hpa.minimum, hpa.maximum = event.minimum, event.maximum
        elif isinstance(event, Sync):
            metrics = [
                Metric(value=value, target=TARGET, metric_type=recording.metric_type)
                for value in event.values
            ]
            change = _change(later, Sync, HPA)
            scale = Scale(spec=replicas, status=existing, ready=ready)
            # A change counts from when it was made.
            ruled = hpa.sync(event.at if change is None else change.at, scale, metrics)
            yield Comparison(event, replicas, change.replicas if change else replicas, ruled)
        else:
            change = _change(later, Poll, KEDA)
            ruled = keda.poll(event.at, replicas, event.active)
            yield Comparison(event, replicas, change.replicas if change else replicas, ruled)


def _tolerances(behavior: Behavior | None) -> Tolerances:
    if behavior is None:
        return CLUSTERS
    up, down = quantity(behavior.scale_up.tolerance), quantity(behavior.scale_down.tolerance)
    return Tolerances(
        up=CLUSTERS.up if up is None else up, down=CLUSTERS.down if down is None else down
    )


def _change(later: Sequence[Event], next_one: type[Event], by: str) -> Scaled | None:
    """Return what one of both has changed before its next sync or poll."""
    for event in later:
        if isinstance(event, next_one):
            break
        if isinstance(event, Scaled) and event.by == by:
            return event
    return None
