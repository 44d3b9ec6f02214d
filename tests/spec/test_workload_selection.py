"""Claims about pods that only a scale target's own selector identifies."""

import itertools
from dataclasses import replace

import pytest
import re2

from keda_gpu_scaler.decision.decision import Context, State, decide
from keda_gpu_scaler.snapshot.evidence import EvidenceSource, NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner, PodSelector, ScaleTarget, Selected
from testbed.triggers import spec
from tests.support.snapshots import NOW, pod, said, snapshot

BERT = Selected("ml", "models.example.com", "bert")
SELECTED = frozenset({BERT.selected_by})
API = NamespaceEvidence(NOW - 1, absence_known=True, evidence_source=EvidenceSource.KUBERNETES)
KNOWN = replace(API, selected=SELECTED)
STATE_METRICS = replace(API, evidence_source=EvidenceSource.KUBE_STATE_METRICS)


def _spec(**metadata: str) -> TriggerSpec:
    return replace(spec(**metadata), pods=BERT, workload=str(BERT))


def _pod(name: str, *gpus: float, ours: bool = True, group: str | None = None) -> Pod:
    owners = SELECTED if ours else frozenset({Owner("Model", "bert")})
    named = set() if group is None else {Owner(BERT.replica_kind, group)}
    return pod(name, *gpus, status=said(owners=owners | named))


def _context(remembered: State | None = None) -> Context:
    return Context(NOW, remembered=remembered)


def test_its_pods_are_those_it_selects_whatever_they_are_called() -> None:
    ours = (_pod("bert-head", 60), _pod("worker-7", 80))
    others = (_pod("bert", 90, ours=False), pod("models", 90))
    decided = decide(_spec(), snapshot(*ours, *others, evidence=KNOWN), _context())
    assert (decided.state, decided.value, decided.expected) == (State.MEASURED, 140, 2)


def test_the_pods_of_a_group_are_one_replica() -> None:
    head, worker = _pod("bert-head", 60, group="a"), _pod("worker-7", 80, group="a")
    other = _pod("bert-tail", 50, group="b")
    decided = decide(_spec(), snapshot(head, worker, other, evidence=KNOWN), _context())
    assert (decided.state, decided.value, decided.expected) == (State.MEASURED, 120, 2)


def test_it_is_empty_only_where_the_api_says_whom_it_selects() -> None:
    decided = decide(_spec(), snapshot(evidence=KNOWN), _context())
    assert (decided.state, decided.value, decided.active) == (State.EMPTY, 0, False)
    assert decided.reason == "the Kubernetes API lists no pod of models.example.com/bert"


def test_while_nobody_says_whom_it_selects_nothing_is_known(subtests: pytest.Subtests) -> None:
    """Neither zero, nor the sum of those that were known: others may have come since."""
    words = (
        "the Kubernetes API does not list the pods of models.example.com/bert by label now, and "
        "nothing else does (evidence: "
    )
    some: list[tuple[Pod, ...]] = [
        (),
        (_pod("worker-7", 0.0),),
        (_pod("worker-7", 20, ours=False),),
    ]
    states = (None, State.MEASURED, State.EMPTY)
    for evidence, pods, before in itertools.product((API, STATE_METRICS, None), some, states):
        decided = decide(_spec(), snapshot(*pods, evidence=evidence), _context(before))
        with subtests.test(f"{evidence} {pods} {before}"):
            assert (decided.state, decided.value) == (State.UNKNOWN, None)
            assert decided.active is (None if before is None else before is State.MEASURED)
            assert decided.reason.startswith(words)


def test_a_pod_that_was_known_and_is_busy_keeps_it_active() -> None:
    decided = decide(_spec(), snapshot(_pod("worker-7", 90), evidence=None), _context(State.EMPTY))
    assert (decided.state, decided.value, decided.active) == (State.UNKNOWN, None, True)
    assert decided.activated


def test_samples_beyond_max_age_are_the_reason_before_it() -> None:
    late = replace(_context(), now=NOW + 1000)
    decided = decide(_spec(), snapshot(evidence=None), late)
    assert decided.reason.startswith("the newest samples are 1000 s old, beyond maxAge")


@pytest.mark.parametrize("target", [BERT, ScaleTarget("ml")])
def test_names_tell_nothing(target: PodSelector) -> None:
    assert not target.matches("bert")
    assert re2.fullmatch(target.regex, "bert") is None
    assert target.replica_of("worker-7", SELECTED) == "worker-7"
    assert (target.prefix, target.owner) == ("", None)
    assert not target.owns(frozenset({Owner("Model", "bert")}))
    assert target.owns(SELECTED) is (target is BERT)
