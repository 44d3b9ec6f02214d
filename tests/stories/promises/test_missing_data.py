"""Unknown is never zero: exporters and Prometheus that go away, and come back."""

import time

import grpc
import pytest

from keda_gpu_scaler.telemetry import facts
from testbed.gpus import Gpu, Up, history
from testbed.processes import until
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.stories.promises.stack import Poll, Stack, running
from tests.support.each_prometheus import ON_EVERY_SERVER

FIVE = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcdfg"]
UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
NODES = [f"10.0.0.{number}:9400" for number in range(5)]
SHORT = {"maxAge": "5s", "warmup": "0s", "window": "5s", "activationWindow": "5s"}


def _cluster(last: Up) -> list[Gpu | Up]:
    """Five nodes with a busy pod each; the health of the last node's exporter is `last`."""
    ends = last.down if last.down is not None else last.gone
    busy = [Gpu(pod, 90, instance=node) for pod, node in zip(FIVE[:-1], NODES[:-1], strict=True)]
    lost = Gpu(FIVE[-1], 90, instance=NODES[-1], end=ends)
    return [*(Up(instance=node) for node in NODES[:-1]), last, *busy, lost]


@ON_EVERY_SERVER
@pytest.mark.parametrize("seconds", [-15.0, -45.0, -90.0])
@pytest.mark.parametrize("how", ["down", "gone"])
async def test_an_exporter_of_five_that_is_lost_never_leads_to_a_scale_in(
    prometheus: PrometheusServer, how: str, seconds: float
) -> None:
    """However long ago it was lost, also for a scaler that starts only now."""
    lost = Up(instance=NODES[-1], down=seconds if how == "down" else None)
    if how == "gone":
        lost = Up(instance=NODES[-1], gone=seconds)
    await prometheus.write(history(prometheus.now(), _cluster(lost)))
    async with running(prometheus.url, step="15s") as stack:
        poll = await stack.poll()
    assert poll.active
    assert poll.value is None or poll.value == 450


@ON_EVERY_SERVER
@pytest.mark.parametrize("stuck", [1, 5])
async def test_pods_whose_average_is_stuck_at_0_are_measured_by_their_samples(
    prometheus: PrometheusServer, stuck: int
) -> None:
    averages = [0.0 if number < stuck else 0.9 for number in range(len(FIVE))]
    shown = [
        Gpu(pod, value, instance=NODES[0], metric=metric)
        for pod, average in zip(FIVE, averages, strict=True)
        for metric, value in ((ENGINE, average), (UTIL, 90))
    ]
    await prometheus.write(history(prometheus.now(), [Up(instance=NODES[0]), *shown]))
    async with running(prometheus.url, step="15s") as stack:
        poll = await stack.poll()
    assert poll.active
    assert poll.value == 450
    (taken,) = [fact for fact in stack.seen if isinstance(fact, facts.SnapshotTaken)]
    assert taken.stuck_gpus == stuck


async def _feed(
    prometheus: PrometheusServer, value: float = 90, since: float | None = None
) -> float:
    """Store a sample of every pod and of its target for each second; return the last one's time."""
    now = int(time.time())
    target = {"job": "dcgm-exporter", "instance": "node:9400"}
    times = range(int(since or now - 300) + 1, now + 1)
    labels = {"exported_namespace": "ml", **target}
    await prometheus.write(
        [
            Series("up", target, [(moment, 1.0) for moment in times]),
            *(
                Series(
                    "DCGM_FI_DEV_GPU_UTIL",
                    {**labels, "exported_pod": pod, "UUID": f"GPU-{pod}"},
                    [(moment, value) for moment in times],
                )
                for pod in FIVE
            ),
        ]
    )
    return now


async def _refused(stack: Stack) -> bool:
    """Tell whether GetMetrics is UNAVAILABLE by now; it may never answer a smaller number."""
    try:
        value = await stack.value(3, onUnknown="error", **SHORT)
    except grpc.aio.AioRpcError as error:
        return error.code() is grpc.StatusCode.UNAVAILABLE
    assert value == 450
    return False


async def test_a_prometheus_that_is_gone_is_said_at_once_and_comes_back(
    prometheus: PrometheusServer,
) -> None:
    fed = await _feed(prometheus)
    async with running(prometheus.url) as stack:
        assert await stack.poll(**SHORT) == Poll(70, 450, active=True)
        await prometheus.stop()
        await until(lambda: _refused(stack), 20, "GetMetrics is UNAVAILABLE")
        assert await stack.target(**SHORT) == 70
        for ask in (stack.value, stack.active):
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await ask(3, onUnknown="error", **SHORT)
            assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "source default" in str(failed.value.details())
        assert await stack.value(3, **SHORT) is None
        assert await stack.active(3, **SHORT)
        await prometheus.start()

        async def right_again() -> bool:
            nonlocal fed
            fed = await _feed(prometheus, 94, since=fed)
            return await stack.value(**SHORT) == 470

        await until(right_again, 20, "the new value is answered")
