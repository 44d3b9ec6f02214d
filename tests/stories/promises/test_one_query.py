"""One query for all triggers: a thousand triggers cost Prometheus what one does."""

import asyncio
import math
import time
from collections.abc import Iterator

import pytest

from testbed.gpus import Gpu, Up, history
from testbed.processes import until
from testbed.prometheus import PrometheusServer
from testbed.triggers import reference
from tests.stories.promises.stack import Stack, running
from tests.support import kube_state
from tests.support.kube_state import KubePod

TRIGGERS = 1000
ROUNDS = 4
STEP_SECONDS = 15.0
ROUND_SECONDS = 15.0
"""Four rounds are a minute: one poll more than KEDA and the HPA make at their defaults."""
OTHERS = 12
"""The clock, the last hour, the exporters, kube-state-metrics: none grows with the triggers."""
KINDS = ("snapshot", "age", "evidence", "clock", "history", "jobs", "exporters", "lag")


def _workloads() -> Iterator[str]:
    for number in range(TRIGGERS):
        yield f"model-{number}"


async def _ask(stack: Stack, name: str) -> None:
    """Ask what KEDA asks for one trigger of its own workload."""
    metadata = {"workload": name}
    await stack.stub.GetMetricSpec(reference(name, **metadata))
    assert await stack.value(**metadata) == 50
    assert await stack.active(**metadata)


async def _answers(stack: Stack) -> bool:
    return await stack.value(workload=next(_workloads())) is not None


async def _round(stack: Stack, begin: float) -> None:
    """Poll every trigger once, spread over the round as KEDA's loops are."""
    loop = asyncio.get_running_loop()
    for number, name in enumerate(_workloads()):
        at = begin + number * ROUND_SECONDS / TRIGGERS
        await asyncio.sleep(max(0.0, at - loop.time()))
        await _ask(stack, name)


async def _settled(stack: Stack, prometheus: PrometheusServer, before: float) -> float:
    """Return how often Prometheus was asked, once each query is accounted for by its kind.

    A fetch may be on its way when the last poll is over: Prometheus counts it before its answer is
    here. One that was given up on a busy machine may never have reached it.
    """

    async def is_settled() -> bool:
        counted = await prometheus.requests() - before
        return sum(stack.queries(kind) for kind in KINDS) >= counted

    await until(is_settled, 30, "every request is one of these kinds")
    return await prometheus.requests() - before


@pytest.mark.slow(minutes=1)
async def test_a_thousand_triggers_cost_one_snapshot_query_per_step(
    prometheus: PrometheusServer,
) -> None:
    """Counted by Prometheus itself, over a minute."""
    now = time.time()
    pods = [Gpu(f"{name}-7b6667bd9-bbbbb", 50) for name in _workloads()]
    await prometheus.write(history(now, [Up(), *pods]))
    listed = [KubePod(name=pod.pod, owner=("ReplicaSet", pod.pod[:-6]), begin=-60) for pod in pods]
    await prometheus.write(kube_state.history(now, [kube_state.up(), *listed]))
    async with running(prometheus.url, step=f"{STEP_SECONDS:g}s") as stack:
        before, loop = await prometheus.requests(), asyncio.get_running_loop()
        begin = loop.time()
        # The first query is by far the largest, and no trigger waits for it longer than KEDA would.
        await until(lambda: _answers(stack), 60, "there is a first snapshot")
        for _ in range(ROUNDS):
            await _round(stack, loop.time())
        counted = await _settled(stack, prometheus, before)
        steps = math.ceil((loop.time() - begin) / STEP_SECONDS) + 1
        # The first answer shows which jobs there are; the question comes again with their health.
        assert stack.queries("snapshot") <= steps + 1
        assert stack.queries("evidence") <= steps
        # Nothing is scraped here, so a minute later the age of the newest sample is asked for too.
        assert stack.queries("lag") <= steps
        assert counted - stack.queries("lag") <= 3 * steps + OTHERS
