"""Samples of the past → the work that a workload was given. Pure.

What its replicas did is undone: the work is the sum over them. It is unknown where no exporter
answers, and where a pod is not shown that is shown before and after.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from statistics import mean

from msgspec import Struct

from keda_gpu_scaler.backtest.loop import FULL, STEP_SECONDS
from keda_gpu_scaler.backtest.work import Work
from keda_gpu_scaler.decision import pod_state
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.spec.spec import TriggerSpec

HOLE_SECONDS = 300
"""A pod that is not shown for longer was not there."""


class Chunk(Struct, frozen=True):
    """What was read of one stretch of time, a value for each step."""

    begin: float
    covered: list[bool]
    """Whether an exporter, or the source of the demand, answers."""
    pods: dict[str, list[float | None]]
    """The load of each pod of the workload, its GPUs aggregated; None: it is not shown."""
    gpus: int = 0
    """The most GPUs of a pod."""
    demands: list[float | None] = []


def chunk_of(
    spec: TriggerSpec, observation: Observation, demands: Mapping[float, float] | None
) -> Chunk:
    """Return the part of an observation that is about one workload, with its demand if it has any.

    The pods are found by their names, as owners are known of the present only.
    """
    instants = observation.instants
    gpus: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    boards: dict[str, set[str]] = defaultdict(set)
    for series in observation.series:
        if series.namespace == spec.pods.namespace and spec.pods.matches(series.pod):
            boards[series.pod].add(series.gpu)
            for time, value in zip(series.times, series.values, strict=True):
                gpus[series.pod][time].append(value)
    loads = {name: pod_state.loads(spec, samples) for name, samples in gpus.items()}
    answered = {time for scrapes in observation.good_scrapes.values() for time in scrapes}
    return Chunk(
        instants[0],
        [time in answered or (demands is not None and time in demands) for time in instants],
        {name: [pod.get(time) for time in instants] for name, pod in loads.items()},
        max(map(len, boards.values()), default=0),
        [] if demands is None else [demands.get(time) for time in instants],
    )


def work_of(
    chunks: Sequence[Chunk],
    replica_of: Callable[[str], str],
    start_seconds: float,
    capacity: float | None = None,
) -> Work:
    """Return the work in chunks that follow each other.

    `replica_of` names the replica of a pod, whose load is the mean of its pods. A pod that appears
    does no work for `start_seconds`. With a `capacity`, the demand is the work: so much of it is
    all that a replica can do.
    """
    covered = [is_covered for chunk in chunks for is_covered in chunk.covered]
    demands = [demand for chunk in chunks for demand in chunk.demands]
    pods = _joined(chunks)
    ready_at = {name: _mend(loads, covered, start_seconds) for name, loads in pods.items()}
    groups: dict[str, list[str]] = defaultdict(list)
    for name in pods:
        groups[replica_of(name)].append(name)
    steps: list[list[float]] = [[] for _ in covered]
    """The load of each replica that is shown."""
    for group in groups.values():
        ready = max(ready_at[name] for name in group)
        for step in {step for name in group for step in pods[name]}:
            known = [pods[name][step] for name in group if step in pods[name]]
            steps[step].append(mean(known) if step >= ready else 0.0)
    known_steps = [
        step if is_covered else None for step, is_covered in zip(steps, covered, strict=True)
    ]
    loads = [None if step is None else sum(step) for step in known_steps]
    full = [min(step or [0.0]) >= pod_state.FULL for step in known_steps]
    if capacity is not None:
        loads = [None if demand is None else demand / capacity * FULL for demand in demands]
        full = []
    gpus = max((chunk.gpus for chunk in chunks), default=0) * max(
        map(len, groups.values()), default=0
    )
    return Work(
        chunks[0].begin,
        loads,
        demands,
        [None if step is None else len(step) for step in known_steps],
        full,
        max(1, gpus),
    )


def _joined(chunks: Sequence[Chunk]) -> dict[str, dict[int, float]]:
    """Return the load of each pod at the steps at which it is shown."""
    pods: dict[str, dict[int, float]] = defaultdict(dict)
    begin = 0
    for chunk in chunks:
        for name, loads in chunk.pods.items():
            for step, load in enumerate(loads, begin):
                if load is not None:
                    pods[name][step] = load
        begin += len(chunk.covered)
    return pods


def _mend(shown: Collection[int], covered: list[bool], start_seconds: float) -> int:
    """Mark the holes of a pod as not covered, and return the step at which it is Ready."""
    for before, after in pairwise(shown):
        if 1 < after - before <= HOLE_SECONDS // STEP_SECONDS:
            covered[before + 1 : after] = [False] * (after - before - 1)
    first = next(iter(shown), 0)
    # One that is there from the beginning, or from the end of a gap, may have been there before.
    appears = first > 0 and covered[first - 1]
    return first + round(start_seconds / STEP_SECONDS) if appears else 0
