"""What the question to kube-state-metrics costs, next to the snapshot query on the same server.

Both are asked once per step, in turns, by the product's own source. The snapshot is the reference,
with the question for the age of its samples: it is asked anyway, about as many pods.
"""

import time
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks import queries, world
from benchmarks.comparison import Detail, Measured, Plan, Row
from benchmarks.processes import ServerError
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.spec.workload import Owner
from tests.support import kube_state
from tests.support.gpus import Gpu, Up, history
from tests.support.kube_state import KubePod, Listed
from tests.support.prometheus import PrometheusServer
from tests.support.series import Series

NAMESPACES = frozenset({world.NAMESPACE})
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", NAMESPACES, span_seconds=255, window_seconds=120)
"""What a trigger with the defaults asks for."""
PODS = 2000
PAST_SECONDS = 300.0
OLD_REPLICA_SETS = 10
"""Old ReplicaSets that each Deployment keeps: its default revisionHistoryLimit."""
PODS_PER_DEPLOYMENT = 10
GPUS_PER_NODE = 8
ANSWER_SECONDS = 60.0
"""Bounds a benchmark on a slow machine; the scaler itself waits for 2 s."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Spent:
    """What one answer took."""

    seconds: float
    """Until it was read and parsed."""
    prometheus_cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of each."""

    snapshot: Spent
    evidence: Spent


async def measure(directory: Path, plan: Plan) -> Measured:
    """Ask about both in turns."""
    first, turns = await ask(directory, PODS, plan.rounds)
    raw = {"first": asdict(first), "rounds": [asdict(one) for one in turns]}
    return Measured(rows(turns), [detail(first, turns)], raw)


def rows(turns: Sequence[Round]) -> list[Row]:
    """Return the evidence next to the snapshot; it has no goal."""
    figures = {
        "time": ("time until the answer is understood", attrgetter("seconds")),
        "cpu": ("Prometheus' CPU time", attrgetter("prometheus_cpu_seconds")),
    }
    return [
        Row(
            key=f"evidence.{key}",
            name=f"kube-state-metrics, {PODS:,} pods: {name}",
            unit="ms",
            measured=[1000 * figure(one.evidence) for one in turns],
            reference_name="the snapshot of as many",
            reference=[1000 * figure(one.snapshot) for one in turns],
        )
        for key, (name, figure) in figures.items()
    ]


def detail(first: Spent, turns: Sequence[Round]) -> Detail:
    """Return what the question took, the first time and later."""
    later = [one.evidence for one in turns]
    usual = (
        median(one.seconds for one in later),
        median(one.prometheus_cpu_seconds for one in later),
    )
    head = [f"kube-state-metrics, {PODS:,} pods", "time", "Prometheus' CPU time"]
    cells = [
        ["the first time", f"{first.seconds:.2f} s", f"{first.prometheus_cpu_seconds:.2f} s"],
        ["later", f"{usual[0]:.2f} s", f"{usual[1]:.2f} s"],
    ]
    return Detail("evidence", "What kube-state-metrics is asked", head, cells)


async def ask(directory: Path, pods: int, rounds: int) -> tuple[Spent, list[Round]]:
    """Ask about this many pods in turns; return the first question, and the others."""
    async with PrometheusServer(directory) as prometheus:
        at = time.time() // kube_state.INTERVAL_SECONDS * kube_state.INTERVAL_SECONDS
        await prometheus.write(series(at, pods))
        settings = {"url": prometheus.url, "timeout": ANSWER_SECONDS}
        source = PrometheusSource("default", PrometheusSettings.model_validate(settings))
        try:
            first = await _round(prometheus, source, at, pods)  # exporters are detected as well
            turns = [await _round(prometheus, source, at, pods) for _ in range(rounds)]
        finally:
            await source.close()
    return first.evidence, turns


def series(now: float, pods: int) -> Iterator[Series]:
    """Yield what exporters and kube-state-metrics show of so many pods, ending at `now`."""
    yield from kube_state.history(now, [kube_state.up(begin=-PAST_SECONDS)])
    for number in range(pods // PODS_PER_DEPLOYMENT):
        owners = (replace(one, begin=-PAST_SECONDS) for one in _owners(f"model-{number}"))
        yield from kube_state.history(now, owners)
        names = [f"model-{number}-7b6667bd9-{pod:05}" for pod in range(PODS_PER_DEPLOYMENT)]
        yield from kube_state.history(now, (_pod(name) for name in names))
        yield from history(now, _gpus(number, names))


def _owners(name: str) -> Iterator[Listed]:
    yield kube_state.replicas(PODS_PER_DEPLOYMENT, name)
    for number in range(1 + OLD_REPLICA_SETS):
        owned = f"{name}-7b6667bd9" if number == 0 else f"{name}-{number}"
        count = 0 if number else PODS_PER_DEPLOYMENT
        labels = {"namespace": world.NAMESPACE, "replicaset": owned}
        yield kube_state.link("ReplicaSet", owned, ("Deployment", name))
        yield Listed(metric="kube_replicaset_status_replicas", labels=labels, value=count)


def _pod(name: str) -> KubePod:
    return KubePod(name=name, owner=("ReplicaSet", name[:-6]), begin=-PAST_SECONDS)


def _gpus(number: int, names: list[str]) -> Iterator[Gpu | Up]:
    for index, name in enumerate(names):
        place, slot = divmod(number * PODS_PER_DEPLOYMENT + index, GPUS_PER_NODE)
        node = world.node(place)
        if slot == 0:
            yield Up(instance=node, begin=-PAST_SECONDS)
        yield Gpu(name, 50, namespace=world.NAMESPACE, instance=node, begin=-PAST_SECONDS)


async def _round(
    prometheus: PrometheusServer, source: PrometheusSource, at: float, pods: int
) -> Round:
    found, snapshot = await _spent(prometheus, source.fetch(NEED, at))
    said, evidence = await _spent(
        prometheus, source.kube_state_metrics.evidence(NAMESPACES, at, at)
    )
    check(pods, found, said)
    return Round(snapshot, evidence)


async def _spent(prometheus: PrometheusServer, asking: Awaitable[Answer]) -> tuple[Answer, Spent]:
    before, began = await queries.read(prometheus), time.perf_counter()
    answer = await asking
    seconds = time.perf_counter() - began
    after = await queries.read(prometheus)
    return answer, Spent(seconds, after.cpu_seconds - before.cpu_seconds)


def check(pods: int, found: Observation, said: Evidence | None) -> None:
    """Raise ServerError unless every pod is there, Ready, and shown with its real owner."""
    listed = {} if said is None else said.pods
    right = [
        one
        for (_, name), one in listed.items()
        if one.ready and Owner("Deployment", name.rpartition("-7b")[0]) in one.owners
    ]
    if not pods == len(found.series) == len(listed) == len(right):
        text = f"{len(found.series)} reported, {len(listed)} listed, {len(right)} of them right"
        raise ServerError(f"{pods} pods: {text}")
