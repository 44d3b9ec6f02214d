"""What real servers answered in a few situations, so that tests without a server see it too.

A situation is what exporters and kube-state-metrics have shown for a while, and what the scaler
has to decide from it. `Tape` stands between the scaler and a server: it passes questions on and
writes down the answers, or gives the answers of an earlier run. A question that was never recorded
is refused, so a changed query is noticed. To ask the real servers anew:

    RECORD=1 make test-servers ARGS=tests/repository/test_recorded.py
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.telemetry import facts
from tests.support import gpus, kube_state
from tests.support import http_replies as web
from tests.support.bench import landed
from tests.support.gpus import Gpu, Up
from tests.support.kube_state import KubePod, Listed
from tests.support.scripted import Clock
from tests.support.series import Series
from tests.support.triggers import BERT, spec

FOLDER = Path(__file__).parents[1] / "data" / "recorded"
FIRST = 1_790_000_040.0
"""When the first situation ends: a multiple of the step, and of what the last hour is asked in."""
APART_SECONDS = 7200.0
"""Longer than a situation and the hour before it: one server holds all of them."""
PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcd"]
OTHER_NODE = "10.0.0.2:9400"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
BLANK = 2_147_483_632.0
"""What DCGM writes where it has no number."""
KUBE_STATE_METRICS = (kube_state.up(), kube_state.BERT, kube_state.replicas(2))


Part = Gpu | Up | KubePod | Listed
_ACTIVE = {State.PARTIAL: True, State.UNKNOWN: None, State.ENDED: False, State.EMPTY: False}
"""None: that is not known either."""


class Situation(NamedTuple):
    """What a server holds, and what follows from it at a threshold of 70."""

    parts: Sequence[Part]
    state: State
    value: float | None = None

    def series(self, at: float) -> list[Series]:
        """Return everything that is to be stored for a situation that ends at `at`."""
        shown = [part for part in self.parts if isinstance(part, Gpu | Up)]
        listed = [part for part in self.parts if isinstance(part, KubePod | Listed)]
        return [*gpus.history(at, shown), *kube_state.history(at, listed)]

    def follows(self, decision: Decision) -> bool:
        expected = (self.state, self.value, _ACTIVE.get(self.state, bool(self.value)))
        return (decision.state, decision.value, decision.active) == expected


def _slices() -> list[Part]:
    """Return two slices of one GPU: utilization reads 0 where engines are busy."""
    return [
        Gpu(pod, share, uuid="GPU-a", metric=metric, extra=gpus.mig(number))
        for number, (pod, busy) in enumerate(zip(PODS[:2], (0.5, 0.25), strict=True))
        for metric, share in ((ENGINE, busy), ("DCGM_FI_DEV_GPU_UTIL", 0.0))
    ]


READY = KubePod(name=PODS[0])
SITUATIONS = {
    "two pods on two nodes, and another workload's": Situation(
        [
            Up(),
            Up(instance=OTHER_NODE),
            Gpu(PODS[0], 90),
            Gpu(PODS[1], 60, instance=OTHER_NODE, convention="plain"),
            Gpu("bert-canary-7b6667bd9-bbbbb", 100),
        ],
        State.MEASURED,
        150,
    ),
    "two slices of one GPU, whose utilization reads 0": Situation(
        [Up(), *_slices()], State.MEASURED, 75
    ),
    "two jobs scrape the same exporter": Situation(
        [Up(), Up(job="again"), Gpu(PODS[0], 80), Gpu(PODS[0], 80, job="again")],
        State.MEASURED,
        80,
    ),
    "a number that no GPU shows": Situation([Up(), Gpu(PODS[0], BLANK)], State.UNKNOWN),
    "one exporter of two is down": Situation(
        [
            Up(),
            Up(instance=OTHER_NODE, down=-150),
            Gpu(PODS[0], 20),
            Gpu(PODS[1], 90, instance=OTHER_NODE, end=-150),
        ],
        State.PARTIAL,
    ),
    "the only pod has ended under a good scrape": Situation(
        [Up(), Gpu("router-0", 50), Gpu(PODS[0], 90, end=-600)], State.ENDED
    ),
    "the only pod has ended half an hour ago": Situation(
        [
            Up(begin=-3600),
            Gpu("router-0", 50, begin=-3600),
            Gpu(PODS[0], 90, begin=-3600, end=-1800),
        ],
        State.ENDED,
    ),
    "no pod is there, and the exporters are known for 150 seconds": Situation(
        [Up(begin=-150), Gpu("router-0", 50, begin=-150)], State.ENDED
    ),
    "no pod is there, and the exporters are known for 90 seconds": Situation(
        [Up(begin=-90), Gpu("router-0", 50, begin=-90)], State.UNKNOWN
    ),
    "a metric ends while another goes on, and the other way round": Situation(
        [
            Up(),
            Gpu(PODS[0], 0.5, metric=ENGINE, end=-150),
            Gpu(PODS[0], 1),
            Gpu(PODS[1], 0.5, metric=ENGINE),
            Gpu(PODS[1], 1, end=-150),
        ],
        State.MEASURED,
        51,
    ),
    "its owner has no replicas": Situation(
        [Up(), kube_state.up(), kube_state.BERT, kube_state.replicas(0)], State.EMPTY, 0
    ),
    "a pod that loads at 100 % beside one that works": Situation(
        [
            Up(),
            *KUBE_STATE_METRICS,
            READY,
            KubePod(name=PODS[1], ready=False, created=-120),
            Gpu(PODS[0], 40),
            Gpu(PODS[1], 100, begin=-90),
        ],
        State.MEASURED,
        40,
    ),
    "a Ready pod whose exporter shows nothing": Situation(
        [
            Up(),
            Up(instance=OTHER_NODE, down=-300),
            *KUBE_STATE_METRICS,
            READY,
            KubePod(name=PODS[1]),
            Gpu(PODS[0], 30),
            Gpu(PODS[1], 90, instance=OTHER_NODE, end=-300),
        ],
        State.PARTIAL,
    ),
    "idle for longer than the activationWindow": Situation(
        [Up(), *KUBE_STATE_METRICS, READY, Gpu(PODS[0], 0)], State.MEASURED, 0
    ),
}

ENDS = {name: FIRST + number * APART_SECONDS for number, name in enumerate(SITUATIONS)}
"""When each situation ends."""


@dataclass(slots=True)
class Tape:
    """The questions about one situation, and what a server said to them."""

    at: float
    """When the situation ends."""
    answers: dict[str, object]
    upstream: str | None = None
    """The server that is asked; None: what is on the tape is the answer."""
    asked: set[str] = field(default_factory=set)

    async def reply(self, request: web.Request, writer: asyncio.StreamWriter) -> None:
        form = request.form
        text = form["query"]
        question = f"{hashlib.sha256(text.encode()).hexdigest()[:16]} @ {form.get('time', 'now')}"
        self.asked.add(question)
        if self.upstream is not None:
            async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
                answer = await client.post(f"{self.upstream}{request.path}", data=form)
            self.answers[question] = self._at_rest(text, answer.json())
        if question in self.answers:
            await web.says(json.dumps(self.answers[question]))(request, writer)
        else:
            await web.says(f"never recorded: {question} of {text}", 500)(request, writer)

    def _at_rest(self, query: str, answer: dict[str, Any]) -> object:
        """Return an answer without what differs from run to run: its order, and the time it is."""
        kind, result = answer["data"]["resultType"], answer["data"]["result"]
        if query == "time()":
            # The scaler asks about what is two seconds past.
            shown = [self.at + 2, str(self.at + 2)]
            result = shown if kind == "scalar" else [{"metric": {}, "value": shown}]
        else:
            result = sorted(result, key=lambda row: sorted(row["metric"].items()))
        return web.success(kind, result)


async def decided(tape: Tape) -> Decision:
    """Decide about the Deployment bert by what a tape says, at the one time there is on it."""
    clock = Clock()
    async with web.HttpServer(tape.reply) as server:
        settings = PrometheusSettings.model_validate({"url": server.url, "step": "15s"})
        source = PrometheusSource("default", settings, clock=clock)
        evaluator = Evaluator({"default": source.ports()}, facts.ignore, clock=clock)
        try:
            await evaluator.evaluate(BERT, spec(), None)
            # A busy machine may take longer for the first fetch than a call waits.
            await landed()
            clock.seconds += 1
            return await evaluator.evaluate(BERT, spec(), None)
        finally:
            await evaluator.close()
            await source.close()


def file(server: str) -> Path:
    return FOLDER / f"{server}.json"


def read(server: str) -> dict[str, dict[str, object]]:
    recorded: dict[str, dict[str, object]] = json.loads(file(server).read_text())
    return recorded


def write(server: str, tapes: dict[str, dict[str, object]]) -> None:
    """Write a server's answers, a line for each question."""
    situations = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"{json.dumps(q)}: {json.dumps(tape[q])}" for q in sorted(tape))
        + "\n}"
        for name, tape in tapes.items()
    ]
    file(server).write_text("{\n" + ",\n".join(situations) + "\n}\n")
