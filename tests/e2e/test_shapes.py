"""The shapes a ScaledObject and its workload come in, each at the number of its own load."""

import pytest

from tests.e2e.lab import POLLING_SECONDS, Lab


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
    for name in names:

        def settled(name: str = name) -> bool:
            return lab.path(name, lab.timeline.now_seconds - 8) == [3]

        await lab.wait(settled, f"{name} stays at 3 replicas")
    for name in names:
        await lab.offer(name, 0)
    for name in names:
        await lab.reaches(name, 1)


@pytest.mark.core
async def test_a_stateful_set_counts_pods_and_knows_a_name_that_comes_back(lab: Lab) -> None:
    # 3.6 GPUs' worth of load on pods of two GPUs is 180 % of a pod, and 180 / 70 is 2.6.
    await lab.deploy("llama", kind="StatefulSet", replicas=1, gpus=2, load=360)
    await lab.autoscale("llama", lab.gpu("statefulset/llama"), kind="StatefulSet")
    await lab.reaches("llama", 3)
    await lab.stays("llama", 3, for_seconds=8)

    await lab.offer("llama", 0)
    await lab.reaches("llama", 1)
    await lab.offer("llama", 360)
    await lab.reaches("llama", 3)
    assert lab.path("llama")[:3] == [1, 2, 3], lab.story()
    assert lab.path("llama")[-3:] == [1, 2, 3], lab.story()
