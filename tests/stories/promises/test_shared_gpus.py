"""Pods that share one GPU: each counts, whichever of them an exporter happens to show."""

import itertools
from collections.abc import Iterator

import pytest

from tests.stories.promises.stack import Poll, running
from tests.support.gpus import INTERVAL_SECONDS, Gpu, Up, history
from tests.support.prometheus import ON_EVERY_SERVER, PrometheusServer
from tests.support.series import STALE, Series

pytestmark = ON_EVERY_SERVER

PODS = [f"bert-7b6667bd9-{letter * 5}" for letter in "bcd"]
UTIL = "DCGM_FI_DEV_GPU_UTIL"
SCRAPES = 60


def _taking_turns(now: float, order: list[str]) -> Iterator[Series]:
    """Yield the series of one GPU, with another pod at each scrape, marked as such."""
    times = [now - INTERVAL_SECONDS * back for back in reversed(range(SCRAPES))]
    turns = list(zip(times, itertools.cycle(order)))
    for pod in PODS:
        labels = Gpu(pod, 90, uuid="GPU-shared").series(now).labels
        samples = [(at, 90.0 if turn == pod else STALE) for at, turn in turns]
        yield Series(UTIL, labels, samples)


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(PODS, id="in turn"),
        pytest.param([PODS[0], PODS[0], PODS[1], PODS[2], PODS[2]], id="by chance"),
    ],
)
async def test_pods_that_take_turns_on_a_time_sliced_gpu_all_count(
    prometheus: PrometheusServer, order: list[str]
) -> None:
    now = prometheus.now()
    await prometheus.write([*history(now, [Up()]), *_taking_turns(now, order)])
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll(warmup="0s") == Poll(70, 270, active=True)


async def test_copies_of_a_device_count_once_for_each_pod(prometheus: PrometheusServer) -> None:
    """Virtual mode: the device's own series, and one for each replica of the resource."""
    parts = [
        Gpu("device", 90, uuid="GPU-shared", convention="idle"),
        *(
            Gpu(pod, 90, uuid="GPU-shared", extra={"vgpu": str(number)})
            for number, pod in enumerate([*PODS, PODS[0]])
        ),
    ]
    await prometheus.write(history(prometheus.now(), [Up(), *parts]))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, 270, active=True)


async def test_a_pod_that_leaves_a_shared_gpu_has_ended_though_the_device_is_busy(
    prometheus: PrometheusServer,
) -> None:
    parts = [
        Gpu("device", 90, uuid="GPU-shared", convention="idle"),
        Gpu(PODS[0], 90, uuid="GPU-shared", extra={"vgpu": "0"}),
        Gpu(PODS[1], 90, uuid="GPU-shared", extra={"vgpu": "1"}, end=-120),
    ]
    await prometheus.write(history(prometheus.now(), [Up(), *parts]))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, 90, active=True)


async def test_a_completed_pod_that_is_still_shown_adds_nothing(
    prometheus: PrometheusServer,
) -> None:
    """The kubelet can list the GPUs of a pod that has completed for as long as it exists."""
    parts = [Gpu(PODS[0], 90), Gpu(PODS[1], 0)]
    await prometheus.write(history(prometheus.now(), [Up(), *parts]))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.poll() == Poll(70, 90, active=True)


async def test_a_series_whose_labels_change_is_still_one_gpu(
    prometheus: PrometheusServer,
) -> None:
    """The exporter was renamed, restarted and upgraded: none of it is the GPU's identity."""
    changes = [
        {"Hostname": "exporter-a", "pci_bus_id": "00000000:04:00.0"},
        {"hostname": "node-1", "pci_bus_id": "00000000:04:00.0", "gpu": "1"},
        {"hostname": "node-1", "vgpu": "3", "DCGM_FI_DRIVER_VERSION": "570"},
    ]
    parts = [
        Gpu(PODS[0], 90, extra=labels, begin=begin, end=end)
        for labels, (begin, end) in zip(
            changes, [(-900, -60), (-60, -15), (-15, None)], strict=True
        )
    ]
    await prometheus.write(history(prometheus.now(), [Up(), *parts]))
    async with running(prometheus.url, step="15s") as stack:
        assert await stack.value(gpuAggregation="sum") == 90
