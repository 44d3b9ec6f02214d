"""Claims about every state and its answer. Unknown is never zero."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import Asking, Context, Decision, State, decide
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner, Selected
from tests.support.snapshots import NOW, bert, pod, said, snapshot, unseen
from tests.support.triggers import spec

HOUR = 3600.0
LETTERS = "bcdfghjklmnp"
SILENT = NOW - 90
"""Silent for longer than the wait, and still within the activation window."""


def _decide(
    *pods: Pod,
    trigger: TriggerSpec | None = None,
    complete: bool = True,
    **known: Any,  # noqa: ANN401 - fields of Context
) -> Decision:
    """Decide about these pods; `known` is what differs in the context, or in the snapshot."""
    shown = {
        name: known.pop(name, None) for name in ("absence_known", "evidence", "unmatched_elements")
    }
    absence_known = shown["absence_known"] is not False
    context = replace(Context(NOW), **known)
    seen = snapshot(
        *pods, absence_known=absence_known, complete=complete, evidence=shown["evidence"]
    )
    seen = replace(seen, unmatched_elements=shown["unmatched_elements"] or 0)
    return decide(trigger or spec(), seen, context)


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


def test_one_pod_at_23_percent_is_23() -> None:
    assert _decide(*_busy(1, 23), trigger=spec(threshold="20")).value == 23


def test_average_is_the_sum_over_its_replicas() -> None:
    decided = _decide(bert("b", 80), bert("c", 40), trigger=spec(aggregation="average"))
    assert decided.value == 60


def test_measured_and_idle_is_the_number_zero_and_inactive() -> None:
    assert _answer(_decide(*_busy(2, 0))) == (State.MEASURED, 0, False)


def test_measured_with_half_a_window_is_active() -> None:
    decided = _decide(bert("b", [0] * 4))
    assert _answer(decided) == (State.MEASURED, 0, True)
    assert not decided.activated


def test_starting_holds_and_is_active() -> None:
    decided = _decide(bert("b", 100, first_seen=NOW - 30))
    assert _answer(decided) == (State.STARTING, None, True)


def test_starting_answers_when_the_others_alone_ask_for_more() -> None:
    warming = bert("z", 100, first_seen=NOW - 30)
    assert _decide(*_busy(5, 95), warming).value == 475
    assert _decide(*_busy(5, 90), warming).value == 420  # six: as many as there are
    assert _decide(*_busy(5, 70), warming).value is None
    assert _decide(*_busy(5, 95), warming, trigger=spec(aggregation="average")).value == 475 / 6


def test_partial_holds_and_is_active_even_when_idle() -> None:
    decided = _decide(*_busy(4, 0), bert("z", 0, last_seen=SILENT))
    assert _answer(decided) == (State.PARTIAL, None, True)
    assert (decided.expected, decided.measured) == (5, 4)


def test_partial_never_answers_a_number_that_a_scale_in_could_follow() -> None:
    missing = bert("z", 90, last_seen=SILENT)
    assert _decide(*_busy(4, 90), missing).value is None
    assert _decide(*_busy(4, 100), missing).value == 400


@pytest.mark.parametrize(("value", "answer"), [(96.25, None), (96.26, 385.04)])
def test_what_the_hpa_tolerates_of_the_others_alone_does_not_ask_for_more(
    value: float, answer: float | None
) -> None:
    """385 is ten percent above the 350 of five replicas at 70, within the HPA's tolerance."""
    assert _decide(*_busy(4, value), bert("z", 90, last_seen=SILENT)).value == answer


@pytest.mark.parametrize("value", [0, 90, 100])
def test_where_pods_may_be_overlooked_no_sum_is_answered_and_nothing_is_idle(value: float) -> None:
    decided = _decide(*_busy(2, value), complete=False)
    assert _answer(decided) == (State.PARTIAL, None, True)
    assert "pods may be overlooked" in decided.reason


def test_ended_holds_and_is_inactive() -> None:
    assert _answer(_decide(bert("b", 90, ended=True))) == (State.ENDED, None, False)


def test_never_seen_is_ended_only_where_absence_is_known() -> None:
    assert _answer(_decide()) == (State.ENDED, None, False)
    assert _decide(absence_known=False).state is State.UNKNOWN


def test_a_snapshot_beyond_max_age_ends_nothing() -> None:
    assert _decide(now=NOW + 180).state is State.ENDED
    assert _decide(now=NOW + 181).state is State.UNKNOWN
    assert _decide(bert("b", 90, ended=True), now=NOW + 181).state is State.UNKNOWN


def test_pods_that_exist_and_do_not_report_are_unknown() -> None:
    lost = bert("b", 90, last_seen=NOW - 130)
    decided = _decide(lost, remembered=State.MEASURED)
    assert _answer(decided) == (State.UNKNOWN, None, True)
    assert (decided.expected, decided.measured) == (1, 0)


def test_hold_with_nothing_remembered_fails_is_active_and_holds_the_value() -> None:
    decided = _decide(absence_known=False)
    assert _answer(decided) == (State.UNKNOWN, None, None)
    assert not decided.refused
    assert not decided.has_no_pods


@pytest.mark.parametrize("state", [State.ENDED, State.EMPTY])
def test_hold_is_inactive_only_after_a_state_without_pods(state: State) -> None:
    decided = _decide(absence_known=False, remembered=state)
    assert decided.active is False
    assert decided.has_no_pods


@pytest.mark.parametrize("state", [State.MEASURED, State.STARTING, State.PARTIAL])
def test_hold_is_active_after_any_state_with_pods(state: State) -> None:
    assert _decide(absence_known=False, remembered=state).active is True


@pytest.mark.parametrize("policy", ["hold", "error", "zero"])
def test_a_signal_holds_whatever_on_unknown_says(policy: str) -> None:
    lost = bert("b", 90, last_seen=SILENT)
    decided = _decide(lost, trigger=spec(onUnknown=policy), remembered=State.ENDED)
    assert _answer(decided) == (State.UNKNOWN, None, True)
    assert not decided.refused
    assert decided.activated
    assert decided.reason.endswith("hold, active because a GPU was busy within activationWindow")


def test_error_fails_both_answers() -> None:
    decided = _decide(absence_known=False, trigger=spec(onUnknown="error"), remembered=State.ENDED)
    assert decided.refused
    assert _answer(decided) == (State.UNKNOWN, None, None)
    assert decided.reason.startswith("no pod of deployment/bert is seen")
    assert decided.reason.endswith(": an error by onUnknown error")


def test_zero_is_zero_only_because_somebody_chose_it() -> None:
    decided = _decide(absence_known=False, trigger=spec(onUnknown="zero"))
    assert _answer(decided) == (State.UNKNOWN, 0, False)
    assert decided.reason.startswith("no pod of deployment/bert is seen")
    assert decided.reason.endswith(": 0 by onUnknown zero")


def test_the_source_s_own_words_are_in_the_reason() -> None:
    decided = _decide(*_busy(1), now=NOW + 200, trouble="source default: connection refused")
    assert "200 s old, beyond maxAge 3m (source default: connection refused)" in decided.reason


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        (_busy(5), "mean utilization 90 % over 5 replicas, sum 450 % at threshold 70 % asks for 7"),
        (_busy(2, 75), "sum 150 % at threshold 70 % is on target for 2 replicas"),
        (_busy(1, 77), "sum 77 % at threshold 70 % is on target for 1 replica"),
        (_busy(2, 0), "busiest GPU 0 % within 2m is not above activationThreshold 2 %, idle by"),
        ([bert("b", [0] * 4)], "but samples do not cover 2m yet"),
        ([bert("b", 50, first_seen=NOW - 9)], "bert-7b6667bd9-bbbbb younger than warmup 2m"),
        (
            [replace(bert("b", 50), sampled_since=NOW - 60)],
            "not scraped for a whole window yet: 0 of 1 replica measured, hold",
        ),
        ([bert("b", 50, status=said(ready=NOW - 50))], "Ready for too short a time to be measured"),
        ([*_busy(4), bert("z", 9, last_seen=SILENT)], "4 of 5 replicas measured, hold"),
        ([*_busy(4, 100), bert("z", 9, last_seen=SILENT)], "those alone ask for more"),
        ([bert("b", 1, ended=True)], "1 pod of deployment/bert ended"),
        ([], "no pod of deployment/bert reports or is remembered"),
        ([bert(x, 1, last_seen=1) for x in LETTERS[:5]], "and 2 more did not end"),
    ],
)
def test_the_reason_is_a_sentence_with_the_numbers_in_it(pods: list[Pod], words: str) -> None:
    assert words in _decide(*pods).reason


MOMENTS = "idle by samples of single moments (short requests show only in an averaged metric)"


@pytest.mark.parametrize(
    ("trigger", "averaged", "words"),
    [
        (spec(), [False, False], MOMENTS),
        (spec(), [True, False], MOMENTS),
        (spec(), [True, True], "idle"),
        (spec(signal="memory", activationThreshold="20"), [False], "idle"),
        (spec(signal="power", activationThreshold="20"), [False], "idle"),
        (spec(query="load", activationThreshold="5"), [False], "idle"),
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
    [(NOW - 60, State.STARTING, (None, True)), (NOW - 200, State.EMPTY, (0, False))],
)
def test_a_count_from_before_the_hpa_began_to_ask_is_not_believed(
    asking_since: float, state: State, answer: tuple[float | None, bool]
) -> None:
    empty = NamespaceEvidence(
        NOW - 150, absence_known=True, without_pods=frozenset({Owner("Deployment", "bert")})
    )
    decided = _decide(evidence=empty, asking=Asking(asking_since, NOW))
    assert _answer(decided) == (state, *answer)


def test_the_reason_of_an_average_names_the_average() -> None:
    decided = _decide(*_busy(2), trigger=spec(aggregation="average"))
    assert "average 90 % against threshold 70 %" in decided.reason


def test_an_absence_that_is_not_believed_yet_says_so() -> None:
    assert "too soon to believe" in _decide(absence_known=False).reason


def test_samples_as_old_as_max_age_are_not_the_reason_for_what_nobody_tells() -> None:
    selecting = replace(spec(), pods=Selected("ml", "models.example.com", "bert"))
    decided = _decide(trigger=selecting, now=NOW + 180)
    assert "does not say now which pods the label selector selects" in decided.reason
    assert "(evidence: exporters)" in decided.reason
    assert "181 s old, beyond maxAge 3m" in _decide(trigger=selecting, now=NOW + 181).reason


OWN = spec(workload="", query="load", activationThreshold="5")
LISTED = NamespaceEvidence(NOW - 10, absence_known=True)


@pytest.mark.parametrize("evidence", [None, LISTED])
def test_a_query_that_shows_nothing_never_says_that_there_is_nothing(
    evidence: NamespaceEvidence | None,
) -> None:
    decided = _decide(trigger=OWN, absence_known=False, evidence=evidence)
    assert _answer(decided) == (State.UNKNOWN, None, None)
    assert "query shows no pod, which does not say that there is none" in decided.reason


def test_whose_pods_are_named_is_known_to_have_ended_by_the_cluster_s_word() -> None:
    named = spec(query="load", activationThreshold="5")
    assert _decide(trigger=named, absence_known=False).state is State.UNKNOWN
    ended = _decide(trigger=named, absence_known=False, evidence=LISTED)
    assert _answer(ended) == (State.ENDED, None, False)


@pytest.mark.parametrize(
    ("unmatched_elements", "words"),
    [(1, "1 element that names no pod in namespace ml"), (12, "12 elements that name no pod in")],
)
def test_elements_that_name_no_pod_are_in_the_reason(unmatched_elements: int, words: str) -> None:
    assert (
        words
        in _decide(trigger=OWN, absence_known=False, unmatched_elements=unmatched_elements).reason
    )


def test_a_plain_number_has_no_unit_in_the_reason() -> None:
    assert "sum 90 at threshold 70 asks" in _decide(*_busy(1), trigger=OWN).reason


def test_a_long_number_of_pods_is_cut() -> None:
    lost = [bert(letter, 1, last_seen=SILENT) for letter in LETTERS[:4]]
    assert (
        "bert-7b6667bd9-bbbbb, bert-7b6667bd9-ccccc, bert-7b6667bd9-ddddd and 1 more stopped"
        in (_decide(*lost, bert("z", 9)).reason)
    )


def test_a_warming_pod_without_samples_says_so() -> None:
    decided = _decide(bert("b", first_seen=NOW - 30))
    assert "no GPU sample to judge activity by" in decided.reason


def test_the_reason_of_hold_says_what_is_remembered() -> None:
    assert "nothing is remembered" in _decide(absence_known=False).reason
    gone = _decide(absence_known=False, remembered=State.ENDED)
    assert "inactive because the workload had no pods" in gone.reason
    there = _decide(absence_known=False, remembered=State.PARTIAL)
    assert "active because the workload was not at rest" in there.reason


@st.composite
def _pods(draw: st.DrawFn) -> Pod:
    first_seen = draw(st.none() | st.floats(NOW - 300, NOW))
    return pod(
        f"bert-7b6667bd9-{draw(st.sampled_from(LETTERS)) * 5}",
        draw(st.floats(0, 100)),
        first_seen=first_seen,
        last_seen=max(draw(st.floats(NOW - 4000, NOW)), first_seen or 0),
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
