"""Claims about every state and its answer. Unknown is never zero."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import Asking, Context, Decision, State, unknown
from keda_gpu_scaler.snapshot.evidence import EvidenceSource, NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Selected
from testbed.triggers import spec
from tests.decision.deciding import EMPTY, LETTERS, LISTED, decide_about
from tests.support.snapshots import NOW, bert, pod, said, unseen

SILENT = NOW - 90
"""Silent for longer than the wait, and still within the activation window."""
_decide = partial(decide_about, evidence=None)


def _busy(count: int, value: float = 90) -> list[Pod]:
    return [bert(letter, value) for letter in LETTERS[:count]]


def _answer(decided: Decision) -> tuple[State, float | None, bool | None]:
    return decided.state, decided.value, decided.active


def test_measured_is_the_sum_and_active() -> None:
    decided = _decide(*_busy(5))
    assert _answer(decided) == (State.MEASURED, 450, True)
    assert (decided.average, decided.expected, decided.measured) == (90, 5, 5)
    assert decided.reporting_pods == 5
    assert decided.activated


@pytest.mark.parametrize(
    ("pods", "known", "shown"),
    [
        ([unseen("b", said(never=True))], {}, True),
        ([bert("b", 90, last_seen=SILENT)], {}, True),
        (_busy(1), {"now": NOW + 181}, True),
        ([bert("b", 90, ended=True)], {}, False),
        ([], {"absence_known": False}, False),
    ],
    ids=["not Ready yet", "silent", "too long ago", "ended", "never seen"],
)
def test_a_workload_shows_pods_while_any_may_be_there(
    pods: list[Pod], known: dict[str, Any], *, shown: bool
) -> None:
    assert _decide(*pods, **known).shows_pods is shown


def test_pods_that_have_no_gpu_are_named() -> None:
    pods = bert("b", 90, status=said(asks_gpu=False)), unseen("c", said(asks_gpu=False))
    decided = _decide(*pods)
    assert (decided.expected, decided.ignored) == (1, ("bert-7b6667bd9-ccccc",))


LOST = bert("z", 90, last_seen=SILENT)
WARMING = bert("z", 100, first_seen=NOW - 30)
AVERAGE = spec(aggregation="average")
OWN = spec(workload="", query="load", activationThreshold="5")
NAMED = spec(query="load", activationThreshold="5")
SELECTING = replace(spec(), pods=Selected("ml", "models.example.com", "bert"))


@pytest.mark.parametrize(
    ("pods", "trigger", "value"),
    [
        ([bert("b", 80), bert("c", 40)], AVERAGE, 60),
        # Those that are measured may ask for more alone.
        ([*_busy(5, 95), WARMING], spec(), 475),
        ([*_busy(5, 90), WARMING], spec(), 420),  # six: as many as there are
        ([*_busy(5, 90), WARMING], AVERAGE, 70),
        ([*_busy(5, 70), WARMING], spec(), None),
        ([*_busy(5, 95), WARMING], AVERAGE, 475 / 6),
        ([*_busy(4, 90), LOST], spec(), None),
        ([*_busy(4, 100), LOST], spec(), 400),
        # 385 is ten percent above the 350 of five replicas at 70, within the HPA's tolerance.
        ([*_busy(4, 96.25), LOST], spec(), None),
        ([*_busy(4, 96.26), LOST], spec(), 385.04),
    ],
)
def test_a_part_of_the_load_is_answered_only_where_it_raises(
    pods: list[Pod], trigger: TriggerSpec, value: float | None
) -> None:
    assert _decide(*pods, trigger=trigger).value == value


def test_what_is_known_now_stands_for_itself() -> None:
    decided = _decide(*_busy(1), remembered=State.ENDED)
    assert (decided.remembered, decided.has_no_pods) == (None, False)
    assert _decide(unseen("b", said(never=True))).average is None


def test_pods_that_ended_are_enough_to_say_that_none_is_left() -> None:
    """Even if not all of the last hour is known."""
    assert _decide(bert("b", 90, ended=True), absence_known=False).state is State.ENDED


def test_a_snapshot_beyond_max_age_ends_nothing() -> None:
    assert _decide(now=NOW + 180).state is State.ENDED
    assert _decide(now=NOW + 181).state is State.UNKNOWN
    assert _decide(bert("b", 90, ended=True), now=NOW + 181).state is State.UNKNOWN
    busy = _decide(bert("b", 90), now=NOW + 181)
    assert (busy.state, busy.measured, busy.average) == (State.UNKNOWN, 0, None)


@pytest.mark.parametrize("state", State)
def test_hold_is_what_the_last_known_state_was(state: State) -> None:
    decided = _decide(absence_known=False, remembered=state)
    assert _answer(decided) == (State.UNKNOWN, None, not state.is_gone)
    assert decided.has_no_pods is state.is_gone
    without_snapshot = unknown(spec(), "it is so", Context(NOW, remembered=state))
    assert _answer(without_snapshot) == _answer(decided)
    assert without_snapshot.has_no_pods is state.is_gone


@pytest.mark.parametrize(
    ("remembered", "stopped", "active", "words"),
    [
        (State.MEASURED, False, True, "hold, kept active: it had pods when last seen"),
        (State.ENDED, False, False, "hold, inactive: it had no pods when last seen"),
        (
            State.ENDED,
            True,
            False,
            "hold, inactive: it was idle when last seen, and the HPA has stopped asking about it",
        ),
    ],
)
def test_what_is_remembered_is_said(
    remembered: State, *, stopped: bool, active: bool, words: str
) -> None:
    decided = _decide(absence_known=False, remembered=remembered, hpa_has_stopped=stopped)
    assert decided.active is active
    assert decided.reason.endswith(f": {words}")


def test_replicas_that_were_never_ready_are_counted_apart() -> None:
    young = unseen("c", said(never=True, created=NOW - 60))
    assert _decide(bert("b", 90, status=said()), young).starting == 1


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        (_busy(5), "mean utilization 90 % over 5 replicas: sum 450 %, which needs 7"),
        (_busy(2, 75), "sum 150 %, which is on target for 2 replicas at 70 %"),
        (_busy(1, 77), "sum 77 %, which is on target for 1 replica at 70 %"),
        (_busy(2, 0), "busiest GPU 0 % within 2m is not above activationThreshold 2 %, idle in"),
        ([bert("b", [0] * 4)], "but samples do not cover 2m yet"),
        ([bert("b", first_seen=NOW - 30)], "no GPU sample shows whether it is active"),
        (
            [bert("b", 0, status=said(never=True, created=NOW - 60))],
            "bert-7b6667bd9-bbbbb not Ready yet: hold; busiest GPU 0 % within 2m is not above",
        ),
        (
            [bert("b", 0, status=said(never=True, created=NOW - 1800))],
            (
                "bert-7b6667bd9-bbbbb not Ready within startTimeout 30m: hold, and not active by "
                "itself; busiest GPU 0 % within 2m is not above"
            ),
        ),
        ([bert("b", 50, first_seen=NOW - 9)], "bert-7b6667bd9-bbbbb younger than warmup 2m"),
        (
            [bert("b", 0, first_seen=NOW - 240), bert("c", 100)],
            "bbbbb idle until now beside full replicas, as while a model loads: 1 of 2 replicas",
        ),
        (
            [replace(bert("b", 50), sampled_since=NOW - 60)],
            "not scraped for a whole window yet: 0 of 1 replica measured, hold",
        ),
        (
            [bert("b", 50, status=said(ready=NOW - 50))],
            "bert-7b6667bd9-bbbbb Ready for too short a time to be measured: 0 of 1 replica",
        ),
        (
            [*_busy(5, 84), bert("z", 0, status=said(ready=NOW - 50))],
            (
                "5 of 6 replicas measured, and the most that those did recently needs all that "
                "there are: sum 420 %, which is on target for 6 replicas"
            ),
        ),
        ([*_busy(4), LOST], "4 of 5 replicas measured, hold"),
        ([LOST], "hold, kept active: a GPU was busy within activationWindow"),
        ([*_busy(4, 100), LOST], "those alone need more"),
        (
            [*(bert(letter, 1, last_seen=SILENT) for letter in LETTERS[:4]), bert("z", 9)],
            "bert-7b6667bd9-bbbbb, bert-7b6667bd9-ccccc, bert-7b6667bd9-ddddd and 1 more stopped",
        ),
        (
            [*(bert(letter, 1, last_seen=SILENT) for letter in LETTERS[:3]), bert("z", 9)],
            "bert-7b6667bd9-bbbbb, bert-7b6667bd9-ccccc, bert-7b6667bd9-ddddd stopped",
        ),
        ([bert("b", 1, ended=True)], "1 pod of deployment/bert ended"),
        ([], "no exporter shows a pod of deployment/bert, and none was seen"),
        ([bert(x, 1, last_seen=1) for x in LETTERS[:5]], "and 2 more did not end"),
    ],
)
def test_the_reason_is_a_sentence_with_the_numbers_in_it(pods: list[Pod], words: str) -> None:
    assert words in _decide(*pods).reason


UNSEEN = {"absence_known": False}
GONE, THERE = UNSEEN | {"remembered": State.ENDED}, UNSEEN | {"remembered": State.PARTIAL}


@pytest.mark.parametrize(
    ("trigger", "known", "words"),
    [
        (
            spec(),
            UNSEEN,
            [
                "no pod of deployment/bert is seen, too soon to believe that after the source",
                "after the source began or came back (evidence: exporters)",
            ],
        ),
        (spec(), UNSEEN, ["nothing remembered"]),
        (spec(), GONE, ["inactive: it had no pods"]),
        (spec(), THERE, ["kept active: it had pods"]),
        (spec(onUnknown="error"), GONE, [": an error by onUnknown error"]),
        (spec(onUnknown="zero"), UNSEEN, [": 0 by onUnknown zero"]),
        (
            spec(),
            {"now": NOW + 200, "trouble": "HTTP 503"},
            ["200 s old, beyond maxAge 3m (HTTP 503)"],
        ),
        # Samples as old as maxAge are not the reason for what nobody tells.
        (
            SELECTING,
            {"now": NOW + 180},
            ["does not list the pods of deployment/bert by label now", "(evidence: exporters)"],
        ),
        (
            SELECTING,
            {"evidence": replace(LISTED, evidence_source=EvidenceSource.KUBERNETES)},
            ["or no label names the replica of one: podPattern could name them"],
        ),
        (SELECTING, {"now": NOW + 181}, ["181 s old, beyond maxAge 3m"]),
        (NAMED, UNSEEN, ["query shows no pod of deployment/bert, which does not prove"]),
        (OWN, UNSEEN, ["query shows no pod, which does not prove that there is none"]),
        (
            OWN,
            UNSEEN | {"unmatched_elements": 1},
            ["1 element that names no pod in namespace ml"],
        ),
        (OWN, UNSEEN | {"unmatched_elements": 12}, ["12 elements that name no pod in"]),
    ],
)
def test_the_reason_says_why_nothing_is_known_and_what_follows(
    trigger: TriggerSpec, known: dict[str, Any], words: list[str]
) -> None:
    reason = _decide(trigger=trigger, **known).reason
    assert [text for text in words if text not in reason] == []


def test_where_pods_may_be_overlooked_the_reason_says_so() -> None:
    assert "pods may be overlooked" in _decide(*_busy(2), complete=False).reason


def test_the_reason_has_the_aggregation_and_the_unit_of_the_trigger() -> None:
    assert "average 90 % against 70 %" in _decide(*_busy(2), trigger=AVERAGE).reason
    assert "sum 90, which needs 2 replicas at 70" in _decide(*_busy(1), trigger=OWN).reason
    alone = _decide(*_busy(5, 95), WARMING, trigger=AVERAGE).reason
    assert "those alone need more than there are: average 79.2 % against 70 %" in alone


MOMENTS = "idle in samples of single moments (short requests show only in an averaged metric)"


@pytest.mark.parametrize(
    ("trigger", "averaged", "words"),
    [
        (spec(), [False, False], MOMENTS),
        (spec(), [True, False], MOMENTS),
        (spec(), [True, True], "idle"),
        (spec(signal="memory", activationThreshold="20"), [False], "idle"),
        (spec(signal="power", activationThreshold="20"), [False], "idle"),
        (NAMED, [False], "idle"),
    ],
)
def test_the_reason_names_what_samples_cannot_show(
    trigger: TriggerSpec, averaged: list[bool], words: str
) -> None:
    pods = [bert(x, 0, averaged=one) for x, one in zip(LETTERS, averaged, strict=False)]
    decided = _decide(*pods, trigger=trigger)
    assert decided.active is False
    assert decided.reason.endswith(f", {words}")


@pytest.mark.parametrize(
    ("asking_since", "state", "answer"),
    [
        (NOW - 60, State.STARTING, (None, True)),
        (NOW - 150, State.EMPTY, (0, False)),
        (NOW - 200, State.EMPTY, (0, False)),
    ],
)
def test_a_count_from_before_the_hpa_began_to_ask_is_not_believed(
    asking_since: float, state: State, answer: tuple[float | None, bool]
) -> None:
    empty = replace(EMPTY, scraped_at=NOW - 150)
    decided = _decide(evidence=empty, asking=Asking(asking_since, NOW))
    assert _answer(decided) == (state, *answer)


@pytest.mark.parametrize(
    ("last_seen", "state"), [(NOW - 59, State.ENDED), (NOW - 60, State.STARTING)]
)
def test_within_a_minute_after_its_last_pod_the_hpa_may_ask_about_that_one(
    last_seen: float, state: State
) -> None:
    gone = bert("b", 0, last_seen=last_seen, ended=True)
    assert _decide(gone, asking=Asking(NOW - 600, NOW)).state is state


@pytest.mark.parametrize("evidence", [None, LISTED])
def test_a_query_that_shows_nothing_never_says_that_there_is_nothing(
    evidence: NamespaceEvidence | None,
) -> None:
    """Unless it is about named pods, and the cluster lists none of them."""
    decided = _decide(trigger=OWN, absence_known=False, evidence=evidence)
    assert _answer(decided) == (State.UNKNOWN, None, None)
    named = _decide(trigger=NAMED, absence_known=False, evidence=evidence)
    assert named.state is (State.ENDED if evidence else State.UNKNOWN)


@st.composite
def _pods(draw: st.DrawFn) -> Pod:
    first_seen = draw(st.just(NEVER_SEEN) | st.floats(NOW - 300, NOW))
    return pod(
        f"bert-7b6667bd9-{draw(st.sampled_from(LETTERS)) * 5}",
        draw(st.floats(0, 100)),
        first_seen=first_seen,
        last_seen=max(draw(st.floats(NOW - 4000, NOW)), first_seen),
        age=draw(st.floats(0, 400)),
        ended=draw(st.booleans()),
    )


@given(
    st.lists(_pods(), max_size=6),
    st.sampled_from(["hold", "error"]),
    st.sampled_from(["sum", "average"]),
    st.floats(0, 500),
    st.none() | st.sampled_from(State),
)
def test_unknown_is_never_zero(
    pods: list[Pod], policy: str, how: str, later: float, remembered: State | None
) -> None:
    """Whatever is missing, old, young or gone: 0 is measured, and a number is never too small."""
    trigger = spec(onUnknown=policy, aggregation=how)
    decided = _decide(*pods, trigger=trigger, now=NOW + later, remembered=remembered)
    if decided.value is not None:
        assert math.isfinite(decided.value)
        assert decided.value >= 0
        per_replica = decided.value / (decided.expected if how == "sum" else 1)
        assert decided.state is State.MEASURED or per_replica > trigger.threshold
    if decided.active is False:
        gone = remembered in {State.ENDED, State.EMPTY} and policy == "hold"
        assert decided.state in {State.MEASURED, State.ENDED} or gone
    if decided.state is State.UNKNOWN:
        assert decided.value is None
