"""The shapes a ScaledObject and its workload come in, each at the number of its own load."""

import pytest

from tests.e2e.lab import POLLING_SECONDS, Lab

SIXTY_CHARACTERS = "stable-diffusion-xl-text-to-image-inference-service-eu-west1"


async def test_an_average_by_value_and_cached_metrics_end_where_the_sum_ends(lab: Lab) -> None:
    names = "by-value", "cached"
    for name in names:
        await lab.deploy(name, replicas=1, load=200)
    by_value = lab.gpu("by-value", aggregation="average") | {"metricType": "Value"}
    # The HPA multiplies the pods of now by an average of the whole window. Only a stabilization
    # longer than the window, as it is by default, ends the swinging after an overshoot.
    await lab.autoscale("by-value", by_value, stabilization_seconds=10)
    # KEDA asks at each poll only, and the HPA reads what the last poll left.
    cached = lab.gpu("cached") | {"useCachedMetrics": True}
    await lab.autoscale("cached", cached, polling_seconds=3 * POLLING_SECONDS)

    await lab.reaches("cached", 3)
    await _settles(lab, "by-value", 3)
    await _settles(lab, "cached", 3)
    assert lab.path("cached") == [1, 2, 3], lab.story()

    for name in names:
        await lab.offer(name, 0)
    for name in names:
        await lab.reaches(name, 1)


async def test_the_memory_a_model_fills_keeps_it_up_only_above_its_activation_threshold(
    lab: Lab,
) -> None:
    thresholds = {"freed": "80", "kept": "50"}
    for name in thresholds:
        await lab.deploy(name, replicas=1)
    # Load without a sample is an error, and KEDA can take errors for idle: both are measured first.
    await lab.prometheus.wait_for('count(DCGM_FI_DEV_FB_USED{pod!=""} offset 3s) == 2')
    for name, activation_threshold in thresholds.items():
        # A pod fills 60 % of its GPU's memory, busy or not.
        memory = {"threshold": "90", "activationThreshold": activation_threshold}
        triggers = lab.gpu(name), lab.gpu(name, signal="memory", **memory), lab.router(name)
        await lab.autoscale(name, *triggers, min_replicas=0)
    await lab.reaches("freed", 0)

    await lab.offer("freed", 180)
    # Three by utilization. By memory, 3 * 60 / 90, two would do: the HPA takes the larger.
    await lab.reaches("freed", 3)
    await lab.stays("freed", 3, for_seconds=8)
    assert "60" in lab.timeline.path("freed", "hpa metric 1"), lab.story()
    assert lab.path("kept") == [1], lab.story()


@pytest.mark.core
async def test_a_stateful_set_counts_pods_and_knows_a_name_that_comes_back(lab: Lab) -> None:
    # 3.6 GPUs' worth of load on pods of two GPUs is 180 % of a pod, and 180 / 70 is 2.6.
    await lab.deploy("llama", kind="StatefulSet", replicas=1, gpus=2, load=360)
    await lab.autoscale("llama", lab.gpu("statefulset/llama"))
    await lab.reaches("llama", 3)
    await lab.stays("llama", 3, for_seconds=8)

    await lab.offer("llama", 0)
    await lab.reaches("llama", 1)
    await lab.offer("llama", 360)
    await lab.reaches("llama", 3)
    assert lab.path("llama")[:3] == [1, 2, 3], lab.story()
    assert lab.path("llama")[-3:] == [1, 2, 3], lab.story()


async def test_neighbours_follow_each_its_own_load_whatever_they_are_called(lab: Lab) -> None:
    # At a threshold of 70: 320 / 70 is 4.6, 180 / 70 is 2.6, 100 / 70 is 1.4.
    loads = {"bert": 50, "bert-canary": 320, "bert-7b": 100, SIXTY_CHARACTERS: 180}
    wanted = {"bert": 1, "bert-canary": 5, "bert-7b": 2, SIXTY_CHARACTERS: 3}
    for name, load in loads.items():
        await lab.deploy(name, replicas=1, load=load)
        # KEDA's own name for an HPA is nine characters longer than the ScaledObject's, 63 at most.
        short = {"horizontalPodAutoscalerConfig": {"name": f"hpa-{name[:50]}"}}
        await lab.autoscale(name, lab.gpu(name), advanced=short)
    for name, replicas in wanted.items():
        await lab.reaches(name, replicas)
    await lab.stays("bert-canary", 5, for_seconds=8)
    assert lab.path("bert") == [1], lab.story()

    await lab.offer("bert-canary", 0)
    await lab.offer("bert", 100)
    await lab.reaches("bert-canary", 1)
    await lab.reaches("bert", 2)
    await lab.stays("bert-canary", 1, for_seconds=8)
    assert lab.path("bert-7b") == [1, 2], lab.story()
    assert lab.path(SIXTY_CHARACTERS) == [1, 2, 3], lab.story()


async def _settles(lab: Lab, workload: str, replicas: int) -> None:
    """Wait until a workload has had this many replicas for a while, whatever it had before."""

    async def settled() -> bool:
        return lab.path(workload, lab.timeline.now_seconds - 8) == [replicas]

    await lab.wait(settled, f"{workload} stays at {replicas} replicas")
