"""KEDA takes a failed poll for "inactive, no error" where a failed request of the HPA ended first.

It is a race of two calls (docs/upstream/keda-failed-poll-taken-for-inactive.md). The scaler here
decides who is first. `keda_gpu_scaler.service.messages` keeps our own answers out of it.
"""

import asyncio

import grpc
import pytest

from tests.e2e.lab import Lab
from tests.e2e.recorder import Recorder
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, the_hpa_has_a_number


@pytest.mark.parametrize("kind", ["external", "external-push"])
async def test_a_poll_that_fails_after_the_hpas_request_ends_a_busy_workload(
    lab: Lab, recorder: Recorder, kind: str
) -> None:
    zero = {"min_replicas": 0}
    names = {"bert": zero, "idled": {"idleReplicaCount": 0}, "one": {}, "paused": zero}
    for name, fields in names.items():
        await lab.deploy(name, replicas=1)
        given = lab.gpu(name, scalerAddress=recorder.address) | {"type": kind}
        await lab.autoscale(name, given, **fields)
    for name in names:
        await the_hpa_has_a_number(lab, name)
        await lab.shows(name, "keda Active", "True ScalerActive")

    # The scaler says "active" as ever to whom it answers at all.
    await lab.annotate("paused", paused_scale_in="true")
    lab.timeline.note("polls wait, and the HPA's requests fail")
    recorder.polls_wait_for = asyncio.Event()
    recorder.failure = grpc.StatusCode.UNAVAILABLE
    for name in names:
        await lab.shows(name, "hpa ScalingActive", "False FailedGetExternalMetric")
    await lab.stays("one", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    lab.timeline.note("the polls fail")
    recorder.polls_wait_for.set()
    for name in ("bert", "idled"):
        await lab.reaches(name, 0)
    for name in ("one", "paused"):
        assert lab.path(name) == [1], lab.story()
