"""What scraping exporters costs: CPU time of a scaler without a Prometheus.

At the same time a process reads the same pages from the same server, over open connections and as
often, and splits their lines: nobody can scrape for less. KEDA's calls are two per interval, one of
which has to be answered rightly; the other has the default windows, so that as many samples are
read as usual.
"""

import asyncio
import time
from pathlib import Path

import grpc

from benchmarks import pages, processes, world
from benchmarks.comparison import Goal, Measured, Plan, Row
from benchmarks.processes import Server, ServerError
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.support.processes import until

INTERVAL_SECONDS = 5.0
"""The default."""
GPUS = 400
MANY_GPUS = 5_000
LIMIT_PERCENT, MANY_LIMIT_PERCENT = 3.0, 25.0
SETTLE_SECONDS = 300.0
"""More than the default windows together: from then on a snapshot has no more rounds."""
ANSWER_SECONDS = 60.0
"""Bounds a benchmark whose scaler never answers."""
_PODS_PER_TRIGGER = len(world.Trigger(0).pods)


async def measure(_directory: Path, plan: Plan) -> Measured:
    """Measure 400 GPUs from the first answer on; in a full run both sizes with full windows."""
    if not plan.is_full:
        return Measured(rows=[await _row(GPUS, LIMIT_PERCENT, plan.rounds, 0)])
    rows = [
        await _row(gpus, limit, plan.rounds, SETTLE_SECONDS)
        for gpus, limit in ((GPUS, LIMIT_PERCENT), (MANY_GPUS, MANY_LIMIT_PERCENT))
    ]
    return Measured(rows=rows)


async def _row(gpus: int, limit: float, rounds: int, settle_seconds: float) -> Row:
    triggers = world.triggers(gpus // _PODS_PER_TRIGGER)
    shown = pages.nodes(triggers)
    async with pages.served(shown) as port:
        base = f"http://127.0.0.1:{port}"
        targets = ",".join(base + pages.path(node) for node in range(len(shown)))
        settings = {"SCRAPE_TARGETS": targets, "SCRAPE_INTERVAL": f"{INTERVAL_SECONDS:g}s"}
        async with (
            processes.scaler("", settings) as scaler,
            processes.reading(port, len(shown), INTERVAL_SECONDS) as reading,
            grpc.aio.insecure_channel(scaler.address) as channel,
        ):
            asked = Asked(triggers[-1], channel)
            try:
                await until(asked.is_answered, ANSWER_SECONDS, "the scaler answers")
            except TimeoutError as error:
                raise ServerError(f"no answer: {asked.trouble}") from error
            await _settle(asked, settle_seconds)
            used = [await _round(scaler, reading, asked) for _ in range(rounds)]
    return Row(
        key=f"direct.cpu-{gpus}",
        name=f"direct source, {gpus:,} GPUs scraped every {INTERVAL_SECONDS:g} s",
        unit="% of a core",
        measured=[ours for ours, _ in used],
        reference_name="reading the same bytes and splitting lines",
        reference=[floor for _, floor in used],
        goal=Goal.FIGURE_AT_MOST,
        limit=limit,
    )


class Asked:
    """Two ScaledObjects on one workload: with windows of one step, and with the default ones."""

    def __init__(self, trigger: world.Trigger, channel: grpc.aio.Channel) -> None:
        """Ask about this trigger's workload over this channel."""
        self.trouble = ""
        """Why the last answer that failed did."""
        self._trigger = trigger
        self._stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)

    async def is_answered(self) -> bool:
        """Ask both once; return whether the one with short windows has a value yet.

        Raises:
            ServerError: a value is wrong.
        """
        window = f"{INTERVAL_SECONDS:g}s"
        short = {"window": window, "activationWindow": window, "warmup": "0s"}
        values = [await self._value(more) for more in (short, {})]
        for value in values:
            if value not in (None, self._trigger.value):
                raise ServerError(f"{value} instead of {self._trigger.value}")
        return values[0] is not None

    async def _value(self, more: dict[str, str]) -> float | None:
        metadata = {"workload": self._trigger.workload, "threshold": "70", **more}
        reference = pb.ScaledObjectRef(
            name=f"{self._trigger.workload}-{len(more)}",
            namespace=world.NAMESPACE,
            scalerMetadata=metadata,
        )
        request = pb.GetMetricsRequest(scaledObjectRef=reference, metricName=world.METRIC_NAME)
        try:
            found = await self._stub.GetMetrics(request)
        except grpc.aio.AioRpcError as error:
            self.trouble = str(error.details())
            return None
        return found.metricValues[0].metricValueFloat if found.metricValues else None


async def _settle(asked: Asked, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asked.is_answered()
        await asyncio.sleep(INTERVAL_SECONDS)


async def _round(scaler: Server, reading: Server, asked: Asked) -> tuple[float, float]:
    """Return what both use during one interval, in percent of a core."""
    began, before = time.monotonic(), (scaler.cpu_seconds(), reading.cpu_seconds())
    if not await asked.is_answered():
        raise ServerError("the scaler does not answer any more")
    await asyncio.sleep(began + INTERVAL_SECONDS - time.monotonic())
    seconds = time.monotonic() - began
    ours, floor = scaler.cpu_seconds() - before[0], reading.cpu_seconds() - before[1]
    return 100 * ours / seconds, 100 * floor / seconds
