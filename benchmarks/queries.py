"""What KEDA's own prometheus trigger asks for a workload, and what a Prometheus has used."""

import json
import time
from typing import NamedTuple

import httpx

from benchmarks import world
from benchmarks.processes import ServerError, cpu_clock
from benchmarks.world import Trigger
from keda_gpu_scaler.spec.workload import Kind, Workload
from testbed.prometheus import PrometheusServer

_CLOSE_ENOUGH = 1e-6
"""A server's mean may differ in the 15th digit."""


async def poll(client: httpx.AsyncClient, trigger: Trigger) -> None:
    """Ask Prometheus for one workload's number, as a prometheus trigger does.

    Raises:
        ServerError: the answer is not the right one.
    """
    response = await client.get("/api/v1/query", params={"query": promql(trigger)})
    found = response.raise_for_status().json()["data"]["result"]
    value = float(found[0]["value"][1]) if found else None
    if value is None or abs(value - trigger.value) > _CLOSE_ENOUGH:
        raise ServerError(f"{trigger.workload}: Prometheus says {value}, not {trigger.value}")


def promql(trigger: Trigger) -> str:
    """Return the query that has the scaler's answer for one workload as its result."""
    pods = Workload(Kind.DEPLOYMENT, world.NAMESPACE, trigger.workload).regex
    chosen = f'exported_namespace="{world.NAMESPACE}",exported_pod=~{json.dumps(pods)}'
    return f"sum(avg_over_time(DCGM_FI_DEV_GPU_UTIL{{{chosen}}}[2m]))"


class Counters(NamedTuple):
    """Counts since the server started."""

    queries: int
    """Instant queries asked, with any outcome."""
    cpu_seconds: float


async def read(prometheus: PrometheusServer) -> Counters:
    """Return what a Prometheus has used so far."""
    return Counters(await prometheus.requests(), time.clock_gettime(cpu_clock(prometheus.pid)))
