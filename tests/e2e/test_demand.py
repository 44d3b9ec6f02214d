"""What a demand does beside the GPUs' load: it scales at once, and does no harm when it is lost."""

from tests.e2e import router
from tests.e2e.counts import Counts
from tests.e2e.lab import COOLDOWN_SECONDS, Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, the_hpa_has_a_number

MOST = 12
LOADING_SECONDS = 6
AT_ONCE = {"scaleUp": {"policies": [{"type": "Pods", "value": MOST, "periodSeconds": 15}]}}
"""The HPA may create all replicas in one step: compared is how soon it knows of the load."""
BROKEN = {
    # Prometheus refuses to match many with many, and only notices once there are many.
    "refused": "up * on () up",
    "nothing": "no_such_metric",
    "several": "up",
}
SCALED = {"demandQuery": BROKEN["nothing"], "demandThreshold": "70"}
LONGER_THAN_IDLE = LONGER_THAN_THE_COOLDOWN + COOLDOWN_SECONDS
"""A workload with a known demand of nothing is at zero by then."""


async def test_demand_has_all_twelve_ready_before_utilization_has_asked_for_half_of_them(
    lab: Lab,
) -> None:
    demand = router.offered(lab.name, "by-demand")
    asked = {"by-demand": {"demandQuery": demand, "demandThreshold": "70"}, "by-load": {}}
    for name, keys in asked.items():
        await lab.deploy(name, replicas=1, load=70, startup_seconds=LOADING_SECONDS)
        advanced = {"horizontalPodAutoscalerConfig": {"behavior": AT_ONCE}}
        await lab.autoscale(name, lab.gpu(name, **keys), max_replicas=MOST, advanced=advanced)
    for name in asked:
        await lab.becomes(name, "measured")
        await the_hpa_has_a_number(lab, name)
    for name in asked:
        await lab.offer(name, 70 * MOST)
    for name in asked:
        await lab.reaches(name, MOST)

    assert lab.path("by-demand") == [1, MOST], lab.story()
    ready = lab.timeline.when("by-demand", "ready", MOST)
    assert ready < lab.timeline.when("by-load", "replicas", 7), lab.story()
    # Full replicas show no more than 100 %, and ask for 1.7 times as many.
    assert lab.path("by-load") == [1, 2, 4, 7, 12], lab.story()


async def test_a_broken_demand_changes_no_replicas_and_blocks_only_the_step_to_zero(
    lab: Lab, keda_counts: Counts
) -> None:
    for name, query in BROKEN.items():
        await lab.deploy(name, replicas=1, load=120)
        await lab.autoscale(name, lab.gpu(name, demandQuery=query), min_replicas=0)
    # 120 % over 70 % per replica is 1.7. The demand is asked for only when no GPU is busy.
    await _all_reach(lab, 2, load=120)
    known = [await keda_counts.errors(lab.name, name) for name in BROKEN]
    await _all_reach(lab, 1, load=0)
    await lab.stays("nothing", 1, for_seconds=LONGER_THAN_IDLE)
    assert [lab.path(name) for name in BROKEN] == [[1, 2, 1]] * len(BROKEN), lab.story()
    assert [await keda_counts.errors(lab.name, name) for name in BROKEN] == known, lab.story()

    lab.timeline.note("the demands are repaired")
    for name in BROKEN:
        trigger = lab.gpu(name, demandQuery=router.offered(lab.name, name))
        await lab.autoscale(name, trigger, min_replicas=0)
    await _all_reach(lab, 0, load=0)


async def _all_reach(lab: Lab, replicas: int, *, load: float) -> None:
    for name in BROKEN:
        await lab.offer(name, load)
    for name in BROKEN:
        await lab.reaches(name, replicas)


async def test_a_broken_demand_that_scales_as_well_gives_nothing_away_until_it_is_known(
    lab: Lab, keda_counts: Counts
) -> None:
    await lab.deploy("bert", replicas=1, load=120)
    await lab.autoscale("bert", lab.gpu("bert", **SCALED), min_replicas=0)
    # The load alone decides upwards. Downwards the HPA wants to know every metric.
    await lab.reaches("bert", 2)
    errors = await keda_counts.errors(lab.name, "bert")
    await lab.offer("bert", 0)
    await lab.stays("bert", 2, for_seconds=LONGER_THAN_IDLE)
    assert await keda_counts.errors(lab.name, "bert") == errors, lab.story()

    known = SCALED | {"demandQuery": router.offered(lab.name, "bert")}
    lab.timeline.note("the demand is repaired")
    await lab.autoscale("bert", lab.gpu("bert", **known), min_replicas=0)
    await lab.reaches("bert", 0)


async def test_a_demand_nobody_knows_means_at_zero_what_the_trigger_says(
    lab: Lab, keda_counts: Counts
) -> None:
    names = "error", "inactive", "active"
    for name in names:
        await lab.deploy(name)
        # The router does not show it before it was offered something for the first time.
        demand = {"demandQuery": router.offered(lab.name, f"for-{name}"), "demandOnEmpty": name}
        await lab.autoscale(name, lab.gpu(name, **demand), min_replicas=0)
    await lab.reaches("active", 1)
    errors = [await keda_counts.errors(lab.name, name) for name in names]
    await lab.stays("active", 1, for_seconds=LONGER_THAN_IDLE)
    assert (lab.path("error"), lab.path("inactive")) == ([0], [0]), lab.story()
    failed, *others = [await keda_counts.errors(lab.name, name) for name in names]
    assert (failed > errors[0], others) == (True, errors[1:]), lab.story()

    for name in names:
        await lab.offer(f"for-{name}", 5)
    for name in names:
        await lab.reaches(name, 1)
    for name in names:
        await lab.offer(f"for-{name}", 0)
    for name in names:
        await lab.reaches(name, 0)
    assert [lab.path(name)[-2:] for name in names] == [[1, 0]] * len(names), lab.story()
