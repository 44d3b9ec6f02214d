"""What thousands of triggers and of pods add to one call, one decision and one scrape.

Everything is in this process, without gRPC, HTTP and a real source, so that what grows is not
hidden by what stays: the servicer's answer from the request's bytes to the response's, with every
observer that the server has. All pods are in one namespace, each with one GPU under a load of its
own, and a trigger asks about its own pods. Two populations are measured in turns in each round:

- 10,000 triggers next to 100, each with one pod: once more within the same poll, and decided anew
  after a step;
- 5,000 workloads of two pods each next to 100 workloads among as many pods: decided anew;
- `/metrics` of 10,000 triggers next to what prometheus_client writes of the same.

Decided anew is measured when the new snapshot is there: one fetch serves all triggers, and what it
costs is the subject of another benchmark. A wrong answer fails the benchmark.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import structlog
from prometheus_client import generate_latest

from benchmarks import world
from benchmarks.comparison import Detail, Goal, Measured, Plan, Row
from benchmarks.processes import ServerError
from keda_gpu_scaler import web
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service.servicer import Servicer
from keda_gpu_scaler.snapshot.observation import Observation, Series
from keda_gpu_scaler.telemetry import facts, history, refusals
from keda_gpu_scaler.telemetry.log_lines import LogObserver
from keda_gpu_scaler.telemetry.metrics import Telemetry
from keda_gpu_scaler.telemetry.observers import Observers
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access
from tests.support.processes import until
from tests.support.scripted import Clock, ScriptedSource
from tests.support.worlds import NODE, SPAN, STEP, World, WorldPod

FEW, MANY, WORKLOADS, PODS = 100, 10_000, 5_000, 10_000
CALLS = 2_000
"""Of one turn; the next one goes on with the triggers after them."""
CALL_LIMIT, DECISION_LIMIT, METRICS_SECONDS = 1.2, 1.5, 1.0
FETCH_SECONDS = 120.0
"""Bounds a benchmark whose snapshot never comes."""


class _Context:
    """What the servicer reads of a call: KEDA's polls have no deadline."""

    def time_remaining(self) -> None:
        """Return None: there is none."""


@dataclass(slots=True)
class Population:
    """Triggers that are asked about, and what answers."""

    asked: list[tuple[bytes, float]]
    """Each trigger's request as it arrives, and the right answer."""
    source: ScriptedSource
    clock: Clock
    servicer: Servicer
    telemetry: Telemetry
    _turn: Iterator[tuple[bytes, float]] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the first."""
        self._turn = itertools.cycle(self.asked)

    async def first(self) -> None:
        """Ask about each trigger once, when the first snapshot is there."""

        async def is_known() -> bool:
            self.clock.seconds += 1  # one second later, it is another poll
            return bool((await self._answer(self.asked[0][0])).metricValues)

        await until(is_known, FETCH_SECONDS, "the first snapshot is there")
        await self._spent(self.asked)

    async def same_poll(self) -> float:
        """Return the microseconds of CPU time of a call about what was decided just now."""
        turn = list(itertools.islice(self._turn, CALLS))
        await self._spent(turn)
        return await self._spent(turn)

    async def anew(self) -> float:
        """Return the microseconds of CPU time of a call that is decided out of a new snapshot."""
        await self._step()
        return await self._spent(list(itertools.islice(self._turn, min(CALLS, len(self.asked)))))

    async def _spent(self, turn: Sequence[tuple[bytes, float]]) -> float:
        began = time.process_time()
        for request, right in turn:
            await self._call(request, right)
        return (time.process_time() - began) / len(turn) * 1e6

    async def _step(self) -> None:
        """Let a step pass, and have the snapshot of the new one fetched."""
        self.clock.seconds += STEP
        await self._call(*self.asked[0])

        async def is_fetched() -> bool:
            return not any(task.get_name().startswith("fetch ") for task in asyncio.all_tasks())

        await until(is_fetched, FETCH_SECONDS, "the new snapshot is there")

    async def _call(self, request: bytes, right: float) -> None:
        answer = await self._answer(request)
        if [value.metricValueFloat for value in answer.metricValues] != [right]:
            raise ServerError(f"answered {answer}, expected {right} to {request!r}")
        answer.SerializeToString()

    async def _answer(self, request: bytes) -> pb.GetMetricsResponse:
        read = pb.GetMetricsRequest.FromString(request)
        return await self.servicer.GetMetrics(read, _CONTEXT)


_CONTEXT: Any = _Context()
_LETTERS = "bcdfghjkmn"
"""That end the names of a workload's pods: of those that Kubernetes uses."""


class Steady(World):
    """A world in which nothing begins or ends, so that it is observed quickly."""

    __slots__ = ()

    def observed(self, at: float, *, step: float = STEP, span: float = SPAN) -> Observation:
        """Return what a source shows at `at`."""
        instants = tuple(at - step * back for back in reversed(range(int(span // step))))
        return Observation(
            instants=instants,
            series=tuple(
                Series(
                    pod.namespace,
                    pod.name,
                    f"GPU-{pod.name}",
                    pod.target,
                    present=instants,
                    times=instants,
                    values=(pod.value,) * len(instants),
                    averaged=pod.averaged,
                )
                for pod in self.pods
            ),
            good_scrapes={NODE: {instant: instant for instant in instants}},
            absence_known=True,
        )


@asynccontextmanager
async def population(workloads: int, pods_each: int, others: int = 0) -> AsyncIterator[Population]:
    """Serve triggers, one for each workload, and ask about each once.

    Args:
        workloads: how many are asked about.
        pods_each: how many pods each of them has.
        others: how many more pods there are in the namespace.
    """
    clock = Clock()
    source = ScriptedSource(Steady(tuple(_pods(workloads, pods_each, others))), clock)
    async with AsyncExitStack() as stack:
        stack.callback(structlog.reset_defaults)
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
            logger_factory=structlog.ReturnLoggerFactory(),
        )
        telemetry = Telemetry(clock)
        observers: dict[str, facts.Observer] = {
            "metrics": telemetry,
            "log": LogObserver(),
            "history": history.History(time.time),
            "refusals": refusals.Refusals(),
        }
        observe = Observers(observers)
        evaluations = Evaluator({"default": source.ports()}, observe, clock=clock)
        stack.push_async_callback(evaluations.close)
        servicer = Servicer(
            evaluations,
            access=Access({"default": EVERY_NAMESPACE}),
            observe=observe,
            draining=asyncio.Event(),
            stream_seconds=STEP,
        )
        asked = [_asked(number, pods_each) for number in range(workloads)]
        made = Population(asked, source, clock, servicer, telemetry)
        await made.first()
        yield made


def _pods(workloads: int, pods_each: int, others: int) -> Iterator[WorldPod]:
    for number in range(workloads):
        for pod in range(pods_each):
            yield WorldPod(f"model-{number}-7b6667bd9-bbbb{_LETTERS[pod]}", _load(number))
    for number in range(others):
        yield WorldPod(f"other-{number}-7b6667bd9-bbbbb")


def _load(number: int) -> float:
    return float(10 + number % 83)


def _asked(number: int, pods_each: int) -> tuple[bytes, float]:
    metadata = {
        "scalerAddress": "keda-gpu-scaler.keda.svc:6000",
        "workload": f"model-{number}",
        "threshold": "70",
    }
    reference = pb.ScaledObjectRef(
        name=f"model-{number}", namespace=world.NAMESPACE, scalerMetadata=metadata
    )
    request = pb.GetMetricsRequest(scaledObjectRef=reference, metricName=world.METRIC_NAME)
    return request.SerializeToString(), _load(number) * pods_each


@dataclass(slots=True)
class Turns:
    """The figures of one quantity, round by round: of the larger population, and of the other."""

    measured: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    def add(self, measured: float, reference: float) -> None:
        """Add a round."""
        self.measured.append(measured)
        self.reference.append(reference)


async def measure(_directory: Path, plan: Plan) -> Measured:
    """Measure in turns.

    Args:
        plan: how many rounds.
    """
    same, anew, decision, scrape = Turns(), Turns(), Turns(), Turns()
    async with (
        population(FEW, 1) as few,
        population(MANY, 1) as many,
        population(FEW, PODS // WORKLOADS, PODS - FEW * PODS // WORKLOADS) as among_pods,
        population(WORKLOADS, PODS // WORKLOADS) as workloads,
    ):
        for _ in range(plan.rounds):
            same.add(await many.same_poll(), await few.same_poll())
            anew.add(await many.anew(), await few.anew())
            decision.add(await workloads.anew(), await among_pods.anew())
            scrape.add(*await scraped(many.telemetry))
        page_megabytes = len(await _page(many.telemetry)) / 1e6
        held_milliseconds = await _held(many.telemetry)
    return Measured(
        rows=[
            _row(
                "same-poll",
                f"CPU time of a call of the same poll, {MANY:,} triggers",
                same,
                CALL_LIMIT,
            ),
            _row("anew", f"CPU time of a call decided again, {MANY:,} triggers", anew, CALL_LIMIT),
            _row(
                "decision",
                f"CPU time of a call decided again, {WORKLOADS:,} workloads among {PODS:,} pods",
                decision,
                DECISION_LIMIT,
            ),
            Row(
                key="scale.metrics",
                name=f"CPU time of /metrics of {MANY:,} triggers",
                unit="s",
                measured=scrape.measured,
                reference_name="prometheus_client's text of the same",
                reference=scrape.reference,
                goal=Goal.FIGURE_AT_MOST,
                limit=METRICS_SECONDS,
            ),
        ],
        details=[
            Detail(
                key="scale-metrics",
                title=f"/metrics of {MANY:,} triggers",
                head=["size", "the event loop is held at most"],
                cells=[[f"{page_megabytes:.0f} MB", f"{held_milliseconds:.1f} ms"]],
            )
        ],
    )


def _row(key: str, name: str, turns: Turns, limit: float) -> Row:
    return Row(
        key=f"scale.{key}",
        name=name,
        unit="us",
        measured=turns.measured,
        reference_name=f"the same, {FEW}",
        reference=turns.reference,
        goal=Goal.RATIO_AT_MOST,
        limit=limit,
    )


async def scraped(telemetry: Telemetry) -> tuple[float, float]:
    """Return the CPU seconds of a request for /metrics, and of prometheus_client's own text."""
    began = time.process_time()
    page = await _page(telemetry)
    between = time.process_time()
    plain = generate_latest(telemetry.registry)
    ended = time.process_time()
    if _of_triggers(page) != _of_triggers(plain):
        raise ServerError("/metrics differs from what prometheus_client writes")
    return between - began, ended - between


def _of_triggers(page: bytes) -> list[bytes]:
    """Return the lines that are the same at any time of a process."""
    return [line for line in page.splitlines() if line.startswith(b"keda_gpu_scaler_trigger")]


async def _page(telemetry: Telemetry) -> bytes:
    app = web.create_app(telemetry.registry, lambda: True)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        return (await client.get("/metrics")).raise_for_status().content


async def _held(telemetry: Telemetry) -> float:
    """Return the most milliseconds of CPU time between two turns of another task meanwhile."""
    longest = 0.0
    asking = asyncio.create_task(_page(telemetry))
    while not asking.done():
        began = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - began)
    await asking
    return longest * 1000
