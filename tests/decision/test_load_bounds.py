"""Claims about the number: a sum that is only a lower bound never lowers."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.spec.workload import Owner
from testbed.triggers import spec
from tests.decision.deciding import LETTERS, LISTED, decide_about, ready
from tests.support.snapshots import NOW, bert, said, unseen


def _late(count: int, age: float) -> list[Pod]:
    return [unseen(letter, said(never=True, created=NOW - age)) for letter in LETTERS[::-1][:count]]


def test_above_the_threshold_replicas_that_are_still_to_come_are_not_given_back() -> None:
    decided = decide_about(*ready(100, count=3), wanted=12)
    assert (decided.wanted, decided.value, decided.active) == (12, None, True)
    assert "3 replicas: sum 300 %" in decided.reason
    assert "held: 9 more of its replicas are not Ready" in decided.reason
    one_more = decide_about(*ready(80, count=3), wanted=4)
    assert "1 more of its replicas is not Ready;" in one_more.reason


@pytest.mark.parametrize(
    ("others", "wanted", "words"),
    [
        (
            [unseen("c", said(asks_gpu=False))],
            4,
            "1 more of its replicas is not Ready, or requests no",
        ),
        (
            [unseen("c", said(asks_gpu=False))],
            5,
            "2 more of its replicas are not Ready, or request no",
        ),
        ([unseen("c", said(asks_gpu=False, never=True))], 4, "of its replicas is not Ready;"),
        (
            [bert("c", 0, ended=True, status=said(asks_gpu=False))],
            4,
            "of its replicas is not Ready;",
        ),
    ],
)
def test_a_ready_pod_without_a_gpu_request_is_not_called_not_ready(
    others: list[Pod], wanted: int, words: str
) -> None:
    full = [bert(letter, 80, status=said(is_ready=True, asks_gpu=True)) for letter in "dfg"]
    assert words in decide_about(*full, *others, wanted=wanted).reason


STATEFUL_SET = Owner("StatefulSet", "bert")
POWER = spec(signal="power", activationThreshold="50")
ADDED = spec(gpuAggregation="sum", threshold="100")


def _two_gpus(load: float, count: int = 1) -> list[Pod]:
    return [bert(letter, load, load, status=said(is_ready=True)) for letter in LETTERS[:count]]


@pytest.mark.parametrize(
    ("pods", "wanted", "trigger", "value"),
    [
        (ready(70, count=3), 12, None, 210),
        (ready(70.1, count=3), 12, None, None),
        # More than the owner asks for: 1.1 times the threshold for each replica that it does.
        (ready(93, count=3), 4, None, None),
        (ready(97, count=4), 5, None, 388),
        # The owner asks for no more.
        ([*ready(100, count=3), *_late(1, 60)], None, None, 300),
        ([*ready(100, count=3), *_late(1, 60)], 3, None, 300),
        # What was not Ready in time is given back, unless the others are full.
        ([*ready(80, count=3), *_late(3, 1900)], 6, None, 240),
        ([*ready(80, count=3), *_late(3, 1700)], 6, None, None),
        ([*ready(95, count=3), *_late(3, 1900)], 6, None, None),
        ([*ready(95, count=3), *_late(3, 1900)], 6, POWER, 285),
        ([*ready(60, count=3), *_late(3, 60)], 6, POWER, 180),
        # GPUs that are added up are full one by one.
        ([*ready(100, count=3), *_late(3, 60)], 6, ADDED, None),
        ([*ready(100, count=3), *_late(3, 1900)], 6, ADDED, None),
        ([*_two_gpus(60, count=3), *_late(3, 1900)], 6, ADDED, 360),
        ([*_two_gpus(96, count=3), *_late(3, 1900)], 6, ADDED, None),
        # Ready pods without a GPU are not waited for.
        (
            [bert("b", 90, status=said(asks_gpu=False)), unseen("c", said(asks_gpu=False))],
            2,
            None,
            90,
        ),
    ],
)
def test_what_is_to_come_is_waited_for_while_the_others_have_enough_to_do(
    pods: list[Pod], wanted: int | None, trigger: TriggerSpec | None, value: float | None
) -> None:
    assert decide_about(*pods, wanted=wanted, trigger=trigger).value == value


def test_half_a_window_above_the_threshold_is_remembered_as_far_as_samples_reach() -> None:
    """By default window and warmup: 4 minutes."""
    busy, lull = [70.4] * 4, [10.0] * 12
    assert decide_about(*ready(busy + lull, count=2), wanted=4).value is None
    assert decide_about(*ready([10.0] * 1 + busy + [10.0] * 16, count=2), wanted=4).value == 20
    assert decide_about(*ready(busy + lull, count=2), wanted=2).value == 20
    # A short burst is no half window.
    assert decide_about(*ready([*lull, 80.0, *lull], count=2), wanted=4).value == 20


def test_what_a_pod_showed_before_it_was_ready_is_no_load_that_is_remembered() -> None:
    loaded = bert("b", [100.0] * 8 + [10.0] * 8, status=said(ready=NOW - 150))
    assert decide_about(loaded, wanted=4).value == 10


def test_groups_are_waited_for_as_groups() -> None:
    group = bert("b", 90, status=said(owners=frozenset({STATEFUL_SET})))
    pods = [replace(group, name=name) for name in ("bert-0", "bert-0-1", "bert-1", "bert-1-1")]
    listed = replace(LISTED, wanted={STATEFUL_SET: 3})
    decided = decide_about(*pods, trigger=spec(workload="lws/bert"), evidence=listed)
    assert (decided.value, decided.expected) == (None, 2)


def test_a_count_of_the_owner_is_as_old_as_the_samples() -> None:
    assert decide_about(*ready(90), wanted=4, now=NOW + 180).wanted == 4
    assert decide_about(*ready(90), wanted=4, now=NOW + 181).wanted is None


def test_a_leader_without_a_gpu_is_no_replica_of_its_own() -> None:
    of_set = said(asks_gpu=None, owners=frozenset({STATEFUL_SET}))
    worker = replace(bert("b", 90, status=of_set), name="bert-0-1")
    pods = replace(unseen("c", of_set), name="bert-0"), worker
    listed = replace(LISTED, wanted={STATEFUL_SET: 2})
    decided = decide_about(*pods, trigger=spec(workload="lws/bert"), evidence=listed)
    assert (decided.ignored, decided.value) == (("bert-0",), None)


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=6),
    st.integers(0, 12),
    st.floats(10, 90),
)
def test_above_the_threshold_no_number_asks_for_fewer_than_the_owner_does(
    loads: list[float], wanted: int, threshold: float
) -> None:
    trigger = spec(threshold=f"{threshold:.3f}")
    decided = decide_about(*ready(*loads), wanted=wanted, trigger=trigger)
    mean = sum(loads) / len(loads)
    if decided.value is not None and wanted > len(loads) and mean > trigger.threshold + 1e-6:
        assert decided.value > wanted * trigger.threshold


# Replicas that are not seen

READY = said(is_ready=True)


def _silent(count: int) -> list[Pod]:
    return [bert(letter, 50, last_seen=NOW - 100, status=READY) for letter in LETTERS[::-1][:count]]


def _unseen(count: int) -> list[Pod]:
    return [unseen(letter, READY) for letter in LETTERS[6 : 6 + count]]


def test_a_silent_replica_counts_as_full_while_all_others_are() -> None:
    decided = decide_about(*ready(96), *_silent(1))
    assert (decided.state, decided.value, decided.active) == (State.PARTIAL, 192, True)
    assert "1 of 2 replicas measured, all of them full" in decided.reason
    assert "the others that are Ready count as full: sum 192 %" in decided.reason


@pytest.mark.parametrize(("replaced", "value"), [(0, 700), (1, 600), (3, None), (4, None)])
def test_a_silent_replica_with_a_pod_in_its_place_does_not_count(
    replaced: int, value: float | None
) -> None:
    """Its node is lost, and the others do its work."""
    waiting = [unseen(letter, said(never=True)) for letter in LETTERS[6 : 6 + replaced]]
    decided = decide_about(*ready(100, count=3), *_silent(4), *waiting, wanted=7)
    assert decided.value == value


def _missing(count: int) -> list[Pod]:
    return [replace(pod, status=said()) for pod in _silent(count)]


GONE = bert("z", 50, last_seen=NOW - 100, status=said())
UNNAMED = replace(bert("z", 50, last_seen=NOW - 30, status=READY), is_unnamed=True)
"""Its exporter has lost its map: its last samples are not summed up, however new they are."""


@pytest.mark.parametrize(
    ("pods", "keys", "value"),
    [
        ([*ready(94), *_silent(1)], {}, None),
        ([*ready(96), *_silent(1)], {"aggregation": "average"}, 96),
        ([*ready(96), UNNAMED], {}, 192),
        ([*ready(94), UNNAMED], {}, None),
        ([*_two_gpus(60), *_silent(1)], {"gpuAggregation": "sum", "threshold": "100"}, None),
        # The HPA multiplies an average by the Ready replicas: 60 of 50 would be 4 for 3 of 5.
        ([*ready(100, count=3), *_missing(2)], {"aggregation": "average", "threshold": "50"}, None),
        ([*ready(100, count=4), *_missing(1)], {"aggregation": "average", "threshold": "50"}, 80),
        # One that is not Ready adds nothing.
        ([*ready(96), replace(UNNAMED, status=said())], {}, None),
        ([*ready(100), GONE], {}, None),
        # A majority that is not seen holds, unless the measured ones ask for more.
        ([*ready(100), *_unseen(2)], {}, None),
        ([*ready(100), *_unseen(2)], {"threshold": "30"}, 100),
        # Beside a silent replica, one that was never seen adds nothing.
        ([*ready(100, count=3), *_silent(1), *_unseen(1)], {}, 400),
    ],
)
def test_what_replicas_that_are_not_seen_add(
    pods: list[Pod], keys: dict[str, str], value: float | None
) -> None:
    assert decide_about(*pods, trigger=spec(**keys)).value == value


def test_a_gpu_that_shows_nothing_to_be_believed_is_named_and_raises() -> None:
    whole = bert("z", 50, status=READY)
    blank = GpuSamples("GPU-x", (), (), refused=whole.gpus[0].times)
    halved = replace(whole, gpus=(*whole.gpus, blank))
    decided = decide_about(*ready(100), halved)
    assert (decided.value, decided.active) == (200, True)
    assert decided.reason.startswith("no number of GPU-x of bert-7b6667bd9-zzzzz can be believed")
    idle = decide_about(*ready(0), halved)
    assert (idle.value, idle.active) == (None, True)
    alone = decide_about(halved)
    assert (alone.state, alone.value, alone.active) == (State.UNKNOWN, None, True)
    assert alone.reason.startswith("no number of GPU-x of bert-7b6667bd9-zzzzz can be believed")


@pytest.mark.parametrize(("load", "each"), [(0, 70), (60, 70), (90, 90)])
def test_an_unseen_replica_counts_as_on_target_and_above_it_like_the_others(
    load: float, each: float
) -> None:
    decided = decide_about(*ready(load, count=2), *_unseen(2))
    assert (decided.state, decided.active) == (State.PARTIAL, True)
    assert decided.value == 2 * load + 2 * each
    assert decided.unseen == ("bert-7b6667bd9-jjjjj", "bert-7b6667bd9-kkkkk")
    shown = "bert-7b6667bd9-jjjjj, bert-7b6667bd9-kkkkk request GPUs that no exporter shows"
    assert decided.reason.startswith(f"{shown}: 2 of 4 replicas measured, and the")
    alone = decide_about(*ready(90), *_unseen(1))
    assert alone.reason.startswith("bert-7b6667bd9-jjjjj requests a GPU that no exporter shows: ")


def test_it_is_said_which_pods_exporters_do_not_name_and_that_the_source_may_say_why() -> None:
    """Such as dcgm-exporter without KUBERNETES_ENABLE_DRA, after a move to ResourceClaims."""
    young = unseen("j", said(ready=NOW - 300))
    decided = decide_about(*ready(60, count=2), young)
    assert decided.reason.startswith(
        "no exporter has named bert-7b6667bd9-jjjjj yet: 2 of 3 replicas measured"
    )
    lost = replace(bert("z", 50, last_seen=NOW - 300, status=READY), is_unnamed=True)
    stopped = bert("y", 50, last_seen=NOW - 300, status=READY)
    decided = decide_about(*ready(60, count=2), young, lost, stopped)
    assert decided.reason.startswith(
        "bert-7b6667bd9-yyyyy stopped reporting without having ended; "
        "GPUs of bert-7b6667bd9-zzzzz are shown without a pod; "
        "no exporter has named bert-7b6667bd9-jjjjj yet: 2 of 5 replicas measured"
    )
    alone = decide_about(young)
    assert (alone.state, alone.value, alone.active) == (State.UNKNOWN, None, True)
    assert alone.reason.startswith("no exporter has named bert-7b6667bd9-jjjjj yet (evidence: ")
    assert (decided.is_unread, decided.never_seen) == (True, False)
    assert (alone.is_unread, alone.never_seen) == (True, True)
    # Its first samples may still come, and one that ended is read as long as it was there.
    assert not decide_about(unseen("j", said(ready=NOW - 60, is_ready=True))).is_unread
    assert not decide_about(*ready(60), stopped).is_unread
    # By exporters alone, one of which nothing was ever seen may be there.
    assert decide_about(evidence=None, absence_known=False).is_unread
    assert not decide_about().is_unread
    both = decide_about(young, stopped)
    assert "did not end, and no fresh sample of them is left" in both.reason


def test_a_group_whose_named_pod_fell_silent_has_stopped_reporting() -> None:
    """Its worker is Ready for so short a time that its first samples are still to come."""
    sets = frozenset({STATEFUL_SET})
    leader = replace(bert("b", 50, last_seen=NOW - 300, status=said(owners=sets)), name="bert-0")
    worker = replace(unseen("c", said(owners=sets, ready=NOW - 10)), name="bert-0-1")
    other = replace(bert("d", 50, status=said(owners=sets)), name="bert-1")
    decided = decide_about(leader, worker, other, trigger=spec(workload="lws/bert"))
    assert decided.reason.startswith("bert-0 stopped reporting without having ended: 1 of 2")


@given(
    st.integers(1, 6),
    st.integers(0, 4),
    st.integers(0, 2),
    st.floats(0, 100),
    st.floats(10, 90),
)
def test_what_is_not_seen_raises_to_what_the_ready_ones_could_use_at_most(
    measured: int, silent: int, unseen_count: int, load: float, threshold: float
) -> None:
    """However often it is repeated with new replicas that are not seen either."""
    assume(silent or unseen_count)
    trigger = spec(threshold=f"{threshold:.3f}")
    pods = [*ready(load, count=measured), *_silent(silent), *_unseen(unseen_count)]
    decided = decide_about(*pods, trigger=trigger)
    replicas = measured + silent + unseen_count
    if decided.value is not None and decided.value > 1.1 * replicas * trigger.threshold:
        added = silent or min(unseen_count, measured)
        assert decided.value <= 100 * (measured + added) + 1e-6
