"""The right number by default, from exactly the workload's pods."""

import pytest

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.autoscaling.rules import Metric, Scale
from tests.stories.promises.stack import Poll, running
from tests.support.gpus import Gpu, Up, history
from tests.support.prometheus import ON_EVERY_SERVER, PrometheusServer

pytestmark = ON_EVERY_SERVER

LETTERS = "bcdfg"
FIVE = [f"bert-7b6667bd9-{letter * 5}" for letter in LETTERS]
CANARY = Gpu("bert-canary-7b6667bd9-bbbbb", 100)
TWO_NODES = (Up(), Up(instance="10.0.0.2:9400"))


def _two_gpus(pod: str) -> list[Gpu]:
    return [Gpu(pod, 80, uuid=f"GPU-{pod}-0"), Gpu(pod, 100, uuid=f"GPU-{pod}-1")]


@pytest.mark.parametrize(
    ("parts", "threshold", "value", "replicas"),
    [
        pytest.param([Gpu(FIVE[0], 23)], "20", 23, (1, 2), id="one pod at 23 percent"),
        pytest.param([Gpu(FIVE[0], 22)], "20", 22, (1, 1), id="22 of 20 is on target"),
        pytest.param([Gpu(pod, 90) for pod in FIVE], "70", 450, (5, 7), id="five at 90"),
        pytest.param(
            [gpu for pod in FIVE for gpu in _two_gpus(pod)], "70", 450, (5, 7), id="two GPUs a pod"
        ),
        pytest.param(
            [
                Up(job="again"),
                *(Gpu(pod, 90, job=job) for pod in FIVE for job in ("again", "dcgm-exporter")),
            ],
            "70",
            450,
            (5, 7),
            id="two jobs scrape the same exporters",
        ),
        pytest.param([*(Gpu(pod, 90) for pod in FIVE), CANARY], "70", 450, (5, 7), id="a canary"),
        pytest.param(
            [
                Gpu(pod, 90, convention=scheme, instance=instance)
                for pod, scheme, instance in zip(
                    FIVE,
                    ("exported", "plain", "old", "exported", "plain"),
                    ("10.0.0.1:9400", "10.0.0.2:9400") * 3,
                    strict=False,
                )
            ],
            "70",
            450,
            (5, 7),
            id="three label schemes at once",
        ),
    ],
)
async def test_the_number_is_right_and_the_hpa_makes_the_right_replicas_of_it(
    prometheus: PrometheusServer,
    parts: list[Gpu | Up],
    threshold: str,
    value: float,
    replicas: tuple[int, int],
) -> None:
    await prometheus.write(history(prometheus.now(), [*TWO_NODES, *parts]))
    async with running(prometheus.url, step="15s") as stack:
        poll = await stack.poll(threshold=threshold)
    assert poll == Poll(float(threshold), value, active=True)
    now, wanted = replicas
    metric = Metric(value=poll.value, target=poll.target)
    step = rules.recommend([metric], Scale.steady(now))
    assert step is not None
    assert step.replicas == wanted


async def test_a_young_pod_is_not_measured_before_its_warm_up_is_over(
    prometheus: PrometheusServer,
) -> None:
    young = Gpu(FIVE[0], 90, begin=-60)
    await prometheus.write(history(prometheus.now(), [Up(), young]))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, None, active=True)
        assert await stack.poll(warmup="0s") == Poll(70, 90, active=True)


async def test_an_idle_workload_is_zero_and_inactive(prometheus: PrometheusServer) -> None:
    await prometheus.write(history(prometheus.now(), [Up(), Gpu(FIVE[0], 1)]))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, 1, active=False)


async def test_a_workload_whose_pods_have_ended_holds_and_is_inactive(
    prometheus: PrometheusServer,
) -> None:
    parts: list[Gpu | Up] = [Up(), CANARY, *(Gpu(pod, 90, end=-120) for pod in FIVE)]
    await prometheus.write(history(prometheus.now(), parts))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, None, active=False)
