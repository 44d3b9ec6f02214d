"""Samples of the past → what each workload used of its GPUs. Pure.

A GPU is idle at a step at which it shows no more than an idle card does. A workload is known at a
step at which each of its pods is shown: one that kube-state-metrics lists and no exporter shows may
be busy, so nothing is concluded there.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import mean
from typing import NamedTuple

from msgspec import Struct

from keda_gpu_scaler.decision.pod_state import FULL
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.trigger.metadata import IDLE_PERCENT
from keda_gpu_scaler.workbench.backtest.advice import percent

STEP_SECONDS = 60
"""Of the past: four of the usual scrapes. It makes a week of 800 GPUs 8 million numbers."""
LIST_SECONDS = 300
"""How often it is asked which pods there were: a pod is there between two lists that show it."""
LEAST_KNOWN = 0.5
"""A workload that is known for less of its time is not judged."""
NEVER_IDLE, OFTEN_FULL = 0.02, 0.2
"""Shares of the known GPU-hours and of the known time."""
ABSENT, UNKNOWN, IDLE, BUSY, SATURATED = ".?ibf"
"""What a pod, or a whole workload, is at a step."""
PodKey = tuple[str, str]
"""A namespace, and the name of a pod in it."""
_NAMES = (
    ("Deployment", re.compile(r"(.+)-[4-9bcdf]{4,10}-[b-df-hj-np-tv-xz24-9]{5}")),
    ("StatefulSet", re.compile(r"(.+)-(?:0|[1-9][0-9]*)")),
)
"""The kinds of owners that the name of a pod shows by itself."""


class Used(NamedTuple):
    """A workload: what stands at the top of its pods' owners."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind.lower()}/{self.name}"


class Stretch(Struct, frozen=True):
    """What one workload did in one part of the past."""

    steps: str
    """A character for each step."""
    gpus: int
    """Its GPUs, as often as each of them showed a number: GPU-steps."""
    idle: int
    """Those of them that were idle."""
    shown: int
    """Its pods, as often as each of them was shown."""
    pods: int
    """Its pods, as often as each of them was there, shown or not."""
    most_replicas: int
    most_gpus: int
    """Of one pod."""


_NOTHING = Stretch(ABSENT, 0, 0, 0, 0, 0, 0)


class UsagePart(Struct, frozen=True):
    """What was read of one part of the past."""

    begin: float
    workloads: dict[str, Stretch]
    """By namespace, kind and name, with slashes between them."""


class Links(NamedTuple):
    """The owners of objects, as kube-state-metrics lists them."""

    pods: Mapping[PodKey, Owner]
    above: Mapping[tuple[str, Owner], Owner]
    """The owners of ReplicaSets and Jobs, each with its namespace."""


def used_by(pod: PodKey, links: Links) -> Used:
    """Return the workload of a pod: by its owners, and by its name where they are not listed.

    The pods of a LeaderWorkerSet's group belong to a StatefulSet named like their leader.
    """
    namespace, name = pod
    owner = links.pods.get(pod)
    if owner is None:
        for kind, pattern in _NAMES:
            if (match := pattern.fullmatch(name)) is not None:
                return Used(namespace, kind, match[1])
        return Used(namespace, "Pod", name)
    if not owner.name:
        return Used(namespace, "Pod", name)
    leader = links.pods.get((namespace, owner.name)) if owner.kind == "StatefulSet" else None
    top = links.above.get((namespace, owner), leader or owner)
    return Used(namespace, *(top if top.name else owner))


def stretches(
    observation: Observation, there: Mapping[PodKey, AbstractSet[float]], links: Links
) -> dict[str, Stretch]:
    """Return what each workload did; `there` are the times at which a pod is known to run."""
    shown: dict[PodKey, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    refused: dict[PodKey, set[float]] = defaultdict(set)
    for series in observation.series:
        pod = series.namespace, series.pod
        refused[pod].update(set(series.present) - set(series.times))
        by_time = shown[pod]
        for at, value in zip(series.times, series.values, strict=True):
            # By name: while an exporter is replaced, two targets show the same GPU.
            by_time[at][series.gpu] = value
    groups: dict[Used, list[PodKey]] = defaultdict(list)
    for pod in shown.keys() | there.keys():
        groups[used_by(pod, links)].append(pod)
    lists = {
        at: {at // LIST_SECONDS * LIST_SECONDS, math.ceil(at / LIST_SECONDS) * LIST_SECONDS}
        for at in observation.instants
    }
    found = {}
    for used, pods in groups.items():
        states, loads = [], list[list[float]]()
        for pod in pods:
            listed, unknown = there.get(pod, frozenset()), refused[pod]
            known = {at: [*gpus.values()] for at, gpus in shown[pod].items() if at not in unknown}
            loads += known.values()
            states.append(
                [
                    _state(known[at])
                    if at in known
                    else (UNKNOWN if at in unknown or beside <= listed else ABSENT)
                    for at, beside in lists.items()
                ]
            )
        found["/".join(used)] = _stretch(states, loads)
    return found


def _state(loads: Collection[float]) -> str:
    if max(loads) <= IDLE_PERCENT:
        return IDLE
    return SATURATED if mean(loads) >= FULL else BUSY


def _stretch(states: Sequence[Sequence[str]], loads: Sequence[Sequence[float]]) -> Stretch:
    """Return what pods did together; `loads` are the numbers of the GPUs of each, at each step."""
    by_step = list(zip(*states, strict=True))
    there = [len(step) - step.count(ABSENT) for step in by_step]
    return Stretch(
        steps="".join(map(_together, by_step)),
        gpus=sum(map(len, loads)),
        idle=sum(load <= IDLE_PERCENT for gpus in loads for load in gpus),
        shown=sum(there) - sum(step.count(UNKNOWN) for step in by_step),
        pods=sum(there),
        most_replicas=max(there),
        most_gpus=max(map(len, loads), default=0),
    )


def _together(states: Iterable[str]) -> str:
    """Return what a workload is whose pods are so."""
    kinds = set(states) - {ABSENT}
    if not kinds:
        return ABSENT
    if UNKNOWN in kinds:
        return UNKNOWN
    return kinds.pop() if len(kinds) == 1 else BUSY


@dataclass(frozen=True, slots=True)
class Usage:
    """What one workload used in all."""

    used: Used
    stretches: Sequence[Stretch]

    @property
    def replicas(self) -> int:
        """The most at one time."""
        return max(stretch.most_replicas for stretch in self.stretches)

    @property
    def gpus(self) -> int:
        """Of a replica; 0: no exporter shows one."""
        return max(stretch.most_gpus for stretch in self.stretches)

    @property
    def gpu_hours(self) -> float:
        """As far as its pods are shown."""
        return sum(stretch.gpus for stretch in self.stretches) * STEP_SECONDS / 3600

    @property
    def idle_hours(self) -> float:
        return sum(stretch.idle for stretch in self.stretches) * STEP_SECONDS / 3600

    @property
    def known(self) -> float:
        """The share of its pods' time in which they are shown."""
        there = sum(stretch.pods for stretch in self.stretches)
        return sum(stretch.shown for stretch in self.stretches) / there if there else 0.0

    @property
    def full_seconds(self) -> float:
        """How long all of its replicas were full."""
        return self._seconds(SATURATED)

    @property
    def full(self) -> float:
        """The share of the known time in which all replicas were full."""
        known_seconds = self.full_seconds + self._seconds(IDLE) + self._seconds(BUSY)
        return self.full_seconds / known_seconds if known_seconds else 0.0

    @property
    def longest_idle_seconds(self) -> float:
        """The longest time in which every GPU was seen to be idle at each step."""
        runs = re.findall(f"{IDLE}+", "".join(stretch.steps for stretch in self.stretches))
        return max(map(len, runs), default=0) * STEP_SECONDS

    def _seconds(self, state: str) -> float:
        return sum(stretch.steps.count(state) for stretch in self.stretches) * STEP_SECONDS

    @property
    def is_judged(self) -> bool:
        return self.known >= LEAST_KNOWN

    @property
    def is_ever_idle(self) -> bool:
        """Whether fewer replicas would have done, as far as that is known."""
        return self.is_judged and self.idle_hours > NEVER_IDLE * self.gpu_hours

    @property
    def verdict(self) -> str:
        """What to make of it, in one sentence."""
        if not self.gpus:
            return "not known: no exporter shows its GPUs"
        if not self.is_judged:
            return f"not known: exporters showed it for {percent(self.known)} of its time only"
        if self.longest_idle_seconds >= durations.DAY_SECONDS:
            days = self.longest_idle_seconds / durations.DAY_SECONDS
            return f"idle for {days:.1f} days at a stretch: is it still needed?"
        if self.full >= OFTEN_FULL:
            return (
                f"all of it was full for {percent(self.full)} of the time: it needs more replicas"
            )
        if not self.is_ever_idle:
            return "never idle: do not touch"
        return "scale it by its load"


def usages(parts: Sequence[UsagePart]) -> list[Usage]:
    """Return what each workload used in parts that follow each other, the most idle ones first.

    Those of which nothing is known come last.
    """
    names = dict.fromkeys(name for part in parts for name in part.workloads)
    found = [
        Usage(
            Used(*name.split("/", 2)),
            [part.workloads.get(name, _NOTHING) for part in parts],
        )
        for name in names
    ]
    return sorted(found, key=lambda usage: (-usage.idle_hours, not usage.gpus, usage.used))
