"""A Prometheus in which all samples arrive late, or none any more."""

import asyncio
import time
from pathlib import Path

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.promql_texts import ON_TIME_LABEL
from keda_gpu_scaler.sources.prometheus import client
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from testbed import gpus
from testbed.clocks import Clock
from testbed.gpus import Gpu, Up
from testbed.prometheus import KINDS
from tests.sources.prometheus.scripted import ScriptedClient, rows
from tests.support.each_prometheus import each
from tests.support.prometheus_source import connected

STEP = 15.0
NEED = SnapshotQuery(Signal.UTILIZATION, "auto", frozenset({"ml"}), 300, 120)


class Late:
    """A server whose newest sample is so old (None: it does not say), and a source on it."""

    def __init__(self, age_seconds: float | None, namespace: str | None = None) -> None:
        self.age_seconds = age_seconds
        self.stated: list[facts.Fact] = []
        self._clock, self.began = Clock(0.0), time.time() // STEP * STEP
        answers = {"clock": self._tell, "age": self._ages, "lag": self._age}
        self._client = ScriptedClient(answers, self.stated.append, self._clock)
        self._client.namespace = namespace
        self.source = PrometheusSource(self._client)

    @property
    def now(self) -> float:
        return self.began + self._clock()

    @property
    def lag_queries(self) -> list[float | None]:
        """The times at which it was asked how old the newest sample is."""
        return [at for kind, _, at in self._client.queries if kind == "lag"]

    @property
    def lags(self) -> list[float]:
        return [fact.seconds for fact in self.stated if isinstance(fact, facts.LagChanged)]

    def _tell(self, _: object) -> client.Clock:
        return client.Clock(self.now, takes_long_queries=True)

    def _ages(self, _: object) -> object:
        is_fresh = self.age_seconds is not None and self.age_seconds <= 60
        return rows({ON_TIME_LABEL: "1"}) if is_fresh else []

    def _age(self, _: object) -> object:
        if self.age_seconds is None:
            return errors.SourceRefusedError("too many samples")
        return self.age_seconds if self.age_seconds <= 600 else None

    async def step(self, count: int = 1) -> None:
        """Let a step pass, as often as said, and fetch as the evaluator does."""
        for _ in range(count):
            self._clock.now += STEP
            await asyncio.gather(self.source.synchronize(), self.source.synchronize())
            await self.source.fetch(NEED, self.source.instant())


async def test_where_all_are_late_the_clock_is_as_late_until_they_are_on_time_again() -> None:
    late = Late(55.0)
    await late.step(3)
    assert late.lag_queries == []
    late.age_seconds = 150.0
    await late.step(10)
    assert late.source.now() == late.now - 150
    assert late.lag_queries == [late.began + STEP * number for number in range(5, 14)]
    late.age_seconds = 700.0  # of which the server shows nothing
    await late.step(2)
    assert late.lags == [150]
    late.age_seconds = 10.0
    await late.step(2)
    assert late.source.now() == late.now
    assert late.lags == [150, 0]
    count = len(late.lag_queries)
    await late.step(3)
    assert len(late.lag_queries) == count


@pytest.mark.parametrize(
    ("age_seconds", "namespace"),
    [
        pytest.param(None, None, id="the server does not say"),
        pytest.param(150.0, "ml", id="one namespace does not show whether all are late"),
    ],
)
async def test_without_an_answer_about_all_targets_there_is_no_lag(
    age_seconds: float | None, namespace: str | None
) -> None:
    late = Late(age_seconds, namespace)
    await late.step(12)
    assert late.source.lag_seconds == 0


@pytest.mark.parametrize("program", each())
async def test_on_a_real_server_the_newest_sample_of_all_targets_counts(
    program: str, tmp_path: Path
) -> None:
    """One target is down, which is no sample missing; both are as late."""
    clock, began, stated = Clock(0.0), time.time(), list[facts.Fact]()
    async with (
        KINDS[program](tmp_path) as server,
        connected(server.url, stated.append, clock, lambda: began + clock()) as source,
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
