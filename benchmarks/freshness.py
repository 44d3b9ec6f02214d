"""From a step in GPU load to the first changed answer, next to the earliest possible moment.

A simulated exporter shows one GPU for each workload. At a random moment, known here, its load
steps from one value to another. A real Prometheus and a scaler with exporters of its own scrape the
exporter at their own times, and two scalers, one on each of these sources, are asked about each
workload every 250 ms from the step on, until the answer is another one. Several ScaledObjects of
a workload are asked in turns, because a trigger that is asked again within a second gets the answer
of the same poll. All workloads are measured in the same minute, and a round is the mean of some.

The reference is the floor: the time until the scrape that showed the new load began, which the
exporter writes down, and from then on until the next instant that the source can have new samples
at: the next multiple of the step for Prometheus, and of the interval for exporters that are scraped
directly, on this machine's monotonic clock. The exporter itself shows a load at once: how often a
real one reads its GPUs comes on top of both.

In full, it is also measured what the query of a step costs Prometheus for shorter steps, by the
product's own source: they are asked more often, and each answer has more points.

An answer that is neither the old load nor on the way to the new one fails the benchmark.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import ceil
from pathlib import Path
from statistics import fmean, median
from typing import Any

import grpc

from benchmarks import processes, queries, world
from benchmarks.comparison import Detail, Goal, Measured, Plan, Row
from benchmarks.evidence import NEED
from benchmarks.processes import ServerError
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from tests.support.gpus import Gpu, Up, history
from tests.support.http_replies import HttpServer, Request, says
from tests.support.processes import until
from tests.support.prometheus import PrometheusServer

WORKLOADS = 5
"""In one round; in ten rounds each source is asked 200 times a second at the most."""
BEFORE, AFTER = 30.0, 80.0
POLL_SECONDS = 0.25
COPIES = 5
"""ScaledObjects of one workload; each is asked every 1.25 s."""
STEP_SECONDS = 15.0
"""The scaler's default, and here Prometheus' scrape interval as well."""
INTERVAL_SECONDS = 5.0
"""The default of exporters that are scraped directly."""
WINDOW = "15s"
"""A direct source has no past: it says nothing until the window is full."""
KNOWN_SECONDS = 90.0
CHANGED_SECONDS = 60.0
"""Bounds a benchmark whose answers never change; the floor is at most twice the step."""
CALL_SECONDS = 10.0
SEED = 20
LIMIT = 1.2
STEPS_SECONDS = (15.0, 10.0, 5.0)
STEP_WORKLOADS, SNAPSHOTS, SNAPSHOTS_SECONDS = 1_000, 5, 60.0
PROMETHEUS, DIRECT = "prometheus", "direct"


@dataclass(slots=True)
class Stepping:
    """One workload whose load steps, and what was seen of that."""

    number: int
    steps_at: float = float("inf")
    """On the clock of `time.time`."""
    served_at: dict[str, float] = field(default_factory=dict)
    """When each source's scrape first showed the new load."""
    changed_at: dict[str, float] = field(default_factory=dict)
    """When a scaler first gave another answer, by its source."""

    @property
    def name(self) -> str:
        """The Deployment's name."""
        return f"model-{self.number}"

    @property
    def pod(self) -> str:
        """The name of its one pod."""
        return f"{self.name}-7b6667bd9-bbbbb"

    def request(self, copy: int) -> pb.GetMetricsRequest:
        """Return KEDA's request for its metric, about one of its ScaledObjects."""
        metadata = {"workload": self.name, "threshold": "70", "window": WINDOW}
        reference = pb.ScaledObjectRef(
            name=f"{self.name}-{copy}", namespace=world.NAMESPACE, scalerMetadata=metadata
        )
        return pb.GetMetricsRequest(scaledObjectRef=reference, metricName=world.METRIC_NAME)

    def page(self, source: str, now: float) -> str:
        """Return what its exporter shows now, and write down when that is new.

        Args:
            source: who asks.
            now: the time.
        """
        value = BEFORE
        if now >= self.steps_at:
            value = AFTER
            self.served_at.setdefault(source, now)
        labels = f'gpu="0",UUID="GPU-{self.pod}",pod="{self.pod}",namespace="{world.NAMESPACE}"'
        return f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {value}\n"

    def answered(self, source: str, values: Sequence[float], now: float) -> None:
        """Take an answer.

        Args:
            source: whose scaler gave it.
            values: the answer.
            now: when it came.

        Raises:
            ServerError: it is wrong.
        """
        (value,) = values or (None,)
        is_changed = value != BEFORE
        is_possible = source in self.served_at and value is not None and BEFORE < value <= AFTER
        if is_changed and not is_possible:
            raise ServerError(f"{self.name}: {source} answered {value} from a load of {BEFORE}")
        if is_changed:
            self.changed_at.setdefault(source, now)

    def took(self, source: str) -> float:
        """Return the seconds from the step to the changed answer."""
        return self.changed_at[source] - self.steps_at

    def floor(self, source: str) -> float:
        """Return the seconds from the step until its source can have the new load at the least."""
        every, begin = (
            (STEP_SECONDS, 0.0)
            if source == PROMETHEUS
            else (INTERVAL_SECONDS, time.time() - time.monotonic())
        )
        steps = ceil((self.served_at[source] - begin) / every)
        return begin + steps * every - self.steps_at


async def measure(directory: Path, plan: Plan) -> Measured:
    """Measure both sources at the same time.

    Args:
        directory: for the data of a Prometheus.
        plan: how many rounds.
    """
    stepping = [Stepping(number) for number in range(plan.rounds * WORKLOADS)]
    async with (
        HttpServer(says("", 404)) as exporter,
        _scalers(directory, exporter, stepping) as stubs,
    ):
        async with asyncio.TaskGroup() as group:
            for source, stub in stubs.items():
                group.create_task(_known(stub, stepping, source))
        begin, chance = time.time() + 1, random.Random(SEED)  # noqa: S311 - spreads moments
        for one in stepping:  # at random in a part of the step for each of a round
            part = one.number % WORKLOADS
            one.steps_at = begin + (part + chance.random()) * STEP_SECONDS / WORKLOADS
        async with asyncio.timeout(STEP_SECONDS + CHANGED_SECONDS):
            async with asyncio.TaskGroup() as group:
                for source, stub in stubs.items():
                    for one in stepping:
                        group.create_task(_watch(stub, one, source))
    details = [_detail(stepping)]
    if plan.is_full:
        details.append(await _steps(directory / "steps", plan.rounds))
    return Measured(
        rows=[_row(PROMETHEUS, "a Prometheus", stepping), _row(DIRECT, "exporters", stepping)],
        details=details,
        raw={
            source: [[one.took(source), one.floor(source)] for one in stepping]
            for source in (PROMETHEUS, DIRECT)
        },
    )


@contextlib.asynccontextmanager
async def _scalers(
    directory: Path, exporter: HttpServer, stepping: Sequence[Stepping]
) -> AsyncIterator[dict[str, Any]]:
    """Run a scaler on each source, and a Prometheus that knows the workloads' past."""
    by_path = {f"/{one.number}": one for one in stepping}

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        _, source, number = request.path.split("/")
        page = by_path[f"/{number}"].page(source, time.time())
        await says(page, content_type="text/plain")(request, writer)

    exporter.reply = reply
    targets = [
        {
            "targets": [f"127.0.0.1:{exporter.port}"],
            "labels": {
                "__metrics_path__": f"/{PROMETHEUS}/{one.number}",
                "instance": world.node(one.number),
            },
        }
        for one in stepping
    ]
    interval = f"{STEP_SECONDS:g}s"
    job = {"job_name": "dcgm-exporter", "static_configs": targets, "scrape_interval": interval}
    urls = [f"{exporter.url}/{DIRECT}/{one.number}" for one in stepping]
    async with PrometheusServer(directory, scrape_configs=[job]) as prometheus:
        await prometheus.write(history(time.time(), _past(stepping)))
        async with (
            processes.scaler(prometheus.url) as on_prometheus,
            processes.scaler("", {"SCRAPE_TARGETS": ",".join(urls)}) as on_exporters,
            grpc.aio.insecure_channel(on_prometheus.address) as one_channel,
            grpc.aio.insecure_channel(on_exporters.address) as other_channel,
        ):
            yield {
                PROMETHEUS: externalscaler_pb2_grpc.ExternalScalerStub(one_channel),
                DIRECT: externalscaler_pb2_grpc.ExternalScalerStub(other_channel),
            }


def _past(stepping: Sequence[Stepping]) -> list[Gpu | Up]:
    """Return what Prometheus would have scraped of the workloads until now."""
    found: list[Gpu | Up] = []
    for one in stepping:
        node = world.node(one.number)
        found.append(Up(instance=node))
        gpu = Gpu(one.pod, BEFORE, world.NAMESPACE, instance=node, convention="plain")
        found.append(gpu)
    return found


async def _known(stub: Any, stepping: Sequence[Stepping], source: str) -> None:  # noqa: ANN401 - generated code has no types
    """Wait until the load of every workload is known."""

    async def answers() -> bool:
        asked = (one.request(copy) for one in stepping for copy in range(COPIES))
        found = [await stub.GetMetrics(each, timeout=CALL_SECONDS) for each in asked]
        return all(one.metricValues for one in found)

    await until(answers, KNOWN_SECONDS, f"{source}: the load of every workload is known")


async def _watch(stub: Any, one: Stepping, source: str) -> None:  # noqa: ANN401 - generated code has no types
    """Ask about a workload from its step on, until the answer is another one."""
    await asyncio.sleep(one.steps_at - time.time())
    for turn in count():
        answer = await stub.GetMetrics(one.request(turn % COPIES), timeout=CALL_SECONDS)
        values = [value.metricValueFloat for value in answer.metricValues]
        one.answered(source, values, time.time())
        if source in one.changed_at:
            return
        await asyncio.sleep(POLL_SECONDS)


def _row(source: str, of: str, stepping: Sequence[Stepping]) -> Row:
    rounds = [stepping[begin : begin + WORKLOADS] for begin in range(0, len(stepping), WORKLOADS)]
    return Row(
        key=f"freshness.{source}",
        name=f"from a step in load to the first changed answer, out of {of}",
        unit="s",
        measured=[fmean(one.took(source) for one in each) for each in rounds],
        reference_name="the scrape, and the next step from there",
        reference=[fmean(one.floor(source) for one in each) for each in rounds],
        goal=Goal.RATIO_AT_MOST,
        limit=LIMIT,
    )


def _detail(stepping: Sequence[Stepping]) -> Detail:
    return Detail(
        key="freshness",
        title="From a step in load to the first changed answer",
        head=["source", "shortest", "mean", "longest", "mean of the floor"],
        cells=[
            [
                source,
                *(
                    f"{figure(one.took(source) for one in stepping):.1f} s"
                    for figure in (min, fmean, max)
                ),
                f"{fmean(one.floor(source) for one in stepping):.1f} s",
            ]
            for source in (PROMETHEUS, DIRECT)
        ],
    )


async def _steps(directory: Path, rounds: int) -> Detail:
    """Return what the snapshot costs a Prometheus with each step, in turns."""
    spent: dict[float, list[float]] = {step: [] for step in STEPS_SECONDS}
    async with PrometheusServer(_new(directory)) as prometheus:
        await world.fill(prometheus, STEP_WORKLOADS, ahead_seconds=0)
        at = time.time() // STEP_SECONDS * STEP_SECONDS
        for _ in range(rounds):
            for step, figures in spent.items():
                figures.append(await _snapshot_cpu_seconds(prometheus, step, at))
    cells = [
        [
            f"{step:g} s",
            f"{SNAPSHOTS_SECONDS / step:g}",
            f"{1000 * median(figures):.0f} ms",
            f"{median(figures) * 100 / step:.1f} %",
        ]
        for step, figures in spent.items()
    ]
    title = f"What the step costs Prometheus, {2 * STEP_WORKLOADS:,} pods"
    head = ["step", "snapshots in a minute", "CPU time of one", "of one core"]
    return Detail("freshness-steps", title, head, cells)


def _new(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def _snapshot_cpu_seconds(prometheus: PrometheusServer, step: float, at: float) -> float:
    """Return the CPU time of Prometheus for one snapshot, on average of some."""
    settings = {"url": prometheus.url, "timeout": CALL_SECONDS, "step": step}
    source = PrometheusSource("default", PrometheusSettings.model_validate(settings))
    try:
        await source.fetch(NEED, at)  # exporters are detected as well
        before = await queries.read(prometheus)
        for _ in range(SNAPSHOTS):
            found = await source.fetch(NEED, at)
            if len(found.series) != 2 * STEP_WORKLOADS:
                raise ServerError(f"{len(found.series)} pods, not {2 * STEP_WORKLOADS}")
        after = await queries.read(prometheus)
    finally:
        await source.close()
    return (after.cpu_seconds - before.cpu_seconds) / SNAPSHOTS
