"""Samples of the past → the work that a workload was given. Pure.

What its replicas did is undone: the work is the sum over them. It is unknown where no exporter
answers, where a pod is not shown that is shown before and after, and where its number is refused.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, mean

from msgspec import Struct

from keda_gpu_scaler.decision import pod_state
from keda_gpu_scaler.decision.scale_out import Moment, ScaleOuts
from keda_gpu_scaler.snapshot.observation import Observation, uuid_of
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.times import SETTLE_SECONDS
from keda_gpu_scaler.trigger.metadata import IDLE_PERCENT
from keda_gpu_scaler.workbench.backtest.work import Work
from keda_gpu_scaler.workbench.world.loop import CAPACITY, STEP_SECONDS

HOLE_SECONDS = 300
"""A pod that is not shown for longer was not there, if another one can have its name."""


class Chunk(Struct, frozen=True):
    """What was read of one stretch of time, a value for each step."""

    begin: float
    covered: list[bool]
    """Whether an exporter answers."""
    pods: dict[str, list[float | None]]
    """The load of each pod of the workload, its GPUs aggregated; None: it is not shown."""
    gpus: int = 0
    """The most GPUs of a pod at one time; 0: no exporter shows one."""
    demands: list[float | None] = []

    def __post_init__(self) -> None:
        """Refuse what no chunk is; ValueError."""
        if any(len(loads) != len(self.covered) for loads in self.pods.values()):
            raise ValueError("expected a load of each pod for each step")


def chunk_of(
    spec: TriggerSpec, observation: Observation, demands: Mapping[float, float] | None
) -> Chunk:
    """Return the part of an observation that is about one workload, with its demand if it has any.

    The pods are found by their names, as owners are known of the present only.
    """
    instants = observation.instants
    # By their names: while an exporter is replaced, two targets show the same GPU.
    gpus: dict[str, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    refused = set[float]()
    for series in observation.series:
        if series.namespace == spec.pods.namespace and spec.pods.matches(series.pod):
            refused.update(set(series.present) - set(series.times))
            for time, value in zip(series.times, series.values, strict=True):
                gpus[series.pod][time][series.gpu] = value
    loads = {
        name: pod_state.loads(spec, {time: list(by_gpu.values()) for time, by_gpu in pod.items()})
        for name, pod in gpus.items()
    }
    # A query of the user's own may not show which exporters answer.
    answered = {time for scrapes in observation.good_scrapes.values() for time in scrapes}
    answered.update(*loads.values())
    return Chunk(
        instants[0],
        [time in answered and time not in refused for time in instants],
        {name: [pod.get(time) for time in instants] for name, pod in loads.items()},
        max((_count(by_gpu) for pod in gpus.values() for by_gpu in pod.values()), default=0),
        [] if demands is None else [demands.get(time) for time in instants],
    )


def _count(gpus: Collection[str]) -> int:
    """Count GPUs; an element of a user's own query may be of several, and name none."""
    return sum(bool(uuid_of(gpu)) for gpu in gpus)


def work_of(
    chunks: Sequence[Chunk],
    replica_of: Callable[[str], str],
    start_seconds: float,
    capacity: float | None = None,
    hole_seconds: float = HOLE_SECONDS,
) -> Work:
    """Return the work in chunks that follow each other.

    `replica_of` names the replica of a pod, whose load is the mean of its pods. A pod that appears
    does no work for `start_seconds`. With a `capacity`, the demand is the work: so much of it is
    all that a replica can do. A pod that is away for longer than `hole_seconds` was not there.
    """
    covered = [is_covered for chunk in chunks for is_covered in chunk.covered]
    demands = [demand for chunk in chunks for demand in chunk.demands]
    pods = _joined(chunks)
    starting = {
        name: _starting(loads, covered, start_seconds, hole_seconds) for name, loads in pods.items()
    }
    for loads in pods.values():
        for before, after in pairwise(loads):
            if 1 < after - before <= hole_seconds / STEP_SECONDS:  # it was there, and not shown
                covered[before + 1 : after] = [False] * (after - before - 1)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in pods:
        groups[replica_of(name)].append(name)
    counts = [0] * len(covered)
    ready: list[list[float]] = [[] for _ in covered]
    """The load of each replica that is shown, and not starting."""
    for group in groups.values():
        for step in {step for name in group for step in pods[name]}:
            counts[step] += 1
            if not any(step in starting[name] for name in group):
                ready[step].append(mean(pods[name][step] for name in group if step in pods[name]))
    known = list(zip(covered, ready, strict=True))
    full = [is_covered and min(loads or [0.0]) >= pod_state.FULL for is_covered, loads in known]
    work = [
        _done(loads, is_full=is_full) if is_covered else None
        for (is_covered, loads), is_full in zip(known, full, strict=True)
    ]
    if capacity is not None:
        work = [None if demand is None else demand / capacity * CAPACITY for demand in demands]
        full = []
    pods_of_a_replica = max(map(len, groups.values()), default=0)
    return Work(
        chunks[0].begin,
        work,
        demands,
        [count if is_covered else None for count, is_covered in zip(counts, covered, strict=True)],
        full,
        pods_of_a_replica * max(chunk.gpus for chunk in chunks),
        tuple(_futile(chunks[0].begin, known, demands)),
    )


def _done(loads: Sequence[float], *, is_full: bool) -> float:
    """Return the work of replicas: more than they can do, where all of them are full."""
    work = sum(loads)
    if is_full:
        return max(work, CAPACITY * len(loads) + 1)
    return work if work > IDLE_PERCENT else 0.0


def _futile(
    begin: float,
    known: Sequence[tuple[bool, Sequence[float]]],
    demands: Sequence[float | None],
) -> Iterator[tuple[float, str]]:
    """Yield the scale-outs that did not help, by the means of the minutes before each step."""
    scale_outs, before = ScaleOuts(), ""
    recent = deque[Moment](maxlen=round(SETTLE_SECONDS / STEP_SECONDS))
    for step, ((is_covered, loads), demand) in enumerate(zip(known, demands, strict=False)):
        if not is_covered or not loads or demand is None:
            continue
        at = begin + step * STEP_SECONDS
        if recent and recent[-1].replicas != len(loads):
            recent.clear()
        recent.append(Moment(at, len(loads), mean(loads), demand))
        load = fmean(moment.load for moment in recent)
        recent_demand = fmean(moment.demand for moment in recent)
        sentence = scale_outs.judge(Moment(at, len(loads), load, recent_demand))
        if sentence not in ("", before):
            yield at, sentence
        before = sentence


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


def _starting(
    shown: Collection[int], covered: Sequence[bool], start_seconds: float, hole_seconds: float
) -> set[int]:
    """Return the steps at which a pod starts: the first ones after it was not there.

    One that is there from the beginning, or from the end of a gap, may have been there before.
    """
    starting, before = set[int](), -1
    for step in shown:
        is_new = before < 0 or (step - before) * STEP_SECONDS > hole_seconds
        if is_new and step > 0 and covered[step - 1]:
            starting.update(range(step, step + round(start_seconds / STEP_SECONDS)))
        before = step
    return starting
