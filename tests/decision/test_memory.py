"""Claims about which earlier facts are trusted after the load became unknown."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision import memory
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.memory import Memory

STEP = 15.0


def _decision(state: State, *, activated: bool = False) -> Decision:
    return Decision(state=state, reason="", value=None, active=None, activated=activated)


def test_nothing_is_recalled_of_nothing() -> None:
    assert memory.recall(None, 100.0, STEP) is None


def test_a_fresh_memory_of_a_workload_without_pods_is_trusted() -> None:
    assert memory.recall(Memory(State.ENDED, 100.0), 145.0, STEP) is State.ENDED


def test_an_older_one_is_not_because_pods_may_have_come_since() -> None:
    assert memory.recall(Memory(State.ENDED, 100.0), 146.0, STEP) is State.MEASURED


def test_short_steps_do_not_make_a_memory_older_than_a_poll() -> None:
    assert memory.recall(Memory(State.ENDED, 100.0), 145.0, 5.0) is State.ENDED
    assert memory.recall(Memory(State.ENDED, 100.0), 190.0, 30.0) is State.ENDED


def test_a_memory_does_not_age_during_the_outage() -> None:
    assert memory.recall(Memory(State.ENDED, 100.0, lost_at=115.0), 9999.0, STEP) is State.ENDED


def test_a_memory_of_pods_is_trusted_however_old() -> None:
    assert memory.recall(Memory(State.PARTIAL, 100.0), 9999.0, STEP) is State.PARTIAL


def test_every_known_state_replaces_the_memory() -> None:
    before = Memory(State.ENDED, 100.0, lost_at=115.0)
    assert memory.remember(before, _decision(State.MEASURED), 130.0) == Memory(
        State.MEASURED, 130.0
    )


def test_an_unknown_state_marks_when_knowledge_ended_once() -> None:
    lost = memory.remember(Memory(State.ENDED, 100.0), _decision(State.UNKNOWN), 115.0)
    assert lost == Memory(State.ENDED, 100.0, lost_at=115.0)
    assert memory.remember(lost, _decision(State.UNKNOWN), 130.0) == lost


def test_an_unknown_state_with_nothing_before_is_not_remembered() -> None:
    assert memory.remember(None, _decision(State.UNKNOWN), 115.0) is None


def test_a_signal_during_the_outage_ends_a_memory_of_no_pods() -> None:
    before = Memory(State.ENDED, 100.0, lost_at=115.0)
    after = memory.remember(before, _decision(State.UNKNOWN, activated=True), 130.0)
    assert memory.recall(after, 145.0, STEP) is State.MEASURED


def test_a_signal_is_something_to_remember_where_there_was_nothing() -> None:
    assert memory.remember(None, _decision(State.UNKNOWN, activated=True), 130.0) is not None


@pytest.mark.parametrize("gone", [State.ENDED, State.EMPTY])
def test_no_pods_at_an_instant_before_a_signal_say_nothing_of_the_time_after_it(
    gone: State,
) -> None:
    signalled = memory.in_use(115.0)
    assert memory.remember(signalled, _decision(gone), 105.0) == signalled
    assert memory.remember(signalled, _decision(gone), 115.0) == signalled
    assert memory.remember(signalled, _decision(gone), 120.0) == Memory(gone, 120.0)


def test_pods_at_an_instant_before_a_signal_are_as_good_as_the_signal() -> None:
    after = memory.remember(memory.in_use(115.0), _decision(State.PARTIAL), 105.0)
    assert after == Memory(State.PARTIAL, 105.0)


IDLE = Memory(State.MEASURED, 100.0, is_idle=True)


def test_an_idle_workload_is_at_rest_only_where_the_hpa_has_stopped_asking() -> None:
    assert memory.recall(IDLE, 145.0, STEP) is State.MEASURED
    assert memory.recall(IDLE, 145.0, STEP, hpa_has_stopped=True) is State.ENDED
    assert memory.recall(IDLE, 146.0, STEP, hpa_has_stopped=True) is State.MEASURED


def test_a_workload_in_use_is_not_at_rest_because_the_hpa_is_silent() -> None:
    busy = Memory(State.MEASURED, 100.0)
    assert memory.recall(busy, 145.0, STEP, hpa_has_stopped=True) is State.MEASURED


def test_no_pods_stay_no_pods_where_the_hpa_has_stopped_asking() -> None:
    gone = Memory(State.ENDED, 100.0)
    assert memory.recall(gone, 9999.0, STEP, hpa_has_stopped=True) is State.ENDED


def test_pods_that_are_not_in_use_are_remembered_as_idle() -> None:
    idle = replace(_decision(State.MEASURED), active=False)
    assert memory.remember(None, idle, 100.0) == IDLE
    in_doubt = replace(_decision(State.MEASURED), active=True)
    assert memory.remember(None, in_doubt, 100.0) == Memory(State.MEASURED, 100.0)


@pytest.mark.parametrize("before", [IDLE, Memory(State.ENDED, 100.0)])
def test_a_call_of_the_hpa_ends_a_memory_of_rest_once_it_cannot_be_about_the_last_replica(
    before: Memory,
) -> None:
    assert memory.asked(before, 159.0) == before
    assert memory.asked(before, 160.0) == memory.in_use(160.0)


@pytest.mark.parametrize("before", [None, Memory(State.PARTIAL, 100.0)])
def test_a_call_of_the_hpa_changes_no_other_memory(before: Memory | None) -> None:
    assert memory.asked(before, 200.0) == before
