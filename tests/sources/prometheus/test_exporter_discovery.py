"""Which exporters are looked for: asked rarely, remembered, and never delaying an answer."""

import asyncio
import math
from collections.abc import Collection
from typing import Any

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql_texts import EXPORTERS
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import DETECTED_SECONDS, PrometheusSource
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import Client


class Server(PrometheusClient):
    """Answers which exporters there are, at a time that stands still until a test moves it."""

    def __init__(self, *found: str) -> None:
        self.found: tuple[str, ...] = found
        self.now, self.asked = 5000.0, 0
        self.error: errors.SourceError | None = None
        self.stated: list[facts.Fact] = []
        self.http = Client(timeout_seconds=1)
        self._longest_bytes = math.inf
        settings = PrometheusSettings.model_validate({"url": "http://prometheus"})
        self.source = PrometheusSource(
            "default", settings, self.stated.append, lambda: self.now, client=self
        )

    async def ask(self, kind: str, text: str, *_: object) -> Any:  # noqa: ANN401
        """Answer the question about exporters, and all others with nothing."""
        if kind != "exporters":
            return []
        assert text == EXPORTERS
        self.asked += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return [Row({"exporter": name}, [(self.now, 1.0)]) for name in self.found]

    def known(self) -> Collection[str]:
        """Return the exporters that are looked for beside dcgm-exporter."""
        exporters = self.source.ports().exporters
        assert exporters is not None
        return exporters()

    async def seen(self, profile: str = "auto") -> Collection[str]:
        """Return the exporters to look for, after a snapshot."""
        await self.source.fetch(snapshot_query(profile), self.now)
        return self.known()


def snapshot_query(profile: str = "auto") -> SnapshotQuery:
    return SnapshotQuery(Signal.UTILIZATION, profile, frozenset({"ml"}), 300, 120)


async def test_what_is_found_is_looked_for_stated_once_and_stays() -> None:
    server = Server("hami", "another", "dcgm", "")
    assert not server.known()
    assert await server.seen() == {"hami"}
    server.found, server.now = ("amd",), server.now + DETECTED_SECONDS
    assert await server.seen() == {"hami", "amd"}
    assert server.stated == [
        facts.ExportersFound("default", ("hami",)),
        facts.ExportersFound("default", ("amd",)),
    ]


async def test_it_is_asked_every_few_minutes_however_often_it_is_needed() -> None:
    server = Server("hami")
    assert await asyncio.gather(*(server.seen() for _ in range(5))) == [{"hami"}] * 5
    server.now += DETECTED_SECONDS - 1
    await server.seen()
    assert server.asked == 1
    server.now += 1
    await server.seen()
    assert server.asked == 2


async def test_a_profile_that_is_named_needs_no_detection() -> None:
    server = Server("hami")
    seen = {profile: await server.seen(profile) for profile in profiles.PROFILES}
    assert {profile: found for profile, found in seen.items() if found} == {}
    assert server.asked == 0


async def test_a_server_that_does_not_answer_this_still_answers_for_what_is_known() -> None:
    server = Server("hami")
    await server.seen()
    server.error, server.now = errors.SourceTimeoutError("no"), server.now + DETECTED_SECONDS
    assert await server.seen() == {"hami"}
    assert await server.seen() == {"hami"}
    assert server.asked == 2
