"""Streams of type external-push after polls that failed.

KEDA 2.21 closes a connection that no trigger uses any more, and a trigger whose poll failed uses
none until the next poll. Where another trigger has the same `scalerAddress`, streams outlive that.
"""

import logging
from pathlib import Path
from typing import Any

import grpc
import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import generation, keda, keda_log, streams, waking
from tests.e2e.lab import PATIENCE_SECONDS, Lab
from tests.e2e.own_cluster import open_own_lab
from tests.e2e.recorder import Recorder
from tests.e2e.relay import Door, Relay
from tests.e2e.under_load import SHORT_MAX_AGE

POLLING_SECONDS = 10
FAILED_POLLS = 3
RARELY_SECONDS = 300
"""A pollingInterval after whose first poll only a stream can move anything."""
assert RARELY_SECONDS > PATIENCE_SECONDS
LOST = "no pooled connection for scaler address"
"""What KEDA 2.21 says whenever it tries to open a stream on a connection that it has closed."""
log = logging.getLogger(__name__)


def _complaints(lab: Lab) -> list[dict[str, Any]]:
    return [each for each in keda_log.errors(lab) if LOST in str(each.get("error"))]


async def _failed(lab: Lab) -> float:
    """Return how many calls the scaler has failed."""
    return await lab.scaler.counted("keda_gpu_scaler_rpcs_total", code="UNAVAILABLE")


async def _fail(lab: Lab, polls: int) -> None:
    """Wait until so many more polls have failed: each is tried twice."""
    known = await _failed(lab)

    async def counted() -> bool:
        return await _failed(lab) >= known + 2 * polls

    await lab.wait(counted, f"{polls} polls have failed")


async def _wakes(lab: Lab, within_seconds: float) -> None:
    began = lab.timeline.now_seconds
    await waking.wakes(lab, "bert")
    took = lab.timeline.now_seconds - began
    assert took <= within_seconds, f"woken after {took:.1f} s\n{lab.story()}"


async def test_a_trigger_that_lost_its_stream_by_errors_is_woken_by_the_next_poll(
    lab: Lab,
) -> None:
    # The scaler never reaches its source: nothing is known, and nothing is remembered.
    await lab.door.turn(Door.SHUT)
    await lab.deploy("bert")
    demand = await lab.offers_nothing("requests")
    await lab.is_known("bert")
    trigger = streams.push(lab, "bert", demandQuery=demand)
    await lab.autoscale("bert", trigger, min_replicas=0, polling_seconds=POLLING_SECONDS)
    await _fail(lab, FAILED_POLLS)
    assert bool(_complaints(lab)) != generation.KEDA_IS_OLD, lab.story()
    assert lab.path("bert") == [0], lab.story()

    await lab.offer("requests", 5)
    await lab.stays("bert", 0, for_seconds=3)
    lab.timeline.note("the source is back")
    await lab.door.turn(Door.OPEN)
    # One poll later, and not two: a machine at work may take seconds more.
    await _wakes(lab, within_seconds=1.8 * POLLING_SECONDS)


@pytest.mark.parametrize("lab", [EvidenceSource.KUBERNETES], indirect=True, ids=str)
async def test_no_poll_fails_where_the_kubernetes_api_tells_that_there_is_no_pod(lab: Lab) -> None:
    # Its Prometheus has just begun: exporters alone would not be believed for two minutes.
    await lab.deploy("bert")
    demand = await lab.offers_nothing("requests")
    trigger = streams.push(lab, "bert", demandQuery=demand)
    await lab.autoscale("bert", trigger, min_replicas=0, polling_seconds=RARELY_SECONDS)
    await lab.becomes("bert", "empty")
    await lab.stays("bert", 0, for_seconds=5)
    await lab.offer("requests", 5)
    await waking.wakes(lab, "bert")
    assert await _failed(lab) == 0, lab.story()
    assert streams.broken(lab) == [], lab.story()


async def test_one_failed_try_that_succeeds_when_repeated_ends_no_stream(
    lab: Lab, recorder: Recorder
) -> None:
    recorder.active = False
    await lab.deploy("bert")
    trigger = streams.push(lab, "bert", scalerAddress=recorder.address)
    await lab.autoscale("bert", trigger, min_replicas=0)

    async def opened() -> bool:
        return bool(recorder.streams)

    await lab.wait(opened, "KEDA has opened a stream")
    recorder.failure, recorder.failures_left = grpc.StatusCode.UNAVAILABLE, 1
    known = len(recorder.asked("IsActive"))

    async def goes_on() -> bool:
        return recorder.failures_left == 0 and len(recorder.asked("IsActive")) > known + 2

    await lab.wait(goes_on, "a call has failed, and polls go on")
    (stream,) = recorder.streams
    assert not stream.over, lab.story()
    assert len({call.connection for call in recorder.calls}) == 1, lab.story()
    stream.push(active=True)
    await lab.reaches("bert", 1)


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside another"])
async def test_an_outage_with_errors_costs_streams_only_where_a_trigger_is_alone(
    lab: Lab,
    is_alone: bool,  # noqa: FBT001 - a table's value
) -> None:
    demand = await lab.offers_nothing("requests")
    async with Relay(lab.scaler.port).standing() as relay:
        for name in ["bert"] if is_alone else ["bert", "other"]:
            await lab.deploy(name)
        # What was at zero before the outage is held there: its polls do not fail.
        other = lab.gpu("other", scalerAddress=relay.address, **SHORT_MAX_AGE)
        if not is_alone:
            await lab.is_known("other")
            await lab.autoscale("other", other, min_replicas=0)
            await lab.becomes("other", "empty")
        asked = {"demandQuery": demand, "onUnknown": "error", "scalerAddress": relay.address}
        trigger = streams.push(lab, "bert", **asked, **SHORT_MAX_AGE)
        await waking.asleep(lab, "bert", trigger, polling_seconds=5)
        lab.timeline.note("the source is away")
        await lab.door.turn(Door.SHUT)
        before = relay.accepted
        await _fail(lab, FAILED_POLLS)
        log.info("%d connections for %d polls that failed", relay.accepted - before, FAILED_POLLS)
        is_closed = is_alone and not generation.KEDA_IS_OLD
        # The clear of a failed poll takes effect while the next one may be waited for.
        assert (relay.accepted - before >= FAILED_POLLS - 1) == is_closed, lab.story()
        assert bool(_complaints(lab)) == is_closed, lab.story()

        await lab.offer("requests", 5)
        await lab.stays("bert", 0, for_seconds=3)
        lab.timeline.note("the source is back")
        await lab.door.turn(Door.OPEN)
        await _wakes(lab, within_seconds=9)


async def test_a_stream_is_open_again_after_a_restart_of_kedas_operator(
    tmp_path: Path, lab_name: str
) -> None:
    async with open_own_lab(lab_name, keda.current(), tmp_path) as (cluster, lab):
        await lab.deploy("bert")
        demand = await lab.offers_nothing("requests")
        await waking.asleep(lab, "bert", streams.push(lab, "bert", demandQuery=demand))
        operator = cluster.programs["keda-operator"]
        lab.timeline.note("KEDA's operator is killed")
        operator.kill()
        await streams.ended(lab, "CANCELLED", 1)
        before = len(lab.decisions("bert"))
        lab.timeline.note("KEDA's operator is started")
        operator.start()

        async def looks() -> bool:
            return len(lab.decisions("bert")) > before + 3

        await lab.wait(looks, "a stream looks again: a poll comes only every 300 s")
        await lab.stays("bert", 0, for_seconds=3)
        await lab.offer("requests", 5)
        await waking.wakes(lab, "bert")
        assert streams.broken(lab) == [], lab.story()
