"""What writes into an InfluxDB, and what alerts on it: stand-ins for Telegraf and for a Grafana 4.

Both are small and do on the wire what the programs do. Telegraf reads the exporters' pages and
writes each sample as a point. Grafana asks InfluxDB for its rule's expression, and sends its
webhook the message of Grafana 4 when the rule's state changes, and not again. Neither program is
available where these tests run.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e import alerting
from tests.e2e.lab import Lab
from tests.support import alert_messages
from tests.support.influxdb import InfluxdbServer
from tests.support.series import Series

EVERY_SECONDS = 1.0
_WRITTEN = frozenset({"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"})


@contextlib.asynccontextmanager
async def _repeated(do: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Do something every second until the block ends; what goes wrong ends the block."""

    async def forever() -> None:
        while True:
            began = time.monotonic()
            await do()
            await asyncio.sleep(max(0.0, began + EVERY_SECONDS - time.monotonic()))

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(forever())
        yield
        task.cancel()


@contextlib.asynccontextmanager
async def telegraf(lab: Lab, influxdb: InfluxdbServer) -> AsyncIterator[None]:
    """Write what the lab's exporters show into an InfluxDB, until the block ends."""
    async with httpx.AsyncClient(trust_env=False) as client:

        async def collect() -> None:
            page = await client.get(f"http://127.0.0.1:{lab.simulator.port}/metrics")
            now = time.time()
            families = text_string_to_metric_families(page.raise_for_status().text)
            await influxdb.write(
                Series(sample.name, {**sample.labels, "host": "gpu"}, [(now, sample.value)])
                for family in families
                for sample in family.samples
                if sample.name in _WRITTEN
            )

        async with _repeated(collect):
            yield


@dataclass(slots=True)
class Grafana:
    """A rule on a panel: InfluxQL, and the level above which it alerts."""

    influxdb: InfluxdbServer
    query: str
    level: float
    url: str
    """The webhook of its notification channel, with the ScaledObject in its path."""
    sent: list[str] = field(default_factory=list)
    """The states that it has told."""

    @contextlib.asynccontextmanager
    async def judging(self) -> AsyncIterator[None]:
        """Judge the rule every second, until the block ends."""
        async with httpx.AsyncClient(trust_env=False) as client:

            async def judge() -> None:
                series = (await self.influxdb.run(self.query)).get("series", [])
                for each in series:
                    await self._tell(client, each["values"][-1][-1])

            async with _repeated(judge):
                yield

    async def _tell(self, client: httpx.AsyncClient, value: float) -> None:
        state = "alerting" if value > self.level else "ok"
        if self.sent[-1:] == [state] or (state == "ok" and not self.sent):
            return  # a rule that was never above its level has no change to tell
        matches = [{"value": value, "metric": "mean", "tags": None}]
        message = alert_messages.of_dashboard(state, evalMatches=matches)
        # Its channel has a user and a password, and no way to send a token.
        answer = await client.post(self.url, json=message, auth=("grafana", alerting.TOKEN))
        answer.raise_for_status()
        self.sent.append(state)
