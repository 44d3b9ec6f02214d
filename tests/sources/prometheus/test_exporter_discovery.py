"""Which exporters are looked for: asked rarely, remembered, and never delaying an answer."""

import asyncio

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql_texts import EXPORTERS
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery, SplittableQuery
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import (
    DETECTED_SECONDS,
    ExporterDiscovery,
)
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts


class Server(PrometheusClient):
    """Answers which exporters there are, at a time that stands still until a test moves it."""

    def __init__(self, *found: str) -> None:
        self.found: tuple[str, ...] = found
        self.now, self.asked = 5000.0, 0
        self.error: errors.SourceError | None = None
        self.stated: list[facts.Fact] = []
        self.detection = ExporterDiscovery("default", self, self.stated.append, lambda: self.now)

    async def vector(
        self, kind: str, promql: SplittableQuery | str, _at: float, _limit_bytes: int | None = None
    ) -> list[Row]:
        """Answer the question."""
        assert (kind, promql) == ("exporters", EXPORTERS)
        self.asked += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return [Row({"exporter": name}, [(self.now, 1.0)]) for name in self.found]

    async def seen(self, profile: str = "auto") -> frozenset[str]:
        """Return the exporters to look for, after asking the server if that is due."""
        await self.detection.refresh(snapshot_query(profile), self.now)
        return self.detection.widened(snapshot_query(profile)).found


def snapshot_query(profile: str = "auto") -> SnapshotQuery:
    return SnapshotQuery(Signal.UTILIZATION, profile, frozenset({"ml"}), 300, 120)


async def test_nothing_is_known_before_it_was_asked() -> None:
    assert Server("hami").detection.widened(snapshot_query()) == snapshot_query()


async def test_what_is_found_is_looked_for_and_stated_once() -> None:
    server = Server("hami", "amd")
    assert await server.seen() == {"hami", "amd"}
    server.now += DETECTED_SECONDS
    assert await server.seen() == {"hami", "amd"}
    assert server.stated == [facts.ExportersFound("default", ("amd", "hami"))]


async def test_it_is_asked_every_few_minutes_however_often_it_is_needed() -> None:
    server = Server()
    for _ in range(3):
        await server.seen()
        server.now += DETECTED_SECONDS / 3
    assert server.asked == 1
    server.found = ("hami",)
    assert await server.seen() == {"hami"}
    assert server.asked == 2


async def test_what_was_found_stays_while_its_pods_are_gone() -> None:
    server = Server("hami")
    await server.seen()
    server.found, server.now = ("amd",), server.now + DETECTED_SECONDS
    assert await server.seen() == {"hami", "amd"}


async def test_all_signals_wait_for_one_question() -> None:
    server = Server("hami")
    assert await asyncio.gather(*(server.seen() for _ in range(5))) == [{"hami"}] * 5
    assert server.asked == 1


async def test_a_profile_that_is_named_needs_no_detection() -> None:
    server = Server("hami")
    seen = {profile: await server.seen(profile) for profile in profiles.PROFILES}
    assert {profile: found for profile, found in seen.items() if found} == {}
    assert server.asked == 0


@pytest.mark.parametrize("kind", [errors.SourceRefusedError, errors.SourceTimeoutError])
async def test_a_server_that_does_not_answer_this_still_answers_for_what_is_known(
    kind: type[errors.SourceError],
) -> None:
    server = Server("hami")
    await server.seen()
    server.error, server.now = kind("no"), server.now + DETECTED_SECONDS
    assert await server.seen() == {"hami"}
    assert await server.seen() == {"hami"}
    assert server.asked == 2


async def test_strange_names_are_passed_over() -> None:
    server = Server("dcgm", "", "another")
    assert await server.seen() == frozenset()
    assert server.stated == []
