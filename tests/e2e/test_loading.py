"""Models that load for long, idle or at 100 %: loading counts neither as work nor as idleness.

Where pod statuses are known, a pod itself reports when it is Ready. By exporters alone `warmup`
stands in for that, and has to be longer than the loading: the same triggers serve for both.
"""

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import evidences, router, streams, waking
from tests.e2e.lab import COOLDOWN_SECONDS, Lab
from tests.e2e.under_load import goes_to_zero

LOADING_SECONDS = 6
WARMUP = "12s"
"""A pod's series begin when it is placed."""
LONGER_THAN_THE_WARMUP = 16
AT_FULL_LOAD = 'count(max_over_time(DCGM_FI_DEV_GPU_UTIL{pod!=""}[2m]) == 100)'


@evidences.each(core=EvidenceSource.KUBE_STATE_METRICS)
async def test_a_model_that_is_woken_and_loads_at_100_percent_stays_alone(lab: Lab) -> None:
    await lab.deploy("bert", loading_percent=100, startup_seconds=LOADING_SECONDS)
    triggers = lab.gpu("bert", warmup=WARMUP), lab.router("bert")
    await lab.autoscale("bert", *triggers, min_replicas=0)
    await lab.offer("bert", 30)
    await lab.reaches("bert", 1)
    await lab.prometheus.wait_for(f"{AT_FULL_LOAD} >= 1")
    await lab.stays("bert", 1, for_seconds=LONGER_THAN_THE_WARMUP)

    await goes_to_zero(lab)
    assert lab.path("bert") == [0, 1, 0], lab.story()


@evidences.each()
async def test_replicas_that_load_at_100_percent_ask_for_no_more_of_them(lab: Lab) -> None:
    await lab.deploy(
        "bert", replicas=1, load=160, loading_percent=100, startup_seconds=LOADING_SECONDS
    )
    # 100 %, which is all that one can show, asks for 2; 160 over 70 is 2.3, so 3.
    await lab.autoscale("bert", lab.gpu("bert", warmup=WARMUP), min_replicas=0)
    await lab.reaches("bert", 3)
    await lab.prometheus.wait_for(f"{AT_FULL_LOAD} >= 3")
    await lab.stays("bert", 3, for_seconds=LONGER_THAN_THE_WARMUP)

    assert lab.path("bert") == [1, 2, 3], lab.story()
    await goes_to_zero(lab)


async def wake_and_forget(lab: Lab) -> None:
    """Offer a load that wakes a workload and ends: from then on only its own pod keeps it."""
    await lab.offer("bert", 30)

    async def woken() -> bool:
        return lab.replicas("bert") == 1

    await lab.wait(woken, "bert is woken")
    await lab.offer("bert", 0)


@evidences.each()
async def test_a_start_longer_than_the_cooldown_is_not_killed(lab: Lab) -> None:
    # Longer than other scenarios: a start of a minute is what is claimed, and cooldowns are long.
    await lab.deploy("bert", startup_seconds=60)
    demand = router.offered(lab.name, "bert")
    trigger = streams.push(lab, "bert", warmup="66s", demandQuery=demand)
    await waking.asleep(lab, "bert", trigger, cooldown_seconds=20)
    await lab.offer("bert", 30)
    await waking.wakes(lab, "bert")
    await lab.offer("bert", 0)
    await waking.poll_often(lab, "bert")
    await lab.reaches("bert", 1)

    await lab.reaches("bert", 0)
    assert lab.path("bert") == [0, 1, 0], lab.story()


@evidences.each()
async def test_a_pod_that_is_not_ready_in_time_is_given_back(lab: Lab) -> None:
    await lab.deploy("bert", startup_seconds=3600)
    too_long = 3 * COOLDOWN_SECONDS
    times = {"startTimeout": f"{too_long}s", "warmup": f"{too_long}s"}
    await lab.autoscale("bert", lab.gpu("bert", **times), lab.router("bert"), min_replicas=0)
    await wake_and_forget(lab)
    woken = lab.timeline.now_seconds
    await lab.stays("bert", 1, for_seconds=too_long)

    await lab.reaches("bert", 0)
    assert lab.path("bert", woken) == [1, 0], lab.story()
    assert lab.timeline.path("bert", "ready") == [0], lab.story()
