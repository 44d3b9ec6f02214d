"""What KEDA sends to a scaler and makes of its answers: the facts that the product is built on.

No scaler of ours is asked here. Where the product's own texts or constants say what KEDA does,
they are compared with what KEDA did.
"""

import re
import statistics
from collections.abc import Sequence
from itertools import pairwise

import pytest

from keda_gpu_scaler import times, trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from testbed.triggers import access
from tests.e2e.lab import Lab
from tests.e2e.recorder import METRIC, Call, Recorder

_LETTERS = {"GetMetricSpec": "S", "GetMetrics": "M", "IsActive": "A"}


def _said(calls: Sequence[Call]) -> str:
    """Return the order of calls, a letter for each, from the first whole evaluation on."""
    return "".join(_LETTERS[call.method] for call in calls).lstrip("MA")


@pytest.mark.core
@pytest.mark.generations
async def test_one_evaluation_is_three_calls_in_order_and_only_the_hpas_have_a_deadline(
    lab: Lab, recorder: Recorder
) -> None:
    await lab.deploy("bert", replicas=1)
    given = lab.gpu("bert", scalerAddress=recorder.address)
    # Where nothing can go to zero, polls may ask for less: see test_polls.py.
    await lab.autoscale("bert", given, min_replicas=0)

    def polls() -> list[Call]:
        return [call for call in recorder.calls if call.seconds_left is None]

    def syncs() -> list[Call]:
        return [call for call in recorder.calls if call.seconds_left is not None]

    await lab.wait(lambda: len(syncs()) > 3, "the HPA asks")
    # Until here KEDA also asked for the spec alone, in order to make the HPA: on a busy machine
    # a little longer.
    recorder.calls.clear()
    await lab.wait(lambda: min(len(polls()), len(syncs())) > 12, "four polls and four syncs")
    for calls in polls(), syncs():
        assert re.fullmatch(r"(S+MA)+(S+M?)?", _said(calls)), lab.story()
    assert {call.metric_name for call in recorder.asked("GetMetrics")} == {METRIC}
    assert all(30 < (call.seconds_left or 0) < 61 for call in syncs()), syncs()
    assert statistics.median(_gaps(polls())) < times.SAME_POLL_SECONDS / 10


def _gaps(calls: Sequence[Call]) -> list[float]:
    """Return the seconds from each GetMetrics to the IsActive after it."""
    return [
        after.at_seconds - before.at_seconds
        for before, after in pairwise(calls)
        if before.method == "GetMetrics"
    ]


@pytest.mark.generations
async def test_all_of_a_triggers_metadata_and_nothing_else_is_sent(
    lab: Lab, recorder: Recorder
) -> None:
    metadata = {
        "scalerAddress": recorder.address,
        # KEDA takes these four from authentication only, and sends them like any other key.
        "caCert": "ours",
        "tlsClientCert": "ours",
        "tlsClientKey": "ours",
        "unsafeSsl": "true",
        "enableTLS": "false",
        "workload": "bert",
        "window": " 1m30s ",
        "thresholdFromEnv": "GPU_THRESHOLD",
        "warmupFromEnv": "NO_SUCH_VARIABLE",
    }
    await lab.deploy("bert", replicas=1)
    beside = {"name": "gpu", "metricType": "Value", "useCachedMetrics": True}
    await lab.autoscale("bert", {"type": "external", "metadata": metadata, **beside})
    await lab.wait(lambda: {call.method for call in recorder.calls} >= set(_LETTERS), "KEDA asks")
    resolved = {**metadata, "thresholdFromEnv": "70"}
    del resolved["warmupFromEnv"]
    for call in recorder.calls:
        assert (call.reference.namespace, call.reference.name) == (lab.name, "bert")
        assert call.metadata == resolved
    assert resolved.keys() >= trigger.KEDA_KEYS
    owner = ScaledObject(lab.name, "bert")
    assert trigger.parse(owner, resolved, access()).threshold == 70
