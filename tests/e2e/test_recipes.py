"""The numbers of common recipes: what they promise, and where they stop.

The recipes count `pods * utilization / target`, rounded up: 23 % at a target of 20 % is two pods.
The common one asks KEDA's prometheus trigger for the average and keeps KEDA's default metric type,
which divides by the replicas a second time.
"""

from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest


async def test_one_pod_at_23_percent_of_20_becomes_two_and_is_one_again_afterwards(
    lab: Lab,
) -> None:
    # An HPA that shows whole numbers says 22/20 of a GPU at 22.4 %, as the recipe does.
    offered = {"at-23": 23, "at-22": 22.4, "at-the-edge": 22}
    for name, percent in offered.items():
        await lab.deploy(name, replicas=1, load=percent)
        await lab.autoscale(name, lab.gpu(name, threshold="20"), max_replicas=10)
    await lab.reaches("at-23", 2)
    await lab.reaches("at-22", 2)
    # Two pods at 11.5 % are far below the target, and still what 23 % asks for.
    await lab.stays("at-23", 2, for_seconds=10)

    await lab.offer("at-23", 0)
    await lab.offer("at-22", 0)
    await lab.reaches("at-23", 1)
    await lab.reaches("at-22", 1)
    assert lab.path("at-23") == lab.path("at-22") == [1, 2, 1], lab.story()
    # 22 and not a thousandth more is the last load the HPA's 10 % of tolerance leaves alone.
    assert lab.timeline.last("at-the-edge", "hpa metric 0") == "22", lab.story()
    assert lab.path("at-the-edge") == [1], lab.story()


async def test_the_sum_reaches_twelve_where_the_common_average_recipe_stays_at_two(
    lab: Lab,
) -> None:
    await lab.deploy("average-of-five", replicas=5, load=800)
    await lab.reaches("average-of-five", 5)
    for name in ("sum", "average"):
        await lab.deploy(name, replicas=1, load=800)
    await lab.autoscale("sum", lab.gpu("sum", threshold="70"), max_replicas=12)
    for name in ("average", "average-of-five"):
        recipe = _common_recipe(lab, name)
        # Long enough to forgive the recipe the second in which a new pod shows 0 %.
        await lab.autoscale(name, recipe, max_replicas=12, stabilization_seconds=10)

    await lab.reaches("sum", 12)
    await lab.stays("sum", 12, for_seconds=10)
    climb = lab.path("sum")
    assert climb == sorted(climb), lab.story()
    # Every GPU of these two is at 100 %, and 100 / 70 is two, however many there are.
    assert lab.path("average") == [1, 2], lab.story()
    assert lab.path("average-of-five") == [5, 2], lab.story()


def _common_recipe(lab: Lab, name: str) -> Manifest:
    """Return the common first trigger."""
    selector = f'namespace="{lab.name}",pod=~"{name}-[a-z0-9]+-[a-z0-9]+"'
    return lab.keda_prometheus(f"avg(DCGM_FI_DEV_GPU_UTIL{{{selector}}})", threshold="70")
