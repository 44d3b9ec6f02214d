"""Claims about which earlier facts are trusted after the load became unknown."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import (
    Decision,
    Memory,
    State,
    recall,
    remember,
    remember_call,
)

STEP = 15.0
MEASURED = Decision(state=State.MEASURED, reason="", value=None, active=None)
UNKNOWN, GONE, PARTIAL = (
    replace(MEASURED, state=state) for state in (State.UNKNOWN, State.ENDED, State.PARTIAL)
)
ENDED, IN_USE = Memory(State.ENDED, 100.0), Memory.in_use(115.0)
LOST = replace(ENDED, lost_at=115.0)
IDLE = Memory(State.MEASURED, 100.0, is_idle=True)
BUSY = Memory(State.MEASURED, 100.0)


@pytest.mark.parametrize(
    ("before", "now", "step", "has_stopped", "state"),
    [
        (None, 100.0, STEP, False, None),
        (ENDED, 145.0, STEP, False, State.ENDED),
        # Pods may have come since.
        (ENDED, 146.0, STEP, False, State.MEASURED),
        # A memory is not older than a poll, however short the steps are.
        (ENDED, 145.0, 5.0, False, State.ENDED),
        (ENDED, 190.0, 30.0, False, State.ENDED),
        # It does not age during the outage, nor do pods.
        (LOST, 9999.0, STEP, False, State.ENDED),
        (Memory(State.PARTIAL, 100.0), 9999.0, STEP, False, State.PARTIAL),
        # The HPA has stopped asking: what was idle is at rest, and what was in use is not.
        (IDLE, 145.0, STEP, False, State.MEASURED),
        (IDLE, 145.0, STEP, True, State.ENDED),
        (IDLE, 146.0, STEP, True, State.MEASURED),
        (BUSY, 145.0, STEP, True, State.MEASURED),
        (ENDED, 9999.0, STEP, True, State.ENDED),
    ],
)
def test_what_is_recalled(
    before: Memory | None, now: float, step: float, *, has_stopped: bool, state: State | None
) -> None:
    assert recall(before, now, step, hpa_has_stopped=has_stopped) is state


@pytest.mark.parametrize(
    ("before", "decided", "at", "after"),
    [
        (LOST, MEASURED, 130.0, Memory(State.MEASURED, 130.0)),
        (None, replace(MEASURED, active=False), 100.0, IDLE),
        (None, replace(MEASURED, active=True), 100.0, BUSY),
        # What is unknown marks once when knowledge ended.
        (ENDED, UNKNOWN, 115.0, LOST),
        (LOST, UNKNOWN, 130.0, LOST),
        (None, UNKNOWN, 115.0, None),
        # A signal during the outage is something to remember.
        (LOST, replace(UNKNOWN, activated=True), 130.0, Memory.in_use(130.0)),
        (None, replace(UNKNOWN, activated=True), 130.0, Memory.in_use(130.0)),
        # No pods at an instant before a signal say nothing of the time after it.
        (IN_USE, GONE, 105.0, IN_USE),
        (IN_USE, replace(GONE, state=State.EMPTY), 115.0, IN_USE),
        (IN_USE, GONE, 120.0, Memory(State.ENDED, 120.0)),
        (IN_USE, PARTIAL, 105.0, Memory(State.PARTIAL, 105.0)),
    ],
)
def test_what_is_remembered(
    before: Memory | None, decided: Decision, at: float, after: Memory | None
) -> None:
    assert remember(before, decided, at) == after


@pytest.mark.parametrize("before", [None, IDLE, ENDED, Memory(State.PARTIAL, 100.0)])
def test_a_call_of_the_hpa_ends_a_memory_of_rest_once_it_cannot_be_about_the_last_replica(
    before: Memory | None,
) -> None:
    assert remember_call(before, 159.0) == before
    is_rest = before in {IDLE, ENDED}
    assert remember_call(before, 160.0) == (Memory.in_use(160.0) if is_rest else before)
