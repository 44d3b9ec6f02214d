"""A recipe of 2017, in its own form and without an alert: the cluster's average is above 45 %.

Then, an alert called a webhook that added a node. Here the alert wakes a second pool and keeps it
awake, and that is all it does; the same average as a demand also says how many replicas there are.
"""

from tests.e2e import alerting, streams, waking
from tests.e2e.alertmanager import Alertmanager, rule
from tests.e2e.lab import Lab
from tests.e2e.test_recipes_from_zero import demand

AVERAGE = "avg(DCGM_FI_DEV_GPU_UTIL)"
LEVEL = "45"
REPLICAS, GPUS_EACH = 5, 4
"""They hold 20 of the lab's 24 GPUs; the pools get the other four."""
PER_AVERAGE = 24
"""What is offered in percent of one GPU, for one percent on average over all GPUs."""
POOLS = "asked", "alerted"


async def test_the_cluster_above_45_percent_wakes_a_pool_by_an_alert_and_sizes_one_by_a_demand(
    lab: Lab, alertmanager: Alertmanager
) -> None:
    await alerting.open_webhook(lab, OWN_PROMQL="allow")
    await alertmanager.notify(alerting.url(lab.scaler), alerting.TOKEN)
    await lab.deploy("rest", replicas=REPLICAS, gpus=GPUS_EACH, load=30 * PER_AVERAGE)
    await lab.reaches("rest", REPLICAS)
    asked = demand(lab, "cluster-average") | {"threshold": LEVEL, "demandThreshold": "30"}
    await lab.deploy("alerted")
    await waking.asleep(lab, "alerted", streams.push(lab, "alerted", threshold=LEVEL))
    await lab.deploy("asked")
    await waking.asleep(lab, "asked", streams.push(lab, "asked", **asked))
    labels = {"namespace": lab.name} | alerting.about("alerted")
    await alerting.judge(lab, alertmanager, rule("Busy", f"{AVERAGE} > {LEVEL}", **labels))
    await lab.stays("alerted", 0, for_seconds=3)

    await lab.offer("rest", 75 * PER_AVERAGE)
    for name in POOLS:
        await waking.wakes(lab, name)
        await waking.poll_often(lab, name)
    # 75 / 30 is 2.5. An alert has no size: one replica stays one.
    await lab.reaches("asked", 3)
    assert lab.path("alerted") == [0, 1], lab.story()

    await lab.offer("rest", 50 * PER_AVERAGE)
    await lab.reaches("asked", 2)
    assert lab.path("alerted") == [0, 1], lab.story()

    await lab.offer("rest", 30 * PER_AVERAGE)
    for name in POOLS:
        await lab.reaches(name, 0)
    assert lab.path("alerted") == [0, 1, 0], lab.story()
    steps = lab.path("asked")
    top = steps.index(3)
    assert steps[: top + 1] == sorted(steps[: top + 1]), lab.story()
    assert steps[top:] == sorted(steps[top:], reverse=True), lab.story()
