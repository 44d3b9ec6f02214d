"""A Prometheus in which all samples arrive late, or none any more."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keda_gpu_scaler.evaluator.ports import Samples
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.sources.prometheus.source import UNANSWERED_SECONDS
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts
from tests.support import gpus
from tests.support import http_replies as web
from tests.support.clocks import Clock
from tests.support.gpus import Gpu, Up
from tests.support.http_replies import HttpServer
from tests.support.prometheus import KINDS, each
from tests.support.prometheus_source import connected

STEP = 15.0
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300, 120)
REFUSED = {"status": "error", "errorType": "execution", "error": "too many samples"}


@dataclass(slots=True)
class Late:
    """A server whose newest sample is so old, a source on it, and what the source stated."""

    age_seconds: float | None = 0.0
    """None: the server does not say."""
    clock: Clock = field(default_factory=Clock)
    began: float = field(default_factory=lambda: time.time() // STEP * STEP)
    """The server's time when the clock began."""
    asked: list[float] = field(default_factory=list)
    """The times at which it was asked how old the newest sample is."""
    stated: list[facts.Fact] = field(default_factory=list)
    samples: Samples = field(init=False)

    @asynccontextmanager
    async def serving(self, **given: object) -> AsyncIterator["Late"]:
        """Connect a source to it; with settings, one that asks about one namespace."""
        async with (
            HttpServer(self.reply) as server,
            connected(server.url, self.stated.append, self.clock, **given) as source,
        ):
            self.samples = source.ports().within("ml").samples if given else source
            yield self

    @property
    def now(self) -> float:
        return self.began + self.clock() - 1000

    @property
    def lags(self) -> list[float]:
        return [fact.seconds for fact in self.stated if isinstance(fact, facts.LagChanged)]

    async def reply(self, request: web.Request, writer: asyncio.StreamWriter) -> None:
        """Answer as a Prometheus without GPUs does."""
        query = request.form["query"]
        if query == "time()":
            return await web.api("scalar", [0, str(self.now)])(request, writer)
        if query.startswith("time() - max(max_over_time"):
            self.asked.append(float(request.form["time"]))
            if self.age_seconds is None:
                return await web.says(json.dumps(REFUSED), 422)(request, writer)
            found = [{"metric": {}, "value": [0, str(self.age_seconds)]}]
            shown = found if self.age_seconds <= 600 else []
            return await web.api("vector", shown)(request, writer)
        if query.endswith("s]"):
            return await web.api("matrix", [])(request, writer)
        is_fresh = "on_time" in query and self.age_seconds is not None and self.age_seconds <= 60
        fresh = [{"metric": {"on_time": "1"}, "value": [0, "1"]}]
        return await web.api("vector", fresh if is_fresh else [])(request, writer)

    async def step(self, count: int = 1) -> None:
        """Let a step pass, as often as said, and fetch as the evaluator does."""
        for _ in range(count):
            self.clock.now += STEP
            await asyncio.gather(self.samples.synchronize(), self.samples.synchronize())
            await self.samples.fetch(NEED, self.samples.instant())


async def test_where_all_are_late_the_clock_is_as_late_until_they_are_on_time_again() -> None:
    async with Late(55.0).serving() as late:
        await late.step(3)
        assert late.asked == []
        late.age_seconds = 150.0
        await late.step(10)
        assert late.samples.now() == late.now - 150
        assert late.asked == [late.began + STEP * number for number in range(5, 14)]
        late.age_seconds = 700.0  # of which the server shows nothing
        await late.step(2)
        assert late.lags == [150]
        late.age_seconds = 10.0
        await late.step(2)
        assert late.samples.now() == late.now
        assert late.lags == [150, 0]
        asked = len(late.asked)
        await late.step(3)
        assert len(late.asked) == asked


async def test_a_server_that_does_not_say_is_asked_again_later_and_is_on_time() -> None:
    steps = int(UNANSWERED_SECONDS // STEP)
    async with Late(None).serving() as late:
        await late.step(steps)
        assert len(late.asked) == 1
        await late.step(steps)
    assert len(late.asked) == 2
    assert late.samples.lag_seconds == 0


async def test_one_namespace_does_not_show_whether_all_targets_are_late() -> None:
    async with Late(150.0).serving(namespace_parameter="namespace") as late:
        await late.step(12)
    assert late.asked == []
    assert late.samples.lag_seconds == 0


@pytest.mark.parametrize("program", each())
async def test_on_a_real_server_the_newest_sample_of_all_targets_counts(
    program: str, tmp_path: Path
) -> None:
    """One target is down, which is no sample missing; both are as late."""
    clock, stated = Clock(), list[facts.Fact]()
    async with (
        KINDS[program](tmp_path) as server,
        connected(server.url, stated.append, clock) as source,
    ):
        await source.synchronize()
        clock.now -= 600  # VictoriaMetrics answers about no time to come
        for _ in range(11):
            now = source.now() + source.lag_seconds
            parts: list[Up | Gpu] = [
                Up(),
                Up(instance="10.0.0.2:9400", down=-60),
                Gpu("bert-0", 50),
            ]
            await server.write(gpus.history(now - 150, parts))
            await source.synchronize()
            observation = await source.fetch(NEED, source.instant())
            clock.now += STEP
    assert source.lag_seconds == pytest.approx(157, abs=8)
    (bert,) = observation.series
    assert observation.sample_ages == {}
    assert observation.absence_known
    assert observation.good_scrapes[bert.target][observation.at] > observation.at - STEP
