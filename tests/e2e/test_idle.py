"""What is idle goes to zero in time and stays there; what is in use now and then does not go."""

import logging

from tests.e2e import router, streams
from tests.e2e.lab import COOLDOWN_SECONDS, POLLING_SECONDS, Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN
from tests.e2e.waking import wakes

SHORT_LIVED = {"CONNECTION_MAX_AGE": "3s"}
"""Streams end with their connection, and KEDA opens them again."""
REST_SECONDS = COOLDOWN_SECONDS + 3
"""Between two bursts, and longer than the cooldown."""
ACTIVATION_SECONDS = REST_SECONDS + 3
"""The `activationWindow`: two bursts are never further apart."""
AT_ZERO_WITHIN_SECONDS = ACTIVATION_SECONDS + COOLDOWN_SECONDS + 2 * POLLING_SECONDS + 4
"""The activationWindow, the cooldown, and one poll, which is what is promised; and from these
settings one more poll, with which KEDA notices that the cooldown is over, the scrape interval, the
source's step, and the 2 s by which the scaler looks into the past."""
BURSTS = 4
BURSTY = 'DCGM_FI_DEV_GPU_UTIL{pod=~"bursty-.*"}'
log = logging.getLogger(__name__)


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
    await wakes(lab, "bert", within_seconds=30)


async def test_bursts_keep_a_workload_up_and_one_without_them_is_at_zero_in_time(
    lab: Lab,
) -> None:
    for name in "bursty", "idle":
        await lab.deploy(name, replicas=1, load=30)
        window = {"activationWindow": f"{ACTIVATION_SECONDS}s"}
        await lab.autoscale(name, lab.gpu(name, **window), min_replicas=0)
    for name in "bursty", "idle":
        await lab.becomes(name, "measured", within_seconds=60)
    began = lab.timeline.now_seconds
    await lab.offer("idle", 0)
    for _ in range(BURSTS):
        await lab.offer("bursty", 90)
        await lab.prometheus.wait_for(f"{BURSTY} > 50")
        await lab.offer("bursty", 0)
        await lab.stays("bursty", 1, for_seconds=REST_SECONDS)
    [shown] = await lab.prometheus.query(f"avg_over_time(({BURSTY} > bool 0)[30s:1s])")
    assert 0 < float(shown["value"][1]) < 0.5, lab.story()
    took = lab.timeline.when("idle", "replicas", 0) - began
    log.info("an idle workload was at zero after %.1f s", took)
    assert took <= AT_ZERO_WITHIN_SECONDS, lab.story()
    await lab.reaches("bursty", 0, within_seconds=60)
