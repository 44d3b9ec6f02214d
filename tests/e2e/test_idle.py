"""Idle workloads go to zero in time and stay there; those used now and then do not go."""

from tests.e2e import router, streams
from tests.e2e.lab import COOLDOWN_SECONDS, Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN
from tests.e2e.waking import wakes

SHORT_LIVED = {"CONNECTION_MAX_AGE": "3s"}
"""Streams end with their connection, and KEDA opens them again."""
REST_SECONDS = COOLDOWN_SECONDS + 3
"""Between two bursts, and longer than the cooldown."""
ACTIVATION_SECONDS = REST_SECONDS + 3
"""The `activationWindow`: two bursts are never further apart."""
BURSTS = 4
"""They take 36 s: an idle workload goes after the activationWindow, the cooldown and a poll or two,
which are 20."""
BURSTY = 'DCGM_FI_DEV_GPU_UTIL{pod=~"bursty-.*"}'


async def test_a_long_idle_phase_with_whatever_happens_in_it_wakes_nothing(lab: Lab) -> None:
    await lab.scaler.restart(**SHORT_LIVED)
    await lab.deploy("encoder", replicas=1, load=1)
    await lab.deploy("bert")
    await lab.offer("requests", 0)
    demand = router.offered(lab.name, "requests")
    trigger = streams.push(lab, "bert", activationWorkload="encoder", demandQuery=demand)
    await lab.autoscale("bert", trigger, min_replicas=0)
    await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)

    lab.timeline.note("Prometheus is restarted")
    await lab.prometheus.restart()
    await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lab.timeline.note("Prometheus is restarted empty, and nothing is known of any GPU")
    for exporter in lab.exporters.values():
        await exporter.turn(Door.SHUT)
    await lab.prometheus.restart_empty()
    await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lab.timeline.note("a fresh scaler does not reach Prometheus")
    await lab.door.turn(Door.SHUT)
    await lab.scaler.restart()
    await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lab.timeline.note("all is well")
    for door in lab.door, *lab.exporters.values():
        await door.turn(Door.OPEN)
    await streams.ended(lab, "OK", 3)
    assert lab.path("bert") == [0], lab.story()
    assert await streams.last_activity(lab, "bert") is None, lab.story()

    await lab.offer("requests", 5)
    await wakes(lab, "bert")


async def test_bursts_keep_a_workload_up_and_one_without_them_is_at_zero_in_time(
    lab: Lab,
) -> None:
    for name in "bursty", "idle":
        await lab.deploy(name, replicas=1, load=30)
        window = {"activationWindow": f"{ACTIVATION_SECONDS}s"}
        await lab.autoscale(name, lab.gpu(name, **window), min_replicas=0)
    for name in "bursty", "idle":
        await lab.becomes(name, "measured")
    began = lab.timeline.now_seconds
    await lab.offer("idle", 0)
    for _ in range(BURSTS):
        await lab.offer("bursty", 60)
        await lab.prometheus.wait_for(f"{BURSTY} > 50")
        await lab.offer("bursty", 0)
        await lab.stays("bursty", 1, for_seconds=REST_SECONDS)
    [shown] = await lab.prometheus.query(f"avg_over_time(({BURSTY} > bool 0)[30s:1s])")
    assert 0 < float(shown["value"][1]) < 0.5, lab.story()
    assert lab.path("idle", began) == [1, 0], lab.story()
    assert lab.path("bursty", began) == [1], lab.story()
    await lab.reaches("bursty", 0)
