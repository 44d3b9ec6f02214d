"""What KEDA's own prometheus trigger asks for a workload, and what a Prometheus counts."""

import json

import httpx

from benchmarks import counters, world
from benchmarks.counters import Counters
from benchmarks.processes import ServerError
from benchmarks.world import Trigger
from keda_gpu_scaler.spec.workload import Kind, Workload
from tests.support.prometheus import PrometheusServer

_CLOSE_ENOUGH = 1e-6
"""A server's mean may differ in the 15th digit."""


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


async def read(prometheus: PrometheusServer) -> Counters:
    """Return what a Prometheus counts of itself."""
    async with httpx.AsyncClient(trust_env=False) as client:
        page = await client.get(f"{prometheus.url}/metrics")
        return counters.parse(page.raise_for_status().text)
