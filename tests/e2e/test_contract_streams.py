"""What KEDA does with a scaler's streams and connections: the facts that the product is built on.

No scaler of ours is asked here, as in test_contract.py.
"""

import math
from itertools import pairwise

import grpc
import pytest

from testbed.cluster import generation
from testbed.cluster.resources import ScaledObject
from tests.e2e import keda_log, waking
from tests.e2e.lab import Lab
from tests.e2e.recorder import Recorder, Stream, recording


async def _stream(lab: Lab, recorder: Recorder, number: int) -> Stream:
    """Wait until KEDA has opened its n-th stream, from 1, and return it."""
    await lab.wait(lambda: len(recorder.streams) >= number, f"KEDA has opened {number} streams")
    return recorder.streams[number - 1]


@pytest.mark.generations
async def test_a_stream_that_ended_well_is_opened_again_after_2_s_and_a_failed_one_ever_later(
    lab: Lab, recorder: Recorder
) -> None:
    await lab.deploy("bert", replicas=1)
    await lab.autoscale("bert", waking.push(lab, "bert", scalerAddress=recorder.address))
    codes = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE
    for number, code in enumerate(codes, start=1):
        (await _stream(lab, recorder, number)).end(code)
    (await _stream(lab, recorder, len(codes) + 1)).end(grpc.StatusCode.OK)
    await _stream(lab, recorder, len(codes) + 2)

    opened = recorder.asked("StreamIsActive")
    well, failed, failed_again, well_again = (
        after.at_seconds - before.at_seconds for before, after in pairwise(opened)
    )
    # Nothing comes early. How late it comes depends on the machine.
    assert (well >= 2, failed >= 4, failed_again >= 8, well_again >= 2) == (True,) * 4, lab.story()
    # KEDA 2.16 never forgets a wait, not even after a good end.
    assert (well_again < failed_again) != generation.KEDA_IS_OLDEST, lab.story()
    assert {call.seconds_left for call in opened} == {None}
    assert opened[0].metadata == recorder.asked("IsActive")[0].metadata
    assert bool(recorder.asked("StreamMetricSpec")) != generation.KEDA_IS_OLD


@pytest.mark.core
@pytest.mark.generations
async def test_true_wakes_and_is_a_write_each_time_and_false_is_nothing(
    lab: Lab, recorder: Recorder
) -> None:
    recorder.active = False
    await lab.deploy("bert")
    await lab.autoscale(
        "bert",
        waking.push(lab, "bert", scalerAddress=recorder.address),
        min_replicas=0,
        polling_seconds=waking.RARELY_SECONDS,
    )
    stream = await _stream(lab, recorder, 1)
    await lab.stays("bert", 0, for_seconds=2)
    stream.push(active=True)
    await lab.reaches("bert", 1)

    stream.push(active=False)
    # Longer than the cooldown: a workload that counted as idle would be at zero by then.
    await lab.stays("bert", 1, for_seconds=8)
    before = await waking.last_activity(lab, "bert")
    stream.push(active=True)
    await waking.is_told(lab, "bert", before, "true is pushed again")
    await lab.client.delete(ScaledObject, "bert", namespace=lab.name)
    await lab.wait(lambda: stream.over, "the stream ends with its ScaledObject")


@pytest.mark.generations
async def test_an_old_connection_is_replaced_by_a_new_one_without_an_error(lab: Lab) -> None:
    async with recording(max_connection_age_ms=3000) as recorder:
        await lab.deploy("bert", replicas=1)
        await lab.autoscale("bert", lab.gpu("bert", scalerAddress=recorder.address))
        await lab.wait(
            lambda: len({call.connection for call in recorder.calls}) > 2,
            "KEDA comes by a third connection",
        )
        assert keda_log.errors(lab) == [], lab.story()


@pytest.mark.generations
async def test_errors_cut_the_stream_of_a_trigger_that_is_alone_with_its_address(
    lab: Lab, recorder: Recorder
) -> None:
    recorder.active = False
    await lab.deploy("bert")
    trigger = waking.push(lab, "bert", scalerAddress=recorder.address)
    await lab.autoscale("bert", trigger, min_replicas=0, polling_seconds=5)
    first = await _stream(lab, recorder, 1)

    # KEDA tries again at once: a try that fails alone ends nothing.
    recorder.failure, recorder.failures_left = grpc.StatusCode.UNAVAILABLE, 1
    polls = len(recorder.asked("IsActive"))
    await lab.wait(
        lambda: recorder.failures_left == 0 and len(recorder.asked("IsActive")) > polls + 1,
        "a call has failed, and polls go on",
    )
    assert [each.over for each in recorder.streams] == [False], lab.story()
    assert len({call.connection for call in recorder.calls}) == 1, lab.story()

    known = len(recorder.asked("GetMetrics"))
    recorder.failures_left = math.inf
    await lab.wait(
        lambda: len(recorder.asked("GetMetrics")) >= known + 2,
        "a poll fails, and its repetition too",
    )
    await lab.stays("bert", 0, for_seconds=3)
    assert first.over != generation.KEDA_IS_OLD, lab.story()

    recorder.failure = None
    lab.timeline.note("the scaler answers again")
    stream = await _stream(lab, recorder, 1 if generation.KEDA_IS_OLD else 2)
    stream.push(active=True)
    await lab.reaches("bert", 1)
