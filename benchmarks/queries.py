"""What some time of polling costs a Prometheus, counted by itself.

The scaler is polled as KEDA and the HPA do. Beside it, what KEDA's own prometheus trigger would
send: one query each time, for the same numbers. It is calculated, and for the largest number of
triggers also sent, because one query for all triggers is a larger one.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import httpx

from benchmarks import asking, counters, processes, schedule, world
from benchmarks.counters import Counters
from benchmarks.processes import Memory, Server, ServerError
from benchmarks.world import Trigger
from keda_gpu_scaler.spec.kinds import Kind
from keda_gpu_scaler.spec.workload import Workload
from tests.support.prometheus import PrometheusServer

AHEAD_SECONDS = 120.0
"""For what comes before and after the measured time."""
_CLOSE_ENOUGH = 1e-6
"""A server's mean may differ in the 15th digit."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way of asking cost."""

    triggers: int
    seconds: float
    asks: int
    queries: int
    prometheus_cpu_seconds: float
    scaler_cpu_seconds: float | None = None
    """None: the scaler was not asked."""
    start_cpu_seconds: float | None = None
    """What the scaler used until it listened."""
    memory: Memory | None = None
    """What the scaler has in memory at the end."""

    @property
    def queries_per_second(self) -> float:
        """How often Prometheus was asked."""
        return self.queries / self.seconds

    @property
    def scaler_percent(self) -> float:
        """The scaler's CPU time, in percent of one core.

        Raises:
            ValueError: the scaler was not asked.
        """
        if self.scaler_cpu_seconds is None:
            raise ValueError("the scaler was not asked: it used nothing that could be compared")
        return 100 * self.scaler_cpu_seconds / self.seconds

    @property
    def ratio(self) -> float:
        """The queries, next to what KEDA's own trigger sends in the same time."""
        return self.queries_per_second / schedule.queries_per_second(self.triggers)


async def measure(directory: Path, triggers: int, seconds: float) -> Cost:
    """Poll the scaler about this many triggers for this long."""
    async with PrometheusServer(directory) as prometheus:
        await world.fill(prometheus, triggers, seconds + AHEAD_SECONDS)
        async with (
            processes.scaler(prometheus.url) as scaler,
            grpc.aio.insecure_channel(scaler.address) as channel,
        ):
            start_cpu_seconds = scaler.cpu_seconds()
            client = asking.Client(channel)
            await client.first(world.Trigger(0))
            cost = await _cost(prometheus, client.poll, triggers, seconds, scaler)
            return replace(cost, start_cpu_seconds=start_cpu_seconds, memory=scaler.memory())


async def measure_own_trigger(directory: Path, triggers: int, seconds: float) -> Cost:
    """Send what KEDA's own prometheus trigger sends for as many ScaledObjects."""
    async with PrometheusServer(directory) as prometheus:
        await world.fill(prometheus, triggers, seconds + AHEAD_SECONDS)
        async with httpx.AsyncClient(base_url=prometheus.url, trust_env=False) as client:
            return await _cost(prometheus, OwnTrigger(client).poll, triggers, seconds)


class OwnTrigger:
    """Asks Prometheus for one workload's number, as a prometheus trigger does."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def poll(self, trigger: Trigger) -> None:
        """Ask once.

        Raises:
            ServerError: the answer is not the right one.
        """
        response = await self._client.get("/api/v1/query", params={"query": promql(trigger)})
        found = response.raise_for_status().json()["data"]["result"]
        value = float(found[0]["value"][1]) if found else None
        if value is None or abs(value - trigger.value) > _CLOSE_ENOUGH:
            raise ServerError(f"{trigger.workload}: Prometheus says {value}, not {trigger.value}")


def promql(trigger: Trigger) -> str:
    """Return the query that has the scaler's answer for one workload as its result."""
    pods = Workload(Kind.DEPLOYMENT, world.NAMESPACE, trigger.workload).regex
    chosen = f'exported_namespace="{world.NAMESPACE}",exported_pod=~{json.dumps(pods)}'
    return f"sum(avg_over_time(DCGM_FI_DEV_GPU_UTIL{{{chosen}}}[2m]))"


async def _cost(
    prometheus: PrometheusServer,
    ask: Callable[[Trigger], Awaitable[None]],
    triggers: int,
    seconds: float,
    scaler: Server | None = None,
) -> Cost:
    asked = world.triggers(triggers)
    for trigger in asked:  # not measured: everything is asked for the first time
        await ask(trigger)
    asks = schedule.asks(triggers, seconds)
    before, used = await read(prometheus), scaler.cpu_seconds() if scaler else 0.0
    took = await _play(asks, lambda number: ask(asked[number]), seconds)
    scaler_cpu = scaler.cpu_seconds() - used if scaler else None
    after = await read(prometheus)
    cpu = after.cpu_seconds - before.cpu_seconds
    return Cost(triggers, took, len(asks), after.queries - before.queries, cpu, scaler_cpu)


async def _play(
    asks: list[schedule.Ask], ask: Callable[[int], Awaitable[None]], seconds: float
) -> float:
    """Ask each at its time, without waiting for the ones before; return how long it took."""
    loop = asyncio.get_running_loop()
    begin = loop.time()

    async def answered(each: schedule.Ask) -> None:
        await ask(each.trigger)

    async with asyncio.TaskGroup() as group:
        for each in asks:
            await asyncio.sleep(begin + each.at - loop.time())
            group.create_task(answered(each))
        await asyncio.sleep(begin + seconds - loop.time())
    return loop.time() - begin


async def read(prometheus: PrometheusServer) -> Counters:
    """Return what a Prometheus counts of itself."""
    async with httpx.AsyncClient(trust_env=False) as client:
        page = await client.get(f"{prometheus.url}/metrics")
        return counters.parse(page.raise_for_status().text)
