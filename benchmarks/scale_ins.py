"""Which pods a scale-in takes, with `deletion-cost` and without it: `make bench-deletion-cost`.

Pairs of Deployments get the same requests on the real KEDA, HPA and ReplicaSet controller: for one
of a pair the command writes costs. A few have a load that never changes. All times are those of
production over `SPEED`, with the HPA's sync of the test cluster as the measure: 2 s for 15 s.

The judge knows the pods by a watch, and the loads by what the exporter answered at each scrape. It
asks nothing of the scaler, which reads its samples from a Prometheus, or from the exporter itself.
"""

import asyncio
import bisect
import contextlib
import heapq
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import lightkube
import typer
from lightkube import codecs
from lightkube.resources.core_v1 import Pod
from rich.console import Console
from rich.table import Table
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keda_gpu_scaler.workbench.world import web
from testbed import programs
from testbed.cluster import manifests
from testbed.cluster.cluster import Cluster
from testbed.cluster.control_plane import HPA_SYNC_SECONDS
from testbed.cluster.generation import CLUSTER
from testbed.cluster.watching import following
from testbed.processes import Program, free_port, until
from testbed.prometheus import PrometheusServer

SPEED = 15 / HPA_SYNC_SECONDS
COST = "controller.kubernetes.io/pod-deletion-cost"
MARK = "keda-gpu-scaler/deletion-cost"
WITH, WITHOUT = "with-costs", "without"
"""The namespaces."""


class SampleSource(StrEnum):
    """Where the scaler and the command read samples."""

    PROMETHEUS = "prometheus"
    EXPORTERS = "exporters"


SHORTEST_SECONDS, LONGEST_SECONDS = 10 / SPEED, 300 / SPEED
"""Of a request, equally likely in between."""
AT_ONCE = 4
"""Requests that make a GPU busy; a pod takes no more."""
BUSY, QUIET = (15, 22), (2, 7)
"""Requests under way, on average, in the two parts of a workload's day."""
BUSY_SECONDS, QUIET_SECONDS = (300 / SPEED, 480 / SPEED), (480 / SPEED, 780 / SPEED)
GRACE_SECONDS = 30 / SPEED
"""terminationGracePeriodSeconds: what is left of a request then is cut."""
STABILIZATION_SECONDS, WINDOW_SECONDS = 300 / SPEED, 60 / SPEED
SCRAPE_SECONDS, COLLECTION_SECONDS, POLL_SECONDS = 2, 4, 4
"""15 s, 30 s and 30 s."""
AHEAD_SECONDS = 30 / SPEED
DIRECT_SECONDS = 5 / SPEED
"""A direct source's own default interval."""
SAMPLES_AGE_SECONDS = AHEAD_SECONDS + 45 / SPEED
"""How old the samples at hand can be when a pod goes: those of the default settings, half a minute
before."""
STEADY_PERCENT = 70.0
"""Of the pods of workloads whose load never changes: the threshold."""
LEAST_BUSY, FEWER_CUT, PATCHES = 0.95, 0.8, 2.0
"""The goals."""
SETTLED_SECONDS = 3.0
"""After which the watch has shown what a command did at its end."""
LONGEST_RUN = 2400.0
"""Bounds a run in which nothing scales in."""
_WITH_DIVIDED_LAG = f"""
from keda_gpu_scaler import cli
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
PrometheusSource.settled_seconds /= {SPEED}
cli.main()
"""
"""Starts a command and divides by `SPEED` also the time that a Prometheus is given for late
samples."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request, of a session that stays on a pod while that exists."""

    at: float
    seconds: float
    session: float


def arrivals(seed: int) -> Iterator[Arrival]:
    """Yield the requests of a workload for ever, at random times from a seed, busy and quiet."""
    chance = random.Random(seed)  # noqa: S311 - it keeps no secret
    now, mean = 0.0, (SHORTEST_SECONDS + LONGEST_SECONDS) / 2
    while True:
        for requests, lasting in ((BUSY, BUSY_SECONDS), (QUIET, QUIET_SECONDS)):
            rate, end = chance.uniform(*requests) / mean, now + chance.uniform(*lasting)
            while (now := now + chance.expovariate(rate)) < end:
                seconds = chance.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)
                yield Arrival(now, seconds, chance.random())
            now = end


@dataclass(slots=True)
class SimulatedServer:
    """One pod, with the ends of its requests, the earliest first."""

    name: str
    rank: float
    """Decides which share of the sessions it gets."""
    ends: list[float] = field(default_factory=list)
    is_ready: bool = False
    is_ending: bool = False
    percents: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=120))
    """What the exporter showed of it, and when."""
    annotations: tuple[str | None, str | None] = None, None

    def running(self, now: float) -> int:
        """Return how many requests it has; those that have ended by now are dropped."""
        while self.ends and self.ends[0] <= now:
            heapq.heappop(self.ends)
        return len(self.ends)

    def to_cut(self, now: float) -> int:
        return sum(end > now + GRACE_SECONDS for end in self.ends)

    def mean(self, at: float) -> float | None:
        """Return its load by the samples of a window up to some time; None: there is none."""
        shown = [load for when, load in self.percents if at - WINDOW_SECONDS < when <= at]
        return statistics.fmean(shown) if shown else None


@dataclass(slots=True)
class SimulatedWorkload:
    """A Deployment with its requests, and what became of its pods."""

    namespace: str
    name: str
    requests: Iterator[Arrival]
    chance: random.Random
    pods: dict[str, SimulatedServer] = field(default_factory=dict)
    removed_at: list[float] = field(default_factory=list)
    """When its scale-ins began; the ReplicaSet controller deletes all pods of one together."""
    removed: list[tuple[float, str, list[SimulatedServer]]] = field(default_factory=list)
    """When which pod went, and those that were Ready then, itself included."""
    cut: int = 0
    in_time: int = 0
    """How many of the pods that were removed had a cost of the command's."""
    cuts: dict[float, list[int]] = field(default_factory=dict)
    """How many requests each pod would lose that was Ready when a scale-in began."""
    patches: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By the pod, and how many scale-ins there were before."""
    is_steady: bool = False
    waiting: deque[Arrival] = field(default_factory=deque)
    upcoming: Arrival | None = None

    def advance(self, now: float) -> None:
        """Let requests arrive until now; they wait while every pod has all it can take."""
        while self.upcoming is None or self.upcoming.at <= now:
            if self.upcoming is not None:
                self.waiting.append(self.upcoming)
            self.upcoming = next(self.requests)
        while self.waiting and self._take(self.waiting[0], now):
            self.waiting.popleft()

    def _take(self, request: Arrival, now: float) -> bool:
        """Give a request to the pod of its session, or, if that is full, to the least busy one.

        Sessions, and what is in a cache, are spread unevenly: the pod of rank n has a share of 1/n.
        """
        ready = [pod for pod in self.pods.values() if pod.is_ready and not pod.is_ending]
        ready.sort(key=lambda pod: pod.rank)
        if not ready:
            return False
        shares = list(itertools.accumulate(1 / rank for rank in range(1, len(ready) + 1)))
        pod = ready[bisect.bisect_left(shares, request.session * shares[-1])]
        if pod.running(now) == AT_ONCE:
            pod = min(ready, key=lambda pod: (pod.running(now), pod.rank))
        if pod.running(now) == AT_ONCE:
            return False
        heapq.heappush(pod.ends, now + request.seconds)
        return True

    def see(self, kind: str, pod: Pod, now: float) -> None:
        """Take a pod as a watch shows it."""
        if pod.metadata is None or pod.metadata.name is None:
            return
        name, notes = pod.metadata.name, pod.metadata.annotations or {}
        if name not in self.pods:
            if kind == "DELETED":
                return
            self.pods[name] = SimulatedServer(name, self.chance.random())
        known = self.pods[name]
        annotations = notes.get(COST), notes.get(MARK)
        if annotations != known.annotations:
            known.annotations = annotations
            self.patches[name, len(self.removed_at)] += 1
        if not known.is_ending and (kind == "DELETED" or pod.metadata.deletionTimestamp):
            self._lose(known, now)
        conditions = (pod.status and pod.status.conditions) or ()
        known.is_ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
        if kind == "DELETED":
            del self.pods[name]

    def _lose(self, pod: SimulatedServer, now: float) -> None:
        if not self.removed_at or now - self.removed_at[-1] > HPA_SYNC_SECONDS / 2:
            self.removed_at.append(now)
            self.cuts[now] = [
                each.to_cut(now)
                for each in self.pods.values()
                if each.is_ready and not each.is_ending
            ]
        began = self.removed_at[-1]
        same_step = {name for at, name, _ in self.removed if at == began}
        there = [
            each
            for each in self.pods.values()
            if each.is_ready and (not each.is_ending or each.name in same_step)
        ]
        pod.is_ending = True
        self.cut += pod.to_cut(now)
        if pod.is_ready:
            self.in_time += pod.annotations[1] is not None
            self.removed.append((began, pod.name, there))


def least_busy(workload: SimulatedWorkload) -> list[bool]:
    """Tell of each pod that was removed whether it was among the least busy by the samples at hand.

    It was if at some instant of these fewer pods than were removed had a lower load.
    """
    by_step = defaultdict[float, dict[str, list[SimulatedServer]]](dict)
    for began, name, ready in workload.removed:
        by_step[began][name] = ready
    told: list[bool] = []
    for began, gone in by_step.items():
        there = {pod.name: pod for ready in gone.values() for pod in ready}
        instants = {
            when
            for pod in there.values()
            for when, _ in pod.percents
            if began - SAMPLES_AGE_SECONDS <= when <= began
        }
        told += [any(_is_among(there, name, len(gone), at) for at in instants) for name in gone]
    return told


def _is_among(there: Mapping[str, SimulatedServer], name: str, count: int, at: float) -> bool:
    own = there[name].mean(at)
    loads = [load for pod in there.values() if (load := pod.mean(at)) is not None]
    return own is not None and sum(load < own for load in loads) < count


@dataclass(slots=True)
class Stage:
    """All workloads, and the exporter of their GPUs."""

    workloads: list[SimulatedWorkload]
    began: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> float:
        return time.monotonic() - self.began

    @property
    def marked(self) -> int:
        """How many pods have an annotation of the command's, or a cost."""
        pods = [pod for each in self.workloads for pod in each.pods.values() if not pod.is_ending]
        return sum(any(pod.annotations) for pod in pods)

    def scale_ins(self, namespace: str) -> int:
        return sum(len(each.removed_at) for each in self.workloads if each.namespace == namespace)

    async def live(self) -> None:
        while True:
            for workload in self.workloads:
                workload.advance(self.now)
            await asyncio.sleep(0.05)

    async def watch(self, client: lightkube.AsyncClient, namespace: str) -> None:
        by_name = {each.name: each for each in self.workloads if each.namespace == namespace}
        async for kind, pod in client.watch(Pod, namespace=namespace):
            name = ((pod.metadata and pod.metadata.labels) or {}).get("app", "")
            if name in by_name:
                by_name[name].see(kind, pod, self.now)

    def page(self) -> str:
        """Return the exporter's page, and remember what it shows."""
        lines, now = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"], self.now
        for workload in self.workloads:
            for pod in workload.pods.values():
                percent = 100 * pod.running(now) / AT_ONCE
                if workload.is_steady:
                    percent = STEADY_PERCENT
                pod.percents.append((now, percent))
                lines.append(
                    f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-{pod.name}",container="model",'
                    f'namespace="{workload.namespace}",pod="{pod.name}"}} {percent:g}\n'
                )
        return "".join(lines)


def main(
    *,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of workloads with requests.")] = 16,
    scale_ins: Annotated[int, typer.Option(min=1, help="Scale-ins to wait for.")] = 200,
    kills: Annotated[int, typer.Option(min=1, help="How often to kill the command.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the requests.")] = 1,
    samples: Annotated[
        SampleSource,
        typer.Option(
            help="A Prometheus, which scrapes each 15 s, or the exporters themselves, each 5 s."
        ),
    ] = SampleSource.PROMETHEUS,
) -> None:
    """Measure it, print one table, and end with 1 if a goal is missed."""
    programs.build(CLUSTER)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        cluster = Cluster.create(directory)
        cluster.start()
        try:
            rows = asyncio.run(_measure(cluster, directory, pairs, scale_ins, kills, seed, samples))
        finally:
            cluster.stop()
    table = Table("what", "measured", "goal", title=f"Scale-ins, times divided by {SPEED:g}")
    for what, measured, goal, _ in rows:
        table.add_row(what, measured, goal)
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    if not all(is_met for *_, is_met in rows):
        raise SystemExit(1)


Row = tuple[str, str, str, bool]


async def _measure(  # noqa: PLR0913, PLR0917 - the options of the command
    cluster: Cluster,
    directory: Path,
    pairs: int,
    scale_ins: int,
    kills: int,
    seed: int,
    samples: SampleSource,
) -> Sequence[Row]:
    stage = Stage([])
    for number, namespace in itertools.product(range(pairs + 2), (WITH, WITHOUT)):
        workload = SimulatedWorkload(
            namespace,
            f"model-{number}",
            arrivals(seed + number),
            random.Random(seed + number),  # noqa: S311
            is_steady=number >= pairs,
        )
        stage.workloads.append(workload)
    async with _started(cluster, directory, stage, samples) as command:
        await _wait(stage, lambda: stage.scale_ins(WITH) >= scale_ins, f"{scale_ins} scale-ins")
        rows = _rows(stage)
        left = 0
        chance = random.Random(seed)  # noqa: S311
        for _ in range(kills):
            await _wait(stage, lambda: stage.marked > 0, "costs are written")
            await asyncio.sleep(chance.random() / 10)
            command.kill()
            command.start()
            with contextlib.suppress(TimeoutError):
                await _wait(stage, lambda: stage.marked == 0, "all is cleaned up", 60)
            left += stage.marked
        await _wait(stage, lambda: stage.marked > 0, "costs are written")
        await asyncio.to_thread(command.stop)
        await asyncio.sleep(SETTLED_SECONDS)
        left_at_end = stage.marked
    goal = "0"
    return [
        *rows,
        (f"annotations left after {kills} kills, and a start", str(left), goal, not left),
        ("annotations left after SIGTERM", str(left_at_end), goal, not left_at_end),
    ]


async def _wait(
    stage: Stage, condition: Callable[[], bool], claim: str, within_seconds: float = LONGEST_RUN
) -> None:
    async def holds() -> bool:
        return condition()

    await until(holds, within_seconds, claim)
    typer.echo(f"{stage.now:.0f} s: {claim}", err=True)


def fewest_cut(workload: SimulatedWorkload) -> int:
    """Return how many requests its scale-ins would have cut, had each taken the best pods."""
    removed = Counter(began for began, _, _ in workload.removed)
    return sum(sum(sorted(workload.cuts[began])[:count]) for began, count in removed.items())


def _rows(stage: Stage) -> list[Row]:
    chosen: Mapping[str, list[bool]] = {
        namespace: [
            told
            for each in stage.workloads
            if each.namespace == namespace
            for told in least_busy(each)
        ]
        for namespace in (WITH, WITHOUT)
    }
    cut = {
        namespace: sum(each.cut for each in stage.workloads if each.namespace == namespace)
        / max(1, len(chosen[namespace]))
        for namespace in (WITH, WITHOUT)
    }
    in_time = sum(each.in_time for each in stage.workloads) / max(1, len(chosen[WITH]))
    best = {
        namespace: sum(fewest_cut(each) for each in stage.workloads if each.namespace == namespace)
        / max(1, len(chosen[namespace]))
        for namespace in (WITH, WITHOUT)
    }
    spared = 1 - (cut[WITH] - best[WITH]) / max(1e-9, cut[WITHOUT] - best[WITHOUT])
    moving = [each for each in stage.workloads if each.namespace == WITH and not each.is_steady]
    steady = [each for each in stage.workloads if each.is_steady]
    by_pod = [count for each in moving for count in each.patches.values()]
    most = max(by_pod, default=0)
    pods = sum(len(there) for each in moving for there in _at_scale_ins(each))
    patches = sum(by_pod) / max(1, pods)
    at_rest = sum(sum(each.patches.values()) for each in steady)
    share = {name: sum(told) / max(1, len(told)) for name, told in chosen.items()}
    fewer = 1 - cut[WITH] / cut[WITHOUT] if cut[WITHOUT] else 0.0
    return [
        ("scale-ins with costs", str(stage.scale_ins(WITH)), "", True),
        ("scale-ins without", str(stage.scale_ins(WITHOUT)), "", True),
        ("pods removed with costs", str(len(chosen[WITH])), "", True),
        ("pods removed without", str(len(chosen[WITHOUT])), "", True),
        (
            "of these the least busy, with costs",
            f"{share[WITH]:.1%}",
            f"≥ {LEAST_BUSY:.0%}",
            share[WITH] >= LEAST_BUSY,
        ),
        ("of these with a cost in time", f"{in_time:.1%}", "", True),
        ("of these the least busy, without", f"{share[WITHOUT]:.1%}", "", True),
        ("requests cut for each pod removed, with costs", f"{cut[WITH]:.3f}", "", True),
        ("requests cut for each pod removed, without", f"{cut[WITHOUT]:.3f}", "", True),
        ("the fewest that any choice would have cut, with costs", f"{best[WITH]:.3f}", "", True),
        ("the same without", f"{best[WITHOUT]:.3f}", "", True),
        ("fewer of those that a choice can spare", f"{spared:.0%}", "", True),
        ("fewer requests cut", f"{fewer:.0%}", f"≥ {FEWER_CUT:.0%}", fewer >= FEWER_CUT),
        (
            "patches of a pod for each scale-in, on average",
            f"{patches:.2f}",
            f"≤ {PATCHES:g}",
            patches <= PATCHES,
        ),
        ("the most between two scale-ins", str(most), "", True),
        ("patches at a load that stays", str(at_rest), "0", not at_rest),
    ]


def _at_scale_ins(workload: SimulatedWorkload) -> Iterator[set[str]]:
    """Yield the pods that were there at each scale-in."""
    there = defaultdict[float, set[str]](set)
    for began, _, pods in workload.removed:
        there[began] |= {pod.name for pod in pods}
    yield from there.values()


@contextlib.asynccontextmanager
async def _started(
    cluster: Cluster, directory: Path, stage: Stage, samples: SampleSource
) -> AsyncIterator[Program]:
    """Start everything around the stage, and yield the command."""

    async def answer(_request: Request) -> Response:
        return Response(stage.page(), media_type="text/plain; version=0.0.4")

    configuration = lightkube.KubeConfig.from_file(cluster.kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="bench", trust_env=False)
    exporter = web.server(Starlette(routes=[Route("/metrics", answer)]))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        port = await exporter.start()
        stack.push_async_callback(exporter.stop)
        scraped = {
            "job_name": "dcgm-exporter",
            "scrape_interval": f"{SCRAPE_SECONDS}s",
            "scrape_timeout": "1s",
            "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        }
        prometheus = PrometheusServer(directory, [scraped], life_seconds=LONGEST_RUN)
        await stack.enter_async_context(prometheus)
        sources = {
            SampleSource.PROMETHEUS: {
                "PROMETHEUS_URL": prometheus.url,
                "PROMETHEUS_STEP": f"{SCRAPE_SECONDS}s",
                "PROMETHEUS_COLLECTION": f"{COLLECTION_SECONDS}s",
            },
            SampleSource.EXPORTERS: {
                "SCRAPE_TARGETS": f"http://127.0.0.1:{port}/metrics",
                "SCRAPE_INTERVAL": f"{DIRECT_SECONDS * 1000:.0f}ms",
                "SCRAPE_COLLECTION": f"{COLLECTION_SECONDS}s",
            },
        }
        address = f"127.0.0.1:{free_port()}"
        http = f"127.0.0.1:{free_port()}"
        scaler = _command(directory, cluster, sources[samples], http, address, "serve")
        stack.callback(scaler.stop)
        await scaler.start_serving(f"http://{http}/readyz", 60)
        for namespace in (WITH, WITHOUT):
            await client.create(codecs.from_dict(manifests.namespace(namespace)))
            for number in range(3):
                node = manifests.node(f"{namespace}-{number}", namespace, gpus=100)
                await client.create(codecs.from_dict(node))
        for each in stage.workloads:
            await _deploy(client, each, address)
        http = f"127.0.0.1:{free_port()}"
        words = "deletion-cost", "--namespace", WITH, "--ahead", f"{AHEAD_SECONDS:g}s"
        command = _command(directory, cluster, sources[samples], http, "127.0.0.1:0", *words)
        stack.callback(command.kill)
        watches = [lambda place=place: stage.watch(client, place) for place in (WITH, WITHOUT)]
        await stack.enter_async_context(following([*watches, stage.live]))
        await command.start_serving(f"http://{http}/readyz", 60)
        yield command


def _command(
    directory: Path,
    cluster: Cluster,
    source: Mapping[str, str],
    http: str,
    grpc: str,
    *words: str,
) -> Program:
    settings = {**source, "GRPC_ADDRESS": grpc, "HTTP_ADDRESS": http, "KUBERNETES": "true"}
    environment = {f"KEDA_GPU_SCALER_{name}": value for name, value in settings.items()}
    return Program(
        words[0],
        [sys.executable, "-c", _WITH_DIVIDED_LAG, *words],
        directory / f"{words[0]}.log",
        {**environment, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(programs.ROOT)},
    )


async def _deploy(client: lightkube.AsyncClient, workload: SimulatedWorkload, address: str) -> None:
    where = workload.namespace, workload.name
    window = f"{WINDOW_SECONDS:g}s"
    metadata = {
        "scalerAddress": address,
        "workload": workload.name,
        "threshold": "70",
        "window": window,
        "warmup": window,
        "activationWindow": window,
    }
    drain = {"e2e/drain": f"{GRACE_SECONDS:g}s"}
    objects = (
        manifests.workload("Deployment", *where, replicas=6, gpus=1, annotations=drain),
        manifests.scaled_object(
            *where,
            [{"type": "external", "metadata": metadata}],
            min_replicas=1,
            max_replicas=12,
            polling_seconds=POLL_SECONDS,
            cooldown_seconds=int(STABILIZATION_SECONDS),
            stabilization_seconds=int(STABILIZATION_SECONDS),
        ),
    )
    for each in objects:
        await client.create(codecs.from_dict(each))


if __name__ == "__main__":
    typer.run(main)
