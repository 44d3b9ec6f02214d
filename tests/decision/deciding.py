"""Decisions about pods, as most tests make them: healthy exporters, and a list of the cluster."""

from dataclasses import replace
from typing import Any

from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.decision import Context, Decision, decide
from keda_gpu_scaler.decision.load import MeasuredWorkload
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from testbed.triggers import spec
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, said, snapshot

LETTERS = "bcdfghjklmnpqrstvwxz"
LISTED = NamespaceEvidence(NOW - 10, absence_known=True)
EMPTY = replace(LISTED, without_pods=frozenset({BERT_DEPLOYMENT}))


def decide_about(
    *pods: Pod,
    trigger: TriggerSpec | None = None,
    wanted: int | None = None,
    evidence: NamespaceEvidence | None = LISTED,
    complete: bool = True,
    absence_known: bool = True,
    unmatched_elements: int = 0,
    **context: Any,
) -> Decision:
    """Decide about these pods of deployment/bert; `wanted`: its owner asks for so many replicas."""
    if evidence is not None and wanted is not None:
        evidence = replace(evidence, wanted={BERT_DEPLOYMENT: wanted})
    seen = snapshot(*pods, absence_known=absence_known, complete=complete, evidence=evidence)
    seen = replace(seen, unmatched_elements=unmatched_elements)
    return decide(trigger or spec(), seen, Context(**{"now": NOW, **context}))


def measured(*pods: Pod, **keys: str) -> MeasuredWorkload:
    """Measure the workload of a trigger with these keys, by exporters alone."""
    trigger, seen = spec(**keys), snapshot(*pods)
    return load.workload(trigger, load.pods_of(trigger, seen), seen, NOW)


def ready(*loads: float | list[float], count: int = 1) -> list[Pod]:
    """Return pods that have been Ready for long: so many for each of these loads."""
    status = said(is_ready=True)
    letters = zip(LETTERS, loads * count, strict=False)
    return [bert(letter, load, status=status) for letter, load in letters]
