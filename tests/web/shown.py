"""Made-up workloads, decided about by the product, as the status page shows them."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import cast

from anyio.from_thread import start_blocking_portal
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import trigger, web
from keda_gpu_scaler.decision import activation
from keda_gpu_scaler.decision.decision import Context, State, decide
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.record import build
from keda_gpu_scaler.record.build import Answered
from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.history import History
from testbed.clocks import Clock
from testbed.triggers import access
from tests.support.snapshots import NOW, pod, snapshot

_SILENT_SINCE = NOW - 600


def answered(
    name: str, *pods: Pod, namespace: str = "ml", alert: str | None = None, **metadata: str
) -> Answered:
    """Return what is answered of a workload of this name; a demand of its own is not known."""
    scaled_object = ScaledObject(namespace, name)
    given = {"workload": name, "threshold": "70", **metadata}
    given = {key: text for key, text in given.items() if text}
    spec = trigger.parse(scaled_object, given, access(own_promql=Policy.ALLOW))
    view = snapshot(*pods)
    decided = decide(spec, view, Context(NOW, remembered=State.MEASURED))
    decided = activation.before_demand(spec, decided, None, alert)
    demand = None
    if spec.demand is not None:
        # A server repeats in its errors what it was asked.
        demand = Demand(None, f"HTTP 400, bad_data: {spec.demand.text}")
        decided = activation.with_demand(spec, decided, demand)
    return Answered(
        scaled_object=scaled_object,
        spec=spec,
        decision=decided,
        now=NOW,
        view=view,
        source="default",
        alert=alert,
        takes_alerts=True,
        demand=demand,
    )


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


@dataclass
class Room:
    """What an evaluator shows of these."""

    answers: Sequence[Answered]
    told: Sequence[Summary] | None = None
    """What a list shows; None: one for each answer."""
    made: Sequence[Record] | None = None
    """What is shown of any object; None: its own answers."""
    step_seconds: float = 15.0

    def summaries(self, namespace: str | None) -> list[Summary]:
        if self.told is not None:
            return list(self.told)
        return [
            build.summary(each.scaled_object, each.spec, each.decision, 1.5)
            for each in self.answers
            if namespace in {None, each.scaled_object.namespace}
        ]

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        if self.made is not None:
            return list(self.made)
        return [build.record(each) for each in self.answers if each.scaled_object == scaled_object]


def room(answers: Sequence[Answered]) -> web.Shown:
    """Return what people are shown of workloads that have been so for ten minutes."""
    clock = Clock(NOW - 600)
    history = History(clock)
    for each in answers:
        history(facts.Evaluated(each.scaled_object, each.spec, each.decision, 1.0, each.source))
    clock.now = NOW
    return web.Shown(cast("Evaluator", Room(answers)), history, clock=lambda: NOW)


@asynccontextmanager
async def _serving(answers: Sequence[Answered]) -> AsyncIterator[str]:
    app = web.create_app(CollectorRegistry(), lambda: True, shown=room(answers))
    server = web.HttpServer(app, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{await server.start()}"
    await server.stop()


@contextmanager
def opened(answers: Sequence[Answered]) -> Iterator[str]:
    """Serve their page from a thread of its own, for a browser that this thread drives."""
    serving = _serving(answers)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving) as url:
        yield url
