"""Claims about replicas that are unschedulable: they are named, and no answer rests on them."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence, Unschedulable
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from testbed.triggers import spec
from tests.decision.deciding import LISTED, decide_about, ready
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, said, unseen

ASKED_FOR = replace(LISTED, wanted={BERT_DEPLOYMENT: 8})
NO_ROOM = "0/12 nodes are available: 12 Insufficient nvidia.com/gpu."
LONG_AGO = NOW - 41 * 60 - 7
LWS = spec(workload="lws/bert")
STATEFUL_SET = frozenset({Owner("StatefulSet", "bert")})


def _waiting(suffix: str, since: float = LONG_AGO, message: str = "") -> Pod:
    status = said(never=True, created=since, unschedulable=Unschedulable(since, message))
    return unseen(suffix, status)


def _in_group(name: str, since: float) -> Pod:
    unschedulable = Unschedulable(since, name)
    status = said(never=True, created=since, unschedulable=unschedulable, owners=STATEFUL_SET)
    return replace(unseen("", status), name=name)


BUSY, IDLE = ready(90.0, count=5), ready(0.0, count=5)
SILENT = [bert("b", 90, last_seen=NOW - 90, status=said())]
"""Its exporter is down, so the load is unknown."""


@pytest.mark.parametrize(
    ("pods", "evidence", "words"),
    [
        (
            [
                _waiting("h"),
                _waiting("j", NOW - 60, NO_ROOM),
                _waiting("k", LONG_AGO - 60, "first"),
            ],
            ASKED_FOR,
            '; 8 wanted, 3 unschedulable for up to 42m ("first")',
        ),
        ([_waiting("h", message=NO_ROOM)], None, f'; 1 unschedulable for 41m ("{NO_ROOM}")'),
        ([_waiting("h", NOW - 59.5)], ASKED_FOR, "; 8 wanted, 1 unschedulable for 59s"),
        ([_waiting("h", NOW - 60)], ASKED_FOR, "; 8 wanted, 1 unschedulable for 1m"),
        ([_waiting("h", NOW + 5)], ASKED_FOR, "; 8 wanted, 1 unschedulable for 0s"),
    ],
    ids=["the first of three", "owner's count unknown", "seconds", "minutes", "other clock"],
)
@pytest.mark.parametrize("others", [BUSY, IDLE, SILENT, []], ids=["busy", "idle", "silent", "none"])
def test_the_reason_names_them_last_in_every_state(
    others: list[Pod], pods: list[Pod], evidence: NamespaceEvidence | None, words: str
) -> None:
    decided = decide_about(*others, *pods, evidence=evidence)
    assert decided.reason.endswith(words)
    too_old = decide_about(*others, *pods, evidence=evidence, now=NOW + 181)
    assert (too_old.unschedulable, "unschedulable" in too_old.reason) == (0, False)


@pytest.mark.parametrize("trigger", [spec(), spec(onUnknown="error")])
@pytest.mark.parametrize("others", [BUSY, IDLE, SILENT, []])
@pytest.mark.parametrize("since", [NOW - 30, NOW - 3600], ids=["starting", "stalled"])
def test_the_answer_is_that_for_pods_that_are_not_ready(
    trigger: TriggerSpec, others: list[Pod], since: float
) -> None:
    waiting, starting = _waiting("h", since), unseen("h", said(never=True, created=since))
    decided = decide_about(*others, waiting, trigger=trigger, evidence=ASKED_FOR)
    before = decide_about(*others, starting, trigger=trigger, evidence=ASKED_FOR)
    assert (decided.unschedulable, decided.unschedulable_since) == (1, since)
    assert (before.unschedulable, before.unschedulable_since) == (0, None)
    named = {"reason": before.reason, "unschedulable": 0, "unschedulable_since": None}
    assert replace(decided, **named) == before  # type: ignore[arg-type]  # a table of any


def test_a_group_is_one_replica_and_unschedulable_if_one_of_its_pods_is() -> None:
    since = {"bert-0-1": NOW - 90, "bert-0-2": NOW - 120, "bert-1": NOW - 60, "bert-1-1": NOW - 30}
    ready = replace(unseen("", said(owners=STATEFUL_SET)), name="bert-0")
    pods = [ready, *(_in_group(name, at) for name, at in since.items())]
    decided = decide_about(*pods, trigger=LWS, evidence=None)
    assert (decided.unschedulable, decided.unschedulable_since) == (2, NOW - 120)
    assert decided.reason.endswith('; 2 unschedulable for up to 2m ("bert-0-2")')


def test_a_pod_that_has_ended_and_one_of_another_workload_do_not_count() -> None:
    ended, canary = replace(_waiting("h"), ended=True), _in_group("bert-canary-7b6667bd9-b", NOW)
    assert decide_about(*BUSY, ended, canary).unschedulable == 0
