"""Records of decisions, for tests of what people are shown of one."""

from typing import Any

from keda_gpu_scaler.decision import activation
from keda_gpu_scaler.decision.decision import Context, Decision, decide
from keda_gpu_scaler.record import build
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.spec import TriggerSpec
from testbed.triggers import BERT
from tests.support.snapshots import NOW

HOUR = 3600.0


def decided(given: TriggerSpec, view: NamespaceSnapshot, now: float = NOW) -> Decision:
    return decide(given, view, Context(now))


def record(
    given: TriggerSpec,
    view: NamespaceSnapshot | None,
    *,
    now: float = NOW,
    decision: Decision | None = None,
    **more: Any,
) -> Record:
    """Return the record of a trigger on a snapshot, or of a decision."""
    if decision is None:
        assert view is not None
        decision = decided(given, view, now)
        if given.is_by_demand:
            decision = activation.scale_by_demand(given, decision, more["demand"])
    answered = build.Answered(
        scaled_object=BERT, spec=given, decision=decision, now=now, view=view, **more
    )
    return build.record(answered)
