"""A cluster for people to look at: made-up workloads in every state, and a real scaler on it.

The evaluator, the history and the HTTP server are the product's. Behind them is a source that
shows what the workloads below do, second by second, on a clock that a test moves.
"""

import asyncio
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from keda_gpu_scaler import errors, trigger, web
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.evidence import Evidence, PodStatement
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Series, Target
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.telemetry.history import History
from tests.support.bench import landed
from tests.support.scripted import Clock, ScriptedAlerts
from tests.support.triggers import access

END = 1_795_345_200.0
"""Sunday, 22 November 2026, 11:00 UTC: when somebody looks."""
STEP = 15.0
POLL = 30.0
NEVER = float("inf")
STARTS_WITHIN_SECONDS = 60
MOMENT_SECONDS = 0.05
"""A call that waits for the next sample waits for so long, and a second of the cluster's time."""
KUBE_STATE = Target("kube-state-metrics", "10.0.1.1:8080")
Load = Callable[[float], float]
"""The percent of a GPU, by the minutes before the end, which are negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPod:
    """One pod; times are minutes before the end."""

    name: str
    load: Load
    gpus: tuple[str, ...]
    begin: float = -600
    ready: float = -599
    end: float = NEVER
    silent: float = NEVER
    """From here on its exporter does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One workload with its trigger."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    pods: tuple[ShownPod, ...] = ()
    workload: str = ""
    demand: float | None = None
    alert: str | None = None


def shown(
    name: str,
    *pods: ShownPod,
    namespace: str = "inference",
    workload: str = "",
    demand: float | None = None,
    alert: str | None = None,
    **metadata: str,
) -> Shown:
    """Return a workload with a usual trigger."""
    scaled_object = ScaledObject(namespace, name)
    given = {"workload": workload or name, "threshold": "70", **metadata}
    spec = trigger.parse(scaled_object, given, access(own_promql=Policy.ALLOW))
    return Shown(
        scaled_object=scaled_object,
        spec=spec,
        pods=pods,
        workload=workload or name,
        demand=demand,
        alert=alert,
    )


def pods(
    name: str,
    load: Load,
    *,
    count: int = 1,
    gpus: int = 1,
    begin: Callable[[int], float] = lambda _number: -600.0,
    **times: float,
) -> Iterator[ShownPod]:
    """Yield the pods of a Deployment, each a little different."""
    for number in range(count):
        letter = "bcdfghjklmnpqrstvwxz"[number % 20]
        began = begin(number)
        yield ShownPod(
            name=f"{name}-7b6667bd9-{letter * 4}{number % 10}",
            load=_shifted(load, 0.13 * number, 3 * (number % 3)),
            gpus=tuple(f"GPU-{hash_of(name) % 9999:04}-{number}{gpu}" for gpu in range(gpus)),
            begin=began,
            **{"ready": began + 1, **times},
        )


def _shifted(load: Load, minutes: float, percent: float) -> Load:
    """Return the load of one pod of several, which are not quite alike."""
    return lambda minute: min(100.0, max(0.0, load(minute + minutes) - percent))


def hash_of(text: str) -> int:
    """Return a number that is the same in each process."""
    return sum(ord(letter) * 31**place for place, letter in enumerate(text[:8]))


def wave(middle: float, height: float, minutes: float) -> Load:
    """Return a load that goes up and down."""
    return lambda minute: middle + height * math.sin(minute / minutes * 2 * math.pi)


def climb(low: float, high: float, begin: float, end: float) -> Load:
    """Return a load that rises between two times."""
    return lambda minute: low + (high - low) * min(1.0, max(0.0, (minute - begin) / (end - begin)))


def fleet() -> list[Shown]:
    """Return ten workloads in every state, as a cluster has them on a busy morning."""
    idle: Load = lambda minute: 84.0 if minute < -70 else 0.0  # noqa: E731 - it reads better here
    return [
        shown("llama-70b", *pods("llama-70b", wave(82, 9, 47), count=4, gpus=2)),
        shown(
            "mistral-7b",
            *pods(
                "mistral-7b",
                climb(38, 88, -55, -6),
                count=3,
                begin=lambda number: (-600.0, -34.0, -16.0)[number],
            ),
        ),
        shown("qwen-coder", *pods("qwen-coder", idle, count=2)),
        shown("phi-mini", *pods("phi-mini", idle, count=1, end=-22.0)),
        shown(
            "embedder",
            *pods("embedder", wave(52, 11, 31), count=2),
            namespace="search",
            demandQuery="sum(router_queue_length)",
            demand=14.0,
        ),
        shown(
            "reranker",
            namespace="search",
            demandQuery="sum(router_queue_length)",
            demand=14.0,
        ),
        shown(
            "whisper",
            *pods("whisper", wave(61, 14, 23), count=2),
            *pods("whisper-b", wave(64, 5, 17), count=1, silent=-9.0),
            namespace="speech",
            workload="whisper",
        ),
        shown("tts", *pods("tts", wave(70, 12, 20), count=2, silent=-12.0), namespace="speech"),
        shown(
            "sdxl",
            *pods("sdxl", wave(95, 4, 9), begin=lambda _: -1.2, ready=9.0),
            namespace="vision",
        ),
        shown("yolo", *pods("yolo", idle, count=1), namespace="vision", alert="ImagesWaiting"),
    ]


def many(count: int) -> list[Shown]:
    """Return as many workloads: two in three busy, one idle."""
    return [
        shown(
            f"model-{number:04}",
            *pods(f"model-{number:04}", wave(70 if number % 3 else 0, 0, 30), count=1),
            namespace=f"team-{number % 20:02}",
        )
        for number in range(count)
    ]


@dataclass(slots=True)
class Cluster:
    """Reads the workloads as a Prometheus with exporters and kube-state-metrics would."""

    workloads: Sequence[Shown]
    clock: Clock
    step_seconds: float = STEP
    lag_seconds: float = 0.0
    name: str = "kube-state-metrics"

    async def synchronize(self) -> None:
        """Learn nothing: the clock is the test's."""

    def now(self) -> float:
        """Return the test's time."""
        return self.clock()

    def instant(self) -> float:
        """Return the newest multiple of the step."""
        return self.clock() // STEP * STEP

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return five minutes of samples."""
        return self._observed(snapshot_query, at, STEP, 300)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """Return the last hour."""
        return self._observed(snapshot_query, at - STEP, 120, 3600)

    async def locate(self, _uuids: Iterable[str], _at: float) -> GpuReports:
        """Return that nobody shows them."""
        return GpuReports()

    async def evidence(self, namespaces: Collection[str], at: float, _now: float) -> Evidence:
        """Return what the cluster lists."""
        there = [one for one in self.workloads if one.scaled_object.namespace in namespaces]
        listed = {
            (one.scaled_object.namespace, pod.name): self._stated(one, pod, at)
            for one in there
            for pod in one.pods
            if _minute(pod.begin) <= at < _minute(pod.end)
        }
        wanted = {
            (one.scaled_object.namespace, Owner("Deployment", one.workload)): sum(
                _minute(pod.begin) <= at < _minute(pod.end) for pod in one.pods
            )
            for one in there
        }
        empty = frozenset(owner for owner, count in wanted.items() if not count)
        return Evidence(
            listed,
            empty,
            frozenset(namespaces),
            {KUBE_STATE: at},
            {KUBE_STATE: 30.0},
            wanted=wanted,
        )

    async def number(self, text: str) -> float | None:
        """Return what a router counts, or repeat what is asked, as servers do in their errors."""
        for one in self.workloads:
            if one.spec.demand is not None and one.spec.demand.text == text:
                if one.demand is None:
                    raise errors.SourceRefusedError(f"HTTP 400, bad_data: {text}")
                return one.demand
        return None

    def _stated(self, one: Shown, pod: ShownPod, at: float) -> PodStatement:
        is_ready = at >= _minute(pod.ready)
        return PodStatement(
            owners=frozenset(
                {
                    Owner("ReplicaSet", f"{one.workload}-7b6667bd9"),
                    Owner("Deployment", one.workload),
                }
            ),
            created_at=_minute(pod.begin),
            ready=is_ready,
            ready_at=_minute(pod.ready) if is_ready else None,
            asks_gpu=True,
        )

    def _observed(
        self, snapshot_query: SnapshotQuery, at: float, step: float, span: float
    ) -> Observation:
        instants = tuple(at - step * back for back in reversed(range(int(span // step))))
        found: list[Series] = []
        good: dict[Target, dict[float, float]] = {}
        for number, one in enumerate(self.workloads):
            namespace = one.scaled_object.namespace
            for place, pod in enumerate(one.pods):
                node = Target("dcgm", f"10.{number // 250}.{number % 250}.{place}:9400")
                alive = [t for t in instants if t < _minute(pod.silent)]
                good[node] = {t: t for t in alive}
                if namespace in snapshot_query.namespaces:
                    found += _series(namespace, pod, node, alive)
        return Observation(
            instants=instants,
            series=tuple(found),
            good_scrapes={node: times for node, times in good.items() if times},
            absence_known=True,
        )


def _series(
    namespace: str, pod: ShownPod, node: Target, instants: Sequence[float]
) -> Iterator[Series]:
    times = tuple(t for t in instants if _minute(pod.begin) <= t < _minute(pod.end))
    for number, gpu in enumerate(pod.gpus if times else ()):
        minutes = [(t - END) / 60 for t in times]
        values = tuple(round(max(0.0, pod.load(minute) - 2.5 * number), 1) for minute in minutes)
        yield Series(
            namespace,
            pod.name,
            gpu,
            node,
            present=times,
            times=times,
            values=values,
            averaged=False,
        )


def _minute(minutes: float) -> float:
    return END + 60 * minutes


@dataclass(slots=True)
class Alarms(ScriptedAlerts):
    """The alerts that the workloads say."""

    workloads: Sequence[Shown] = ()

    def firing(self, scaled_object: ScaledObject) -> str | None:
        """Return what fires for one."""
        found = (one.alert for one in self.workloads if one.scaled_object == scaled_object)
        return next(found, None)


@dataclass(slots=True)
class Showroom:
    """A scaler on a cluster, asked as KEDA asks since some minutes before the end."""

    workloads: Sequence[Shown]
    minutes: float = 0.0
    clock: Clock = field(default_factory=lambda: Clock(END))
    history: History = field(init=False)
    evaluator: Evaluator = field(init=False)

    async def open(self) -> web.Shown:
        """Let the minutes pass, and return what people are shown."""
        self.clock.seconds = END - 60 * self.minutes
        cluster = Cluster(self.workloads, self.clock)
        self.history = History(self.clock)
        self.evaluator = Evaluator(
            {"default": Source(cluster, (cluster,), cluster, exporters=tuple)},
            self.history,
            alerts=Alarms(workloads=self.workloads),
            clock=self.clock,
        )
        while True:
            await self.poll()
            if self.clock.seconds >= END:
                return web.Shown(self.evaluator, self.history, clock=self.clock)
            self.clock.seconds += POLL

    async def poll(self) -> None:
        """Ask about all triggers at once, and again for what came while they were asked."""
        for _ in range(2):
            asked = [
                asyncio.ensure_future(self.evaluator.evaluate(one.scaled_object, one.spec, None))
                for one in self.workloads
            ]
            while left := [one for one in asked if not one.done()]:
                await asyncio.wait(left, timeout=MOMENT_SECONDS)
                self.clock.seconds += 1
            await landed()


class Address(NamedTuple):
    """Where a showroom is open."""

    url: str
    loop: asyncio.AbstractEventLoop


@contextmanager
def opened(workloads: Sequence[Shown], minutes: float = 0.0) -> Iterator[Address]:
    """Serve a showroom from a thread of its own, for a browser that this thread drives."""
    opening: Future[Address] = Future()
    stop = asyncio.Event()

    async def serve() -> None:
        room = Showroom(workloads, minutes)
        app = web.create_app(CollectorRegistry(), lambda: True, shown=await room.open())
        server = web.HttpServer(app, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{await server.start()}"
        opening.set_result(Address(url, asyncio.get_running_loop()))
        await stop.wait()
        await server.stop()
        await room.evaluator.close()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            opening.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    address = opening.result(STARTS_WITHIN_SECONDS)
    try:
        yield address
    finally:
        address.loop.call_soon_threadsafe(stop.set)
        thread.join()
