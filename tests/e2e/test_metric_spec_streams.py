"""What StreamMetricSpec costs KEDA and spares the scaler, and that targets stay right with it.

KEDA 2.21 opens it beside StreamIsActive. It keeps what came on it instead of asking GetMetricSpec,
and reconciles the ScaledObject once for each message, also for one that says nothing new.
"""

import pytest

from testbed.cluster import generation
from tests.e2e import keda_log, waking
from tests.e2e.lab import Lab
from tests.e2e.recorder import Recorder
from tests.e2e.under_load import REPLICAS, deploy_under_load, the_hpa_has_a_number

pytestmark = pytest.mark.skipif(
    generation.KEDA_IS_OLD, reason="KEDA opens StreamMetricSpec since 2.21"
)
RPCS = "keda_gpu_scaler_rpcs_total"
QUIET_SECONDS = 8
"""Several polls and calls of the HPA's."""


async def _is_asked_for_no_spec(lab: Lab) -> None:
    """Wait until values are asked for all along, and no spec."""

    async def seen() -> bool:
        specs, values = await _asked(lab, "GetMetricSpec"), await _asked(lab, "GetMetrics")
        await lab.stays("bert", REPLICAS, for_seconds=QUIET_SECONDS)
        assert await _asked(lab, "GetMetrics") > values, lab.story()
        return await _asked(lab, "GetMetricSpec") == specs

    await lab.wait(seen, "no spec is asked for")


async def _asked(lab: Lab, method: str) -> float:
    return await lab.scaler.counted(RPCS, method=method)


async def test_each_message_is_one_reconcile_also_if_it_says_nothing_new(
    lab: Lab, recorder: Recorder
) -> None:
    """A fact about KEDA, which the life of our streams is made for."""
    recorder.spec_seconds = 1
    await lab.deploy("bert", replicas=1)
    await lab.autoscale("bert", waking.push(lab, "bert", scalerAddress=recorder.address))
    await the_hpa_has_a_number(lab)

    def opened() -> int:
        return len(recorder.asked("StreamMetricSpec"))

    await lab.stays("bert", 1, for_seconds=QUIET_SECONDS)
    before, known = opened(), keda_log.reconciles(lab, "bert")
    specs = len(recorder.asked("GetMetricSpec"))
    await lab.wait(lambda: opened() >= before + 4, "streams end and open again")
    made, reconciled = opened() - before, keda_log.reconciles(lab, "bert") - known
    assert abs(reconciled - made) <= 1, lab.story()
    assert len(recorder.asked("GetMetricSpec")) == specs, lab.story()


async def test_a_spec_that_was_streamed_is_asked_for_no_more_and_follows_a_change(
    lab: Lab,
) -> None:
    await lab.scaler.restart(CONNECTION_MAX_AGE="3s")
    await deploy_under_load(lab)
    # A second metric whose target is its own, in the same stream.
    demand = {"demandQuery": lab.offered("bert"), "demandThreshold": "100"}
    trigger = waking.push(lab, "bert", **demand)
    await lab.autoscale("bert", trigger, min_replicas=0, max_replicas=REPLICAS)
    await _targets(lab, "70", "100")
    await the_hpa_has_a_number(lab)
    await _is_asked_for_no_spec(lab)

    # Neither is a new connection a reconcile or a question.
    specs, known = await _asked(lab, "GetMetricSpec"), keda_log.reconciles(lab, "bert")
    ended = await lab.scaler.counted(RPCS, method="StreamIsActive", code="OK")
    await waking.ended(lab, "OK", int(ended) + 4)
    assert await _asked(lab, "StreamMetricSpec") == 0, lab.story()  # counted when it ends
    assert await _asked(lab, "GetMetricSpec") == specs, lab.story()
    assert keda_log.reconciles(lab, "bert") == known, lab.story()

    trigger["metadata"] |= {"threshold": "60", "demandThreshold": "90"}
    await lab.patch("bert", triggers=[trigger])
    await _targets(lab, "60", "90")
    await _is_asked_for_no_spec(lab)
    assert set(lab.timeline.path("bert", "hpa target 0")) == {"70", "60"}, lab.story()
    assert set(lab.timeline.path("bert", "hpa target 1")) == {"100", "90"}, lab.story()


async def _targets(lab: Lab, *targets: str) -> None:
    for index, target in enumerate(targets):
        await lab.shows("bert", f"hpa target {index}", target)
