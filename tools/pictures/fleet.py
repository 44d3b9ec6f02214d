"""Made-up workloads in every state, for people to look at, and what the product makes of them.

Decisions, records, history and the HTTP server are the product's. The pods below have a load at
each minute, and evidence of a kube-state-metrics that lists them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

from keda_gpu_scaler import web
from keda_gpu_scaler.decision.summary import recommended_replicas, summarized
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.record.build import Answered
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence, PodStatus, Readiness
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, GpuSamples, NamespaceSnapshot, Pod
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import History
from testbed import showroom
from testbed.clocks import Clock
from testbed.showroom import Room

END = 1_795_345_200.0
"""Sunday, 22 November 2026, 11:00 UTC: when somebody looks."""
IDLE_FROM = -70
STEP, POLL, WINDOW = 15.0, 30.0, 300.0
NEVER = float("inf")
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


@dataclass(frozen=True, slots=True)
class Shown:
    """One workload with its trigger."""

    scaled_object: ScaledObject
    spec: TriggerSpec
    pods: tuple[ShownPod, ...]
    workload: str
    demand: float | None
    alert: str | None

    def view(self, now: float) -> NamespaceSnapshot:
        """Return its pods as they are at a time."""
        owner = Owner("Deployment", self.workload)
        listed = [pod for pod in self.pods if _time(pod.begin) <= now < _time(pod.end)]
        evidence = NamespaceEvidence(
            scraped_at=now,
            absence_known=True,
            without_pods=frozenset() if listed else frozenset({owner}),
            wanted={owner: len(listed)},
        )
        pods = {pod.name: _pod(pod, owner, now) for pod in listed}
        names = tuple(sorted(pods))
        return NamespaceSnapshot(now, names, pods, absence_known=True, evidence=evidence)

    def answered(self, now: float) -> tuple[Answered, str | None]:
        """Return what is answered at a time, and which signal says active."""
        view = self.view(now)
        return showroom.answered(
            self.scaled_object, self.spec, view, alert=self.alert, demand=self.demand
        )

    def evaluated(self, now: float) -> facts.Evaluated:
        answered, signal = self.answered(now)
        spec, decided = self.spec, answered.decision
        recommended = recommended_replicas(spec, decided, answered.demand)
        told = summarized(self.scaled_object, spec, decided, recommended, signal)
        return facts.Evaluated(self.scaled_object, spec, decided, told, 1.0, "default")


def _pod(shown: ShownPod, owner: Owner, now: float) -> Pod:
    """Return a pod with five minutes of samples, if its exporter answers."""
    begin, silent = _time(shown.begin), _time(shown.silent)
    last = min(now, silent)
    instants = [last - STEP * back for back in reversed(range(int(WINDOW / STEP)))]
    times = tuple(at for at in instants if at >= begin)
    is_ready = now >= _time(shown.ready)
    return Pod(
        name=shown.name,
        gpus=tuple(
            GpuSamples(gpu, times, tuple(_sample(shown, number, at) for at in times))
            for number, gpu in enumerate(shown.gpus)
        ),
        first_seen=begin,
        last_seen=last,
        sampled_at=last,
        scrape_interval_seconds=STEP,
        status=PodStatus(
            owners=frozenset({owner}),
            created_at=begin,
            readiness=Readiness.EVER if is_ready else Readiness.NEVER,
            ready_since=_time(shown.ready) if is_ready else NEVER_SEEN,
            ready=is_ready,
            asks_gpu=True,
            alive_at=now,
            listed_at=now,
        ),
    )


def _sample(shown: ShownPod, number: int, at: float) -> float:
    """Return the load of one of its GPUs, which are not quite alike."""
    return round(max(0.0, shown.load((at - END) / 60) - 2.5 * number), 1)


def _time(minutes: float) -> float:
    return END + 60 * minutes


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
    spec = showroom.read(scaled_object, workload=workload or name, **metadata)
    return Shown(scaled_object, spec, pods, workload or name, demand, alert)


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
            gpus=tuple(f"GPU-{name}-{number}{gpu}" for gpu in range(gpus)),
            begin=began,
            **{"ready": began + 1, **times},
        )


def _shifted(load: Load, minutes: float, percent: float) -> Load:
    """Return the load of one pod of several, which are not quite alike."""
    return lambda minute: min(100.0, max(0.0, load(minute + minutes) - percent))


def wave(middle: float, height: float, minutes: float) -> Load:
    return lambda minute: middle + height * math.sin(minute / minutes * 2 * math.pi)


def climb(low: float, high: float, begin: float, end: float) -> Load:
    """Return a load that rises between two times."""
    return lambda minute: low + (high - low) * min(1.0, max(0.0, (minute - begin) / (end - begin)))


def fleet() -> list[Shown]:
    """Return ten workloads in every state, as a cluster has them on a busy morning."""
    idle: Load = lambda minute: 84.0 if minute < IDLE_FROM else 0.0  # noqa: E731 - it reads better here
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


def room(workloads: Sequence[Shown], minutes: float = 0.0) -> web.Shown:
    """Return what people are shown of workloads that were polled for some minutes."""
    clock = Clock(END - 60 * minutes)
    history = History(clock)
    while clock.now <= END:
        for shown in workloads:
            history(shown.evaluated(clock.now))
        clock.now += POLL
    told = sorted(
        (shown.evaluated(END).summary for shown in workloads),
        key=lambda summary: summary.scaled_object,
    )
    known = Room([shown.answered(END)[0] for shown in workloads], told)
    return web.Shown(cast("Evaluator", known), history, clock=lambda: END)


def opened(workloads: Sequence[Shown], minutes: float = 0.0) -> AbstractContextManager[str]:
    return showroom.opened(room(workloads, minutes))
