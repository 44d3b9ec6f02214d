"""Made-up workloads, decided about by the product, as the status page shows them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import cast

from keda_gpu_scaler import web
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.record.build import Answered
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.history import History
from testbed import showroom
from testbed.clocks import Clock
from testbed.showroom import Room
from testbed.triggers import evaluated
from tests.support.snapshots import NOW, pod, snapshot

_SILENT_SINCE = NOW - 600


def answered(
    name: str, *pods: Pod, namespace: str = "ml", alert: str | None = None, **metadata: str
) -> Answered:
    """Return what is answered of a workload of this name; a demand of its own is not known."""
    scaled_object = ScaledObject(namespace, name)
    spec = showroom.read(scaled_object, **metadata)
    return showroom.answered(scaled_object, spec, snapshot(*pods), alert=alert)[0]


def pods(workload: str, *loads: float, silent: bool = False) -> list[Pod]:
    """Return the pods of a Deployment with these loads; silent ones show none any more."""
    last_seen = _SILENT_SINCE if silent else NOW
    names = (f"{workload}-7b6667bd9-{letter * 5}" for letter in "bcdfg")
    return [pod(name, load, last_seen=last_seen) for name, load in zip(names, loads, strict=False)]


def fleet() -> list[Answered]:
    """Return workloads that are held, active and idle, in two namespaces."""
    return [
        answered("llama-70b", *pods("llama-70b", 88, 75, 93), namespace="inference"),
        answered("qwen-coder", *pods("qwen-coder", 0, 0), namespace="inference"),
        answered("tts", *pods("tts", 70, silent=True), namespace="speech"),
        answered("yolo", *pods("yolo", 0), namespace="vision", alert="ImagesWaiting"),
    ]


def room(answers: Sequence[Answered]) -> web.Shown:
    """Return what people are shown of workloads that have been so for ten minutes."""
    clock = Clock(NOW - 600)
    history = History(clock)
    for each in answers:
        history(evaluated(each.decision, each.spec, each.scaled_object))
    clock.now = NOW
    return web.Shown(cast("Evaluator", Room(answers)), history, clock=lambda: NOW)


def opened(answers: Sequence[Answered]) -> AbstractContextManager[str]:
    return showroom.opened(room(answers))
