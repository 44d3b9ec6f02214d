"""Which signal said active."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Context, Decision, decide
from keda_gpu_scaler.evaluator.tracked_trigger import Answer, GpuDecision
from tests.support.snapshots import NOW, bert, snapshot
from tests.support.triggers import spec

BUSY = decide(spec(), snapshot(bert("b", 90)), Context(NOW, 3600))
IDLE = replace(BUSY, active=False, activated=False)
DOUBTED = replace(BUSY, activated=False)
"""Active, because nothing shows that it is idle."""


@pytest.mark.parametrize(
    ("decided", "gpu", "alert", "said"),
    [
        (BUSY, GpuDecision(BUSY), None, "gpus"),
        (BUSY, GpuDecision(IDLE, neighbour=BUSY), None, "activationWorkload"),
        (BUSY, GpuDecision(IDLE, neighbour=IDLE), "Waiting", "alert"),
        (BUSY, GpuDecision(IDLE), None, "demand"),
        (IDLE, GpuDecision(IDLE), None, None),
        (DOUBTED, GpuDecision(DOUBTED), None, None),
    ],
    ids=["gpus", "neighbour", "alert", "demand", "idle", "in doubt"],
)
def test_the_signal_that_said_active_is_named(
    decided: Decision, gpu: GpuDecision, alert: str | None, said: str | None
) -> None:
    assert Answer(decided, NOW, gpu, alert, None, None).active_by == said
