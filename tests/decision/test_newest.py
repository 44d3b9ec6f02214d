"""Claims about the newest samples: they raise, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, Pod
from testbed.triggers import spec
from tests.decision.deciding import decide_about
from tests.support.snapshots import NOW, bert, pod, said

ALIVE_AT = NOW - 10
"""The cluster showed then that no pod was to end: the newest instant before is NOW - 15."""


def _told(suffix: str, values: Sequence[float] | float, ready: float = NEVER_SEEN) -> Pod:
    return bert(suffix, values, status=said(ready=ready, alive_at=ALIVE_AT))


RISEN = [20.0] * 16 + [90.0]
WHOLE = bert("b", RISEN, 20)
LATE = replace(WHOLE.gpus[1], times=WHOLE.gpus[1].times[:-1], values=WHOLE.gpus[1].values[:-1])
FULL, FULL_SINCE = [_told(letter, 100.0) for letter in "bc"], [50.0] * 10 + [100.0] * 7
FULL_LATELY = [_told(letter, FULL_SINCE) for letter in "bc"]
TWO_GPUS = {"gpuAggregation": "sum", "threshold": "140"}
AVERAGE = {"aggregation": "average"}
VALUES: dict[str, tuple[list[Pod], dict[str, str], float | None]] = {
    "a lone replica": ([_told("b", RISEN)], {}, 90),
    "a lone replica, by exporters alone": ([bert("b", RISEN)], {}, 90),
    "an average": ([_told("b", RISEN)], AVERAGE, 90),
    "an instant with every GPU": ([WHOLE], {}, 55),
    "an instant without every GPU": ([replace(WHOLE, gpus=(WHOLE.gpus[0], LATE))], {}, 28.75),
    "a group": ([pod("bert-0", RISEN), pod("bert-0-1", 20)], {"workload": "lws/bert"}, 55),
    **{
        f"{signal} follows the work late": (
            [_told("b", [20.0] * 16 + [60.0])],
            {"signal": signal, "activationThreshold": "50"},
            25,
        )
        for signal in ("memory", "memory-used", "power", "temperature")
    },
    "the first sample of a young replica": (
        [_told("b", [60.0] * 12 + [94.0] * 5), _told("c", [0.0] * 15 + [94.0] * 2, NOW - 60)],
        {},
        188,
    ),
    # A model that loads for three minutes shows 100 % for as long.
    "half a window after warmup": ([bert("c", [85.0] * 16 + [90.0], first_seen=NOW - 225)], {}, 90),
    "less after warmup": ([bert("c", [85.0] * 16 + [90.0], first_seen=NOW - 224)], {}, 86.25),
    # Full replicas ask for 120 % of what they show, and at least 1.7 times their threshold.
    "full, and 120 %": (FULL_LATELY, {"threshold": "60"}, 240),
    "full, and 1.7 times": (FULL_LATELY, {"threshold": "80"}, 272),
    "full, by their average": (FULL_LATELY, AVERAGE, 120),
    "full on each GPU": ([bert("b", 100, 100, status=said(alive_at=ALIVE_AT))], TWO_GPUS, 240),
    "full, which is the target": (FULL_LATELY, {"gpuAggregation": "sum", "threshold": "95"}, 200),
    "full, above a sum": (FULL_LATELY, {"gpuAggregation": "sum", "threshold": "90"}, 306),
    "full on one GPU": ([bert("b", 100, 94, status=said(alive_at=ALIVE_AT))], TWO_GPUS, 194),
    "full and young": ([FULL[0], _told("c", [0.0] * 15 + [100.0] * 2, NOW - 60)], {}, 240),
    "young and not full": ([FULL[0], _told("c", [0.0] * 15 + [90.0] * 2, NOW - 60)], {}, 190),
    # What is not known, or not full, leaves it at what they show.
    "not full by the newest sample": ([_told("b", [100.0] * 16 + [94.0]), FULL[1]], {}, 200),
    "not full a minute ago": (
        [_told("b", [100.0] * 14 + [94.0] + [100.0] * 2), FULL[1]],
        {},
        200,
    ),
    "full, and one is starting": (
        [*FULL, bert("d", 0, status=said(never=True, created=NOW - 9))],
        {},
        200,
    ),
    "full, and one is missing": (
        [*FULL, bert("d", 100, last_seen=NOW - 100, status=said())],
        {},
        None,
    ),
}


@pytest.mark.parametrize(("pods", "keys", "value"), VALUES.values(), ids=VALUES)
def test_the_newest_samples_raise(
    pods: list[Pod], keys: dict[str, str], value: float | None
) -> None:
    assert decide_about(*pods, trigger=spec(**keys)).value == value


def test_the_reason_says_what_the_newest_samples_ask_for() -> None:
    assert "in the newest samples" in decide_about(_told("b", RISEN)).reason
    assert "full, so more load may be waiting" in decide_about(*FULL_LATELY).reason


def test_what_was_asked_for_and_is_to_come_is_not_asked_for_again() -> None:
    assert [decide_about(*FULL, wanted=wanted).value for wanted in (2, 3)] == [240, None]


@given(st.lists(st.lists(st.floats(0, 94), min_size=17, max_size=17), min_size=1, max_size=4))
def test_an_answer_is_never_less_than_the_mean_nor_more_than_the_largest_sum(
    shown: list[list[float]],
) -> None:
    pods = [_told(letter, values) for letter, values in zip("bcdf", shown, strict=False)]
    value = decide_about(*pods).value
    assert value is not None
    sums = [sum(values) for values in zip(*shown, strict=True)]
    assert sum(sums[-8:]) / 8 - 1e-5 <= value <= max(sums[-8:]) + 1e-5


@pytest.mark.parametrize(
    ("age", "is_listed", "value"),
    [
        (0, True, 74.5),
        (15, True, 148),
        (30, True, 74.5),
        # By exporters alone, a drain of half a minute has to be over.
        (30, False, 74.5),
        (45, False, 148),
    ],
)
def test_of_several_replicas_only_what_they_showed_while_all_were_there_counts(
    age: int, value: float, *, is_listed: bool
) -> None:
    """One of them may have left since, and drains while the other does its work already."""
    at = 16 - age // 15
    values = [32.0] * at + [74.0] + [32.0] * (16 - at)
    make = _told if is_listed else bert
    assert decide_about(make("b", values), make("c", values)).value == value
