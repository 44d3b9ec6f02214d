"""`true` is pushed on the edge, again while no pod exists, and a stream has an end."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.service import streams
from tests.service.harness import QUIET, SIGNAL

WAKING = replace(SIGNAL, state=State.ENDED, reporting_pods=0)


def pushed(*decisions: Decision, step_seconds: float = 15) -> list[bool]:
    """Pass in decisions one step apart; return for each whether it was pushed."""
    pushes = streams.Pushes()
    return [
        pushes.is_due(decided, 1000 + number * step_seconds)
        for number, decided in enumerate(decisions)
    ]


@pytest.mark.parametrize(
    ("decisions", "step_seconds", "expected"),
    [
        ((SIGNAL,), 15, [True]),
        ((QUIET, QUIET), 15, [False, False]),
        ((QUIET, SIGNAL, SIGNAL, QUIET, SIGNAL), 15, [False, True, False, False, True]),
        ((replace(QUIET, active=True, reporting_pods=0),), 15, [False]),
        ((WAKING,) * 7, 5, [True, False, False, True, False, False, True]),
        ((WAKING,) * 3, 60, [True] * 3),
        ((WAKING, WAKING, SIGNAL, SIGNAL), 15, [True, True, False, False]),
    ],
    ids=[
        "active when the stream opens",
        "idle",
        "each rising edge while pods report",
        "active without a signal",
        "it may be lost, so it is repeated while no pod exists",
        "but not more often than there is news",
        "until the first pod",
    ],
)
def test_a_signal_is_pushed_on_its_edge_and_again_while_no_pod_exists(
    decisions: tuple[Decision, ...], step_seconds: float, expected: list[bool]
) -> None:
    assert pushed(*decisions, step_seconds=step_seconds) == expected
