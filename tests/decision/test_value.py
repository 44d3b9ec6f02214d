"""Claims about the number: a sum that is only a lower bound never lowers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import Context, Decision, decide
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, said, snapshot, unseen
from tests.support.triggers import spec

LETTERS = "bcdfghjklmnp"


def _decide(*pods: Pod, wanted: int | None, trigger: TriggerSpec | None = None) -> Decision:
    asked = {} if wanted is None else {BERT_DEPLOYMENT: wanted}
    listed = NamespaceEvidence(NOW - 10, absence_known=True, wanted=asked)
    return decide(trigger or spec(), snapshot(*pods, evidence=listed), Context(NOW, 3600.0))


def _ready(count: int, *values: float | list[float]) -> list[Pod]:
    return [bert(letter, *values, status=said()) for letter in LETTERS[:count]]


def _late(count: int, age: float) -> list[Pod]:
    return [
        unseen(letter, said(never=True, created=NOW - age)) for letter in reversed(LETTERS[-count:])
    ]


def test_above_the_threshold_replicas_that_are_still_to_come_are_not_given_back() -> None:
    decided = _decide(*_ready(3, 100), wanted=12)
    assert (decided.value, decided.active) == (None, True)
    assert "3 replicas, sum 300 %" in decided.reason
    assert "at least, and 9 more that its owner asks for are not Ready: hold" in decided.reason
    assert "1 more that its owner asks for is not Ready" in _decide(*_ready(3, 80), wanted=4).reason


@pytest.mark.parametrize(("value", "answer"), [(70, 210), (70.1, None), (77, None)])
def test_at_or_below_the_threshold_they_are(value: float, answer: float | None) -> None:
    assert _decide(*_ready(3, value), wanted=12).value == answer


@pytest.mark.parametrize(("count", "value", "answer"), [(3, 90, None), (3, 93, None), (4, 97, 388)])
def test_more_than_the_owner_asks_for_is_answered_at_once(
    count: int, value: float, answer: float | None
) -> None:
    """1.1 times the threshold for each replica that is asked for."""
    assert _decide(*_ready(count, value), wanted=count + 1).value == answer


def test_an_owner_that_asks_for_no_more_waits_for_nothing() -> None:
    for wanted in (None, 2, 3):
        assert _decide(*_ready(3, 100), *_late(1, 60), wanted=wanted).value == 300


def test_what_was_not_ready_in_time_is_given_back_unless_the_others_are_full() -> None:
    assert _decide(*_ready(3, 80), *_late(3, 1900), wanted=6).value == 240
    assert _decide(*_ready(3, 80), *_late(3, 1700), wanted=6).value is None
    assert _decide(*_ready(3, 95), *_late(3, 1900), wanted=6).value is None
    power = spec(signal="power", activationThreshold="50")
    assert _decide(*_ready(3, 95), *_late(3, 1900), wanted=6, trigger=power).value == 285


def test_half_a_window_above_the_threshold_is_remembered_as_far_as_samples_reach() -> None:
    """By default window and warmup: 4 minutes."""
    busy, lull = [80.0] * 4, [10.0] * 12
    assert _decide(*_ready(2, busy + lull), wanted=4).value is None
    assert _decide(*_ready(2, [10.0] * 1 + busy + [10.0] * 16), wanted=4).value == 20
    assert _decide(*_ready(2, busy + lull), wanted=2).value == 20


def test_what_a_pod_showed_before_it_was_ready_is_no_load_that_is_remembered() -> None:
    loaded = bert("b", [100.0] * 8 + [10.0] * 8, status=said(ready=NOW - 150))
    assert _decide(loaded, wanted=4).value == 10


def test_ready_pods_without_a_gpu_are_not_waited_for() -> None:
    other = unseen("c", said(asks_gpu=False))
    nobody_asks = bert("b", 90, status=said(asks_gpu=False))
    assert _decide(nobody_asks, other, wanted=2).value == 90


def test_groups_are_waited_for_as_groups() -> None:
    sets = frozenset({Owner("StatefulSet", "bert")})
    pods = [
        replace(bert("b", 90, status=said(owners=sets)), name=name)
        for name in ("bert-0", "bert-0-1", "bert-1", "bert-1-1")
    ]
    listed = NamespaceEvidence(
        NOW - 10, absence_known=True, wanted={Owner("StatefulSet", "bert"): 3}
    )
    seen, trigger = snapshot(*pods, evidence=listed), spec(workload="lws/bert")
    decided = decide(trigger, seen, Context(NOW, 3600.0))
    assert (decided.value, decided.expected) == (None, 2)


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=6),
    st.integers(0, 12),
    st.floats(10, 90),
)
def test_above_the_threshold_no_number_asks_for_fewer_than_the_owner_does(
    loads: list[float], wanted: int, threshold: float
) -> None:
    pods = [bert(letter, load, status=said()) for letter, load in zip(LETTERS, loads, strict=False)]
    trigger = spec(threshold=f"{threshold:.3f}")
    decided = _decide(*pods, wanted=wanted, trigger=trigger)
    mean = sum(loads) / len(loads)
    if decided.value is not None and wanted > len(loads) and mean > trigger.threshold + 1e-6:
        assert decided.value > wanted * trigger.threshold
