"""Exporters that die or leave discovery under a running scaler: no answer causes a scale-in."""

from contextlib import AsyncExitStack

import pytest

from tests.stories.promises.stack import Poll, running
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer
from tests.support.processes import until
from tests.support.prometheus import PrometheusServer

FIVE = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcdfg"]
SHORT = {"warmup": "0s", "window": "5s", "activationWindow": "5s"}
PATIENCE_SECONDS = 60.0
"""So long a silent pod keeps its last mean."""


def _exporter(pod: str) -> HttpServer:
    """Serve one busy GPU of one pod, as an exporter on its own node would."""
    labels = f'gpu="0",UUID="GPU-{pod}",namespace="ml",pod="{pod}",container="bert"'
    body = f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 90\n"
    return HttpServer(web.says(body, content_type="text/plain"))


def _job(exporters: list[HttpServer]) -> dict[str, object]:
    targets = [f"127.0.0.1:{exporter.port}" for exporter in exporters]
    static = [{"targets": targets, "labels": {"pod": "exporter", "namespace": "gpu-operator"}}]
    return {"job_name": "dcgm-exporter", "static_configs": static}


@pytest.mark.slow(minutes=1)
async def test_a_dead_exporter_and_one_that_left_discovery_lead_to_no_smaller_number(
    prometheus: PrometheusServer,
) -> None:
    async with AsyncExitStack() as stack:
        exporters = [await stack.enter_async_context(_exporter(pod)) for pod in FIVE]
        await prometheus.reload([_job(exporters)])
        scaler = await stack.enter_async_context(running(prometheus.url))

        async def measured() -> bool:
            return await scaler.value(**SHORT) == 450

        await until(measured, 20, "all five pods are measured")
        before = await scaler.poll(**SHORT)
        lost = _job(exporters[1:])
        exporters[1].reply = web.closes
        await prometheus.reload([lost])
        polls: list[Poll] = []

        async def held() -> bool:
            polls.append(await scaler.poll(**SHORT))
            return polls[-1].value is None

        await until(held, 2 * PATIENCE_SECONDS, "the answer is hold")
        assert before == Poll(70, 450, active=True)
        assert {poll.value for poll in polls} == {450, None}
        assert all(poll.active for poll in polls)
