"""Claims about the newest samples: they raise, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import Context, Decision, State, decide
from keda_gpu_scaler.snapshot.evidence import EvidenceSource, NamespaceEvidence
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from tests.support.snapshots import BERT_DEPLOYMENT, NOW, bert, pod, said, snapshot
from tests.support.triggers import spec

LISTED = NOW - 10
"""The cluster showed then that no pod was to end: the newest instant before is NOW - 15."""


def _decided(*pods: Pod, trigger: TriggerSpec | None = None, wanted: int | None = None) -> Decision:
    listed = None
    if wanted is not None:
        listed = NamespaceEvidence(
            LISTED,
            absence_known=True,
            evidence_source=EvidenceSource.KUBE_STATE_METRICS,
            wanted={BERT_DEPLOYMENT: wanted},
        )
    return decide(trigger or spec(), snapshot(*pods, evidence=listed), Context(NOW, 3600.0))


def _told(suffix: str, values: Sequence[float] | float, ready: float | None = None) -> Pod:
    return bert(suffix, values, status=said(ready=ready, alive_at=LISTED))


def test_a_lone_replica_asks_for_more_with_its_newest_sample() -> None:
    for risen in (_told("b", [20.0] * 16 + [90.0]), bert("b", [20.0] * 16 + [90.0])):
        assert _decided(risen).value == 90
    assert "newest" in _decided(_told("b", [20.0] * 16 + [90.0])).reason


@given(st.lists(st.lists(st.floats(0, 94), min_size=17, max_size=17), min_size=1, max_size=4))
def test_an_answer_is_never_less_than_the_mean_nor_more_than_the_largest_sum(
    shown: list[list[float]],
) -> None:
    value = _decided(
        *(_told(letter, one) for letter, one in zip("bcdf", shown, strict=False))
    ).value
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
    assert _decided(make("b", values), make("c", values)).value == value


def test_only_instants_count_that_show_every_gpu_of_a_replica() -> None:
    whole = bert("b", [20.0] * 16 + [90.0], 20)
    assert _decided(whole).value == 55
    first, second = whole.gpus
    late = GpuSamples(second.gpu, second.times[:-1], second.values[:-1])
    assert _decided(replace(whole, gpus=(first, late))).value == 28.75


def test_groups_are_added_up_as_groups() -> None:
    shown = [20.0] * 16 + [90.0]
    group = [pod(f"bert-0{end}", values) for end, values in (("", shown), ("-1", [20.0] * 17))]
    assert _decided(*group, trigger=spec(workload="lws/bert")).value == 55


@pytest.mark.parametrize("signal", ["memory", "memory-used", "power", "temperature"])
def test_what_follows_the_work_late_has_only_its_mean(signal: str) -> None:
    trigger = spec(signal=signal, activationThreshold="50")
    assert _decided(_told("b", [20.0] * 16 + [60.0]), trigger=trigger).value == 25


def test_a_young_replica_counts_with_its_first_sample_if_more_are_needed_than_there_are() -> None:
    old, young = _told("b", [60.0] * 12 + [94.0] * 5), _told("c", [0.0] * 15 + [94.0] * 2, NOW - 60)
    decided = _decided(old, young)
    assert (decided.state, decided.value) == (State.STARTING, 188)


def test_where_readiness_is_unknown_half_a_window_after_warmup_is_waited_for() -> None:
    """A model that loads for three minutes shows 100 % for as long."""
    for age, value in ((224, 86.25), (225, 90)):
        loading = bert("c", [85.0] * 16 + [90.0], first_seen=NOW - age)
        assert _decided(loading).value == value


# Where all are full


def test_full_replicas_ask_for_more_than_they_show() -> None:
    """120 % of it, and at least 1.7 times their threshold."""
    for threshold, value in (("60", 240), ("70", 240), ("80", 272)):
        full = [_told(letter, [50.0] * 10 + [100.0] * 7) for letter in "bc"]
        decided = _decided(*full, trigger=spec(threshold=threshold))
        assert decided.value == value
        assert "full" in decided.reason


def test_a_replica_of_several_gpus_is_full_if_each_of_them_is() -> None:
    summed = spec(gpuAggregation="sum", threshold="140")
    both = bert("b", 100, 100, status=said(alive_at=LISTED))
    assert _decided(both, trigger=summed).value == 240
    one = bert("b", 100, 94, status=said(alive_at=LISTED))
    assert _decided(one, trigger=summed).value == 194


@pytest.mark.parametrize(
    "pods",
    [
        [_told("b", [100.0] * 16 + [94.0]), _told("c", 100.0)],
        [_told("b", [100.0] * 14 + [94.0] + [100.0] * 2), _told("c", 100.0)],
        [
            _told("b", 100.0),
            _told("c", 100.0),
            bert("d", 0, status=said(never=True, created=NOW - 9)),
        ],
        [_told("b", 100.0), _told("c", 100.0), bert("d", 100, last_seen=NOW - 100, status=said())],
    ],
    ids=["the newest sample", "a sample of the last minute", "one is starting", "one is missing"],
)
def test_one_that_is_not_full_or_not_known_leaves_it_at_what_they_show(pods: list[Pod]) -> None:
    value = _decided(*pods).value
    assert value is None or value <= 200


def test_what_was_asked_for_and_is_to_come_is_not_asked_for_again() -> None:
    full = [_told(letter, 100.0) for letter in "bc"]
    assert [_decided(*full, wanted=wanted).value for wanted in (2, 3)] == [240, None]


def test_a_young_replica_that_is_full_counts_as_full() -> None:
    old, young = _told("b", 100.0), _told("c", [0.0] * 15 + [100.0] * 2, NOW - 60)
    assert _decided(old, young).value == 240
    loading = _told("c", [0.0] * 15 + [90.0] * 2, NOW - 60)
    assert _decided(old, loading).value == 190


def test_an_average_is_that_of_the_replicas_that_the_newest_sum_is_of() -> None:
    trigger = spec(aggregation="average")
    assert _decided(_told("b", [20.0] * 16 + [90.0]), trigger=trigger).value == 90
    full = [_told(letter, [50.0] * 10 + [100.0] * 7) for letter in "bc"]
    assert _decided(*full, trigger=trigger).value == 120
