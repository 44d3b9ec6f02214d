"""How much one replica serves: what calls, steps and pods cost it, up to 10,000 ScaledObjects.

A real scaler on a real Prometheus, which has the GPUs of all pods, all in one namespace: two pods
of one GPU for each workload, of which some have a ScaledObject. After each ScaledObject was asked
about once, there are two phases: one with next to no calls, which shows what a step costs, and one
in which the ScaledObjects are asked about one after the other, as KEDA asks, which shows what such
a poll costs. From the two follows what one replica needs that is asked at the rate of KEDA and of
the HPA, six polls a minute about each ScaledObject. A wrong answer fails the benchmark.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import NamedTuple

import grpc

from benchmarks import asking, processes, queries, world
from benchmarks.comparison import Detail, Measured
from benchmarks.processes import Memory, Server
from benchmarks.world import Trigger
from testbed.processes import until
from testbed.prometheus import PrometheusServer


class Size(NamedTuple):
    """How much there is."""

    objects: int
    pods: int


SIZES = (Size(100, 200), Size(1_000, 2_000), Size(10_000, 10_000), Size(10_000, 20_000))
"""Of more pods a source takes no answer."""
STEP_SECONDS = 15.0
STEPS = 3
PODS_EACH = 2
"""Those of each workload of `world`."""
AT_ONCE = 20
"""So many polls are under way at a time."""
FIRST_SECONDS = 200.0
AHEAD_SECONDS = 540.0
"""Bounds all of it; Prometheus takes no samples of more than ten minutes from now."""
SETTINGS = {"PROMETHEUS_TIMEOUT": "60s"}
"""So that a busy machine delays the answer and does not prevent it."""


@dataclass(frozen=True, slots=True)
class Served:
    """What one size cost."""

    size: Size
    step_cpu_seconds: float
    """Of the scaler."""
    poll_cpu_seconds: float
    prometheus_cpu_seconds: float
    """Of one step."""
    queries: float
    """Of one step."""
    memory: Memory


async def measure(directory: Path, _rounds: int) -> Measured:
    """Measure each size once."""
    served = [await serve(directory / f"{size.objects}-{size.pods}", size) for size in SIZES]
    return Measured(details=[detail(served)], raw={"sizes": [asdict(run) for run in served]})


def detail(served: Sequence[Served]) -> Detail:
    """Return the table of all sizes."""
    mib = 2**20
    return Detail(
        key="plan",
        title="One replica that answers every call",
        head=[
            "ScaledObjects",
            "pods with a GPU",
            "CPU time of a poll",
            "of a step",
            "MiB resident",
            "MiB at most",
            "Prometheus' CPU time of a step",
            "queries a minute",
        ],
        cells=[
            [
                f"{run.size.objects:,}",
                f"{run.size.pods:,}",
                f"{1000 * run.poll_cpu_seconds:.1f} ms",
                f"{run.step_cpu_seconds:.2f} s",
                f"{run.memory.resident_bytes / mib:.0f}",
                f"{run.memory.peak_bytes / mib:.0f}",
                f"{run.prometheus_cpu_seconds:.2f} s",
                f"{run.queries * 60 / STEP_SECONDS:.0f}",
            ]
            for run in served
        ],
    )


async def serve(directory: Path, size: Size) -> Served:
    """Measure one size."""
    workloads = size.pods // PODS_EACH
    triggers = world.triggers(workloads, ceil(size.objects / workloads))[: size.objects]
    async with PrometheusServer(_new(directory)) as prometheus:
        await world.fill(prometheus, workloads, AHEAD_SECONDS)
        async with (
            processes.scaler(directory, prometheus.url, SETTINGS) as scaler,
            grpc.aio.insecure_channel(scaler.address) as channel,
        ):
            client = asking.Client(channel)

            async def is_known() -> bool:
                with contextlib.suppress(TimeoutError):
                    await client.first(triggers[0])
                    return True
                return False

            await until(is_known, FIRST_SECONDS, "the first snapshot is there")
            await _polled(client, triggers)
            before, used = await queries.read(prometheus), scaler.cpu_seconds()
            began = time.monotonic()
            while time.monotonic() - began < STEPS * STEP_SECONDS:
                await client.poll(triggers[0])
                await asyncio.sleep(1)
            after, idle = await queries.read(prometheus), scaler.cpu_seconds()
            steps = (time.monotonic() - began) / STEP_SECONDS
            step_cpu_seconds = (idle - used) / steps
            poll_cpu_seconds = await _poll_cpu_seconds(client, triggers, scaler, step_cpu_seconds)
            return Served(
                size,
                step_cpu_seconds,
                poll_cpu_seconds,
                (after.cpu_seconds - before.cpu_seconds) / steps,
                (after.queries - before.queries) / steps,
                scaler.memory(),
            )


def _new(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


async def _poll_cpu_seconds(
    client: asking.Client, triggers: Sequence[Trigger], scaler: Server, step_cpu_seconds: float
) -> float:
    """Return what one poll costs, most of them decided anew, as with KEDA and the HPA."""
    used, began, polls = scaler.cpu_seconds(), time.monotonic(), 0
    while time.monotonic() - began < STEPS * STEP_SECONDS:
        begin = polls % len(triggers)
        part = triggers[begin : begin + AT_ONCE]
        await _polled(client, part)
        polls += len(part)
    steps = (time.monotonic() - began) / STEP_SECONDS
    return (scaler.cpu_seconds() - used - steps * step_cpu_seconds) / polls


async def _polled(client: asking.Client, triggers: Sequence[Trigger]) -> None:
    for begin in range(0, len(triggers), AT_ONCE):
        await asyncio.gather(*map(client.poll, triggers[begin : begin + AT_ONCE]))
