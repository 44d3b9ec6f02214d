"""What the product answers about made-up workloads, and its pages about them for a browser."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

from anyio.from_thread import start_blocking_portal
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import trigger, web
from keda_gpu_scaler.decision import activation
from keda_gpu_scaler.decision.decision import Context, State, decide
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.evaluator.shared_source import SourceDown
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.record import build
from keda_gpu_scaler.record.build import Answered
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.spec import Demand, ScaledObject, TriggerSpec
from testbed.triggers import access, evaluated


def read(scaled_object: ScaledObject, **metadata: str) -> TriggerSpec:
    """Return a trigger at threshold 70, unless told otherwise; PromQL of its own is allowed."""
    given = {"workload": scaled_object.name, "threshold": "70", **metadata}
    given = {key: text for key, text in given.items() if text}
    return trigger.parse(scaled_object, given, access(own_promql=Policy.ALLOW))


def answered(
    scaled_object: ScaledObject,
    spec: TriggerSpec,
    view: NamespaceSnapshot,
    *,
    alert: str | None = None,
    demand: float | None = None,
) -> tuple[Answered, str | None]:
    """Return what is answered at the time of a view, and which signal says active."""
    now = view.at
    decided, signal = decide(spec, view, Context(now, remembered=State.MEASURED)), "gpus"
    counted = None
    if not decided.activated:
        signal, decided = "alert", activation.apply_neighbour_and_alert(spec, decided, None, alert)
    if not decided.activated and spec.demand is not None:
        # A server repeats in its errors what it was asked.
        signal, counted = "demand", Demand(demand, f"HTTP 400, bad_data: {spec.demand.text}")
        decided = activation.activate_by_demand(spec, decided, counted)
    made = Answered(
        scaled_object=scaled_object,
        spec=spec,
        decision=decided,
        now=now,
        view=view,
        source="default",
        alert=alert,
        takes_alerts=True,
        demand=counted,
    )
    return made, signal if decided.activated else None


@dataclass
class Room:
    """What an evaluator shows of answers."""

    answers: Sequence[Answered]
    told: Sequence[Summary] | None = None
    """What a list shows; None: one for each answer."""
    made: Sequence[Record] | None = None
    """What is shown of any object; None: its own answers."""
    step_seconds: float = 15.0
    down: Sequence[SourceDown] = ()

    async def sources_down(self) -> Sequence[SourceDown]:
        return self.down

    def summaries(self, namespace: str | None) -> list[Summary]:
        if self.told is not None:
            return list(self.told)
        return [
            replace(
                evaluated(each.decision, each.spec, each.scaled_object).summary,
                answered_seconds_ago=1.5,
            )
            for each in self.answers
            if namespace in {None, each.scaled_object.namespace}
        ]

    async def records(self, scaled_object: ScaledObject) -> list[Record]:
        if self.made is not None:
            return list(self.made)
        return [build.record(each) for each in self.answers if each.scaled_object == scaled_object]


@asynccontextmanager
async def _serving(shown: web.Shown) -> AsyncIterator[str]:
    app = web.create_app(CollectorRegistry(), lambda: True, shown=shown)
    server = web.HttpServer(app, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{await server.start()}"
    await server.stop()


@contextmanager
def opened(shown: web.Shown) -> Iterator[str]:
    """Serve the pages from a thread of its own, for a browser that this thread drives."""
    serving = _serving(shown)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving) as url:
        yield url
