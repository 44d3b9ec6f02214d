"""Hundreds of made-up clusters: the shared snapshot, PromQL per workload and the truth agree."""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import NamedTuple

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings

from keda_gpu_scaler import trigger
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from testbed.processes import until
from testbed.prometheus import PrometheusServer
from testbed.triggers import access
from tests.support import kube_state
from tests.support.cluster_history import history
from tests.support.clusters import Cluster, Question
from tests.support.random_clusters import clusters

pytestmark = [pytest.mark.needs("prometheus"), pytest.mark.asyncio(loop_scope="module")]

ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "2"))
"""Each is a Prometheus of its own with `CLUSTERS` clusters; more of them for a longer search."""
CLUSTERS = 100
LIFE_SECONDS = 590
"""So long is there a kube-state-metrics: as long as a test's Prometheus lives."""
BEGIN_SECONDS, END_SECONDS = -480, 90
"""A history long enough for every window, and a future for a machine that is slow."""
_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=range(ROUNDS))
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PrometheusServer]:
    async with PrometheusServer(tmp_path_factory.mktemp("prometheus")) as running:
        health = kube_state.up(begin=BEGIN_SECONDS - LIFE_SECONDS)
        await running.write(kube_state.history(time.time() + LIFE_SECONDS, [health]))
        yield running


class Answer(NamedTuple):
    """What was decided at an instant, and the record of it."""

    at: float
    decision: Decision
    record: Record


class Answers:
    """What a scaler of its own answers to all triggers of one cluster, with the records of it."""

    def __init__(self, server: PrometheusServer) -> None:
        values = PrometheusSettings.model_validate({"url": server.url})
        self._source = PrometheusSource(PrometheusClient("default", values, self._note))
        self._evaluator = Evaluator({"default": self._source.ports()}, self._note)
        self._at = 0.0
        self._instants: dict[ScaledObject, float] = {}

    def _note(self, fact: facts.Fact) -> None:
        if isinstance(fact, facts.SnapshotTaken):
            self._at = fact.at
        elif isinstance(fact, facts.Evaluated):
            self._instants[fact.scaled_object] = self._at

    async def all(self, specs: dict[ScaledObject, TriggerSpec]) -> list[Answer]:
        """Ask for all of them at once."""
        try:
            return await asyncio.gather(*(self._one(*each) for each in specs.items()))
        finally:
            await self._evaluator.close()
            await self._source.close()

    async def _one(self, scaled_object: ScaledObject, spec: TriggerSpec) -> Answer:
        """Ask until there was time for an answer."""
        decision = await self._evaluator.evaluate(scaled_object, spec, None)

        async def answered() -> bool:
            nonlocal decision
            decision = await self._evaluator.evaluate(scaled_object, spec, None)
            return decision.state is not State.UNKNOWN

        await until(answered, 20, f"{spec.workload} is known: {decision.reason}")
        at = self._instants[scaled_object]
        (record,) = await self._evaluator.records(scaled_object)
        return Answer(at, decision, record)


def spec_of(cluster: Cluster, question: Question, scaled_object: ScaledObject) -> TriggerSpec:
    keys = {
        "workload": str(question.workload),
        "signal": str(cluster.signal),
        "threshold": "50",
        "activationThreshold": "5",
        "aggregation": question.aggregation,
        "gpuAggregation": question.gpu_aggregation,
    }
    if question.window is not None:
        keys["window"] = f"{question.window}s"
    return trigger.parse(scaled_object, keys, access())


@settings(
    max_examples=CLUSTERS,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(clusters())
async def test_snapshot_and_promql_give_the_number_that_is_right(
    server: PrometheusServer, cluster: Cluster
) -> None:
    cluster = replace(cluster, number=next(_numbers))
    now = time.time()
    await server.write(history(cluster, now + BEGIN_SECONDS, now + END_SECONDS))
    named = {
        ScaledObject(cluster.namespace(each.workload.namespace), f"object-{number}"): each
        for number, each in enumerate(cluster.questions)
    }
    specs = {name: spec_of(cluster, each, name) for name, each in named.items()}
    answers = await Answers(server).all(specs)
    for question, answer in zip(named.values(), answers, strict=True):
        right = pytest.approx(cluster.value(question), abs=1e-5)
        assert answer.decision.value == right, (question, answer.decision)
        value, _ = answer.record.queries
        rows = await server.query(value.text, answer.at)
        pasted = float(rows[0]["value"][1]) if rows else None
        assert pasted == right, (question, value.text)
