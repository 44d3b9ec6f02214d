"""Claims about the sum while replicas come and go, and about the newest samples."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import PodStatus
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, Pod
from keda_gpu_scaler.spec.workload import Owner
from testbed.triggers import spec
from tests.decision.deciding import decide_about, measured, ready
from tests.support.snapshots import NOW, STEP, bert, pod, said, unseen

READY = NOW - 105
"""An exporter's delay (45 s) and half a window (60 s) ago."""
LEFT = NOW - 90
"""It was listed alive for the last time; its end is listed a scrape later."""
OLD, NEW = [40.0] * 15, [60.0] * 2
"""Six replicas became four: what the others show follows 60 s later."""


def _left(
    suffix: str,
    *,
    alive: float = LEFT,
    ended: float = LEFT + 30,
    ready: float = NEVER_SEEN,
) -> Pod:
    status = said(ended=True, alive_at=alive, ended_at=ended, ready=ready)
    last = alive + 30
    return bert(suffix, 40, last_seen=last, history=last - NOW + 240, ended=True, status=status)


def _silent(suffix: str, load: float | list[float], *, history: float = 210) -> Pod:
    """Return a replica that left, of which exporters alone tell."""
    return bert(suffix, load, last_seen=NOW - 30, history=history, ended=True)


STAY, BY_EXPORTERS = ready(OLD + NEW, count=4), [bert(letter, OLD + NEW) for letter in "bcdf"]
NEVER_READY = said(never=True, alive_at=LEFT)
SHARED = [
    bert("b", [100.0] * 8 + [50.0] * 9, status=said()),
    bert("c", 50, status=said(ready=NOW - 120)),
]
TOTALS: dict[str, tuple[list[Pod], float]] = {
    "nobody left": (STAY, 180),
    "two left": ([*STAY, _left("x"), _left("z")], 240),
    # The others do its work from 75 s before on, and it still shows it.
    "one drained": ([*ready([20.0] * 11 + [60.0] * 6, count=1), _left("x")], 60),
    "the others have risen": ([*ready([10.0] * 10 + [90.0] * 7, count=2), _left("x")], 160),
    "the work has ended": ([*ready([60.0] * 15 + [0.0] * 2, count=1), _left("x")], 50),
    "before the window": ([*STAY, _left("x", alive=NOW - 195, ended=NOW - 165)], 180),
    # An end that was never listed is taken for a minute later.
    "its end is not listed": ([*STAY, _left("x", ended=math.inf)], 200),
    # It adds only what it did while it was Ready.
    "never Ready": ([*STAY, bert("x", 100, last_seen=LEFT, ended=True, status=NEVER_READY)], 180),
    "never Ready, and nothing is done": (
        [*ready(0.0, count=2), bert("x", 100, last_seen=LEFT, ended=True, status=NEVER_READY)],
        0,
    ),
    "Ready at its end": ([*STAY, _left("x", ready=LEFT)], 180),
    "never listed alive": (
        [*STAY, replace(_left("x"), status=said(ended=True, ended_at=LEFT + 30))],
        180,
    ),
    # What one pod carried alone is not added to what two share.
    "the others were not all Ready": ([*SHARED, _left("x", alive=NOW - 30, ended=NOW)], 140),
    # By exporters alone it may have drained in its last minute.
    "by exporters alone": ([*BY_EXPORTERS, _silent("x", 40), _silent("z", 40)], 240),
    "drained, by exporters alone": ([*BY_EXPORTERS, _silent("x", [40.0] * 11 + [90.0] * 4)], 200),
}


@pytest.mark.parametrize(("pods", "total"), TOTALS.values(), ids=TOTALS)
def test_the_share_of_those_that_left_is_in_the_sum_once(pods: list[Pod], total: float) -> None:
    assert measured(*pods).total == total


TOOK_OVER = [60.0] * 14 + [90.0] * 3
"""What each of two shows that do the work of a third one, which was seen until two steps ago."""


@pytest.mark.parametrize("status", [None, said(is_ready=True)], ids=["exporters", "listed"])
def test_the_sum_is_of_the_window_in_which_all_replicas_were_seen(
    status: PodStatus | None,
) -> None:
    """One that just went is measured by older samples, which the others' newer ones do not join."""
    others = [bert(letter, TOOK_OVER, status=status) for letter in "bc"]
    gone = bert("x", 60, last_seen=NOW - 3 * STEP, status=status)
    found = measured(*others, gone)
    assert found.sums.summed == 180
    assert found.mean == pytest.approx((71.25 + 71.25 + 60) / 3)


def test_a_group_is_of_that_window_too() -> None:
    pods = [pod(f"bert-{one}", TOOK_OVER) for one in ("0", "0-1", "1")]
    gone = pod("bert-1-1", 20.0, last_seen=NOW - 3 * STEP)
    assert measured(*pods, gone, workload="lws/bert").sums.summed == 60 + 40


def test_replicas_that_were_never_seen_together_have_their_newest_loads() -> None:
    """The exporter of one was away until the last scrape of the other."""
    came, gone = bert("b", [90.0] * 2), bert("x", 50, last_seen=NOW - 40)
    assert measured(came, gone, window="20s").sums.summed == 140
    idle = bert("b", [0.0] * 2), bert("x", 0, last_seen=NOW - 40)
    coming = unseen("z", said(never=True))
    assert measured(*idle, coming, window="20s").sums.summed == 0


def test_groups_leave_as_groups() -> None:
    owner = said(owners=frozenset({Owner("StatefulSet", "bert")}))
    stay = [pod(f"bert-0{one}", [40.0] * 13 + [60.0] * 4, status=owner) for one in ("", "-1")]
    ended = said(owners=owner.owners, ended=True, alive_at=LEFT, ended_at=LEFT + 30)
    gone = [
        pod(f"bert-1{one}", value, last_seen=LEFT, history=180, ended=True, status=ended)
        for one, value in (("", 10), ("-1", 30))
    ]
    assert measured(*stay, *gone, workload="lws/bert").total == 60
    alone = replace(gone[1], name="bert-0-2")
    assert measured(*stay, alone, workload="lws/bert").sums.summed == 50


@given(
    st.integers(1, 4),
    st.integers(0, 3),
    st.floats(0, 90),
    st.integers(2, 15),
)
def test_constant_work_is_the_sum_however_many_left_and_when(
    stay: int, left: int, work: float, steps: int
) -> None:
    """The shares change at once here, as late as an exporter's delay allows."""
    before, after = work / (stay + left), work / stay
    gone_at = NOW - steps * STEP
    values = [before] * (17 - max(0, steps - 2)) + [after] * max(0, steps - 2)
    status = said(ended=True, alive_at=gone_at - 15, ended_at=gone_at)
    history = gone_at - NOW + 240
    ended = [
        bert(letter, before, last_seen=gone_at, history=history, ended=True, status=status)
        for letter in "xzw"[:left]
    ]
    total = measured(*ready(values, count=stay), *ended, threshold="90").total
    assert total == pytest.approx(work, abs=1e-4)


@pytest.mark.parametrize(("wanted", "value"), [(None, 140), (2, 140), (3, 210), (9, 220)])
def test_what_was_done_before_is_no_reason_to_raise(wanted: int | None, value: float) -> None:
    """It puts the replicas on target that there are, or that their owner asks for."""
    fallen = ready([70.0] * 15 + [20.0] * 2, count=2)
    left = _left("x", alive=LEFT + 60, ended=NOW)
    gone = replace(left, gpus=bert("x", 80, last_seen=NOW - 30, history=210).gpus)
    assert decide_about(*fallen, gone, wanted=wanted).value == value


@pytest.mark.parametrize(
    ("status", "is_untold"),
    [
        (None, True),
        (said(ended=True, ended_at=NOW - 30), True),
        (said(ended=True, ended_at=NOW - 30, never=True), True),
        (said(ended=True, alive_at=LEFT, ended_at=LEFT + 30), False),
    ],
)
def test_a_replica_that_left_and_was_never_listed_alive_is_untold(
    status: PodStatus | None,
    is_untold: bool,
) -> None:
    """A process that has just started knows of no list before its first one."""
    gone = bert("x", 40, last_seen=LEFT, history=150, ended=True, status=status)
    assert measured(*ready(OLD + NEW, count=4), gone).sums.is_untold is is_untold


ALIVE, ENDED = LEFT - 150, LEFT + 30


@pytest.mark.parametrize(
    ("gone", "is_untold"),
    [
        pytest.param({"ready": LEFT - 200}, True, id="shown only after the last list"),
        pytest.param({"ready": ENDED + 45}, False, id="it did not work"),
        pytest.param({"ready": LEFT - 200, "ended_at": LEFT - 600}, False, id="long ago"),
        pytest.param({"ready": LEFT - 200, "alive_at": LEFT}, False, id="its work is shown"),
    ],
)
def test_a_replica_that_left_and_of_which_no_work_is_shown_is_untold(
    gone: dict[str, Any], *, is_untold: bool
) -> None:
    """A process that has just started has samples of now, and a list from before them."""
    status = said(**{"ended": True, "alive_at": ALIVE, "ended_at": ENDED, **gone})
    pod = bert("x", 40, last_seen=LEFT, history=90, ended=True, status=status)
    assert measured(*ready(OLD + NEW, count=4), pod).sums.is_untold is is_untold


def test_while_a_replica_that_left_is_untold_the_sum_can_only_raise() -> None:
    gone = bert("x", 40, last_seen=LEFT, history=150, ended=True)
    for load_, answer in ((50.0, None), (77.0, None), (80.0, 320.0)):
        decided = decide_about(*ready(load_, count=4), gone)
        assert decided.value == answer
        assert ("it is not known how long" in decided.reason) is (answer is None)


def test_a_sum_is_that_of_the_pods_that_were_there() -> None:
    """130 % of work: one pod carried 100 of it, until a second one shared it."""
    old = bert("b", [100.0] * 4 + [65.0] * 5, status=said())
    new = bert("c", [65.0] * 5, status=said(ready=READY))
    assert measured(old, new).sums.summed == 130


@pytest.mark.parametrize(("ready", "summed"), [(NOW - 90, 100), (NOW - 75, 60)])
def test_what_replicas_did_together_is_in_full_in_the_sum_once_it_is_half_a_window(
    ready: float, summed: float
) -> None:
    """The work began when the second one came; before that, what was done before counts as well."""
    old = bert("b", [0.0] * 13 + [50.0] * 4, status=said())
    new = bert("c", [50.0] * 4, status=said(ready=ready))
    assert measured(old, new).sums.summed == summed


def test_work_of_before_counts_for_a_window_also_where_a_replica_came() -> None:
    """The work ended when the second one came: of eight instants, three show what one did."""
    old = bert("b", [80.0] * 12 + [0.0] * 5, status=said())
    new = bert("c", [0.0] * 5, status=said(ready=READY))
    assert measured(old, new).sums.summed == 30


@given(
    st.lists(st.floats(0, 100), min_size=20, max_size=20),
    st.lists(st.floats(0, 100), min_size=20, max_size=20),
    st.integers(0, 60),
)
def test_a_sum_is_no_less_than_that_of_the_shared_time_and_no_more_than_the_largest(
    old: list[float], new: list[float], more: int
) -> None:
    ready = READY - more
    found = measured(bert("b", old, status=said()), bert("c", new, status=said(ready=ready)))
    ages = [STEP * back for back in reversed(range(20))]
    shared = [
        one + other
        for one, other, age in zip(old, new, ages, strict=True)
        if age < 120 and NOW - age >= ready + 45
    ]
    mean = sum(shared) / len(shared)
    assert found.sums.summed >= mean - 1e-5
    assert found.sums.summed <= max(*old, *shared) + 1e-5


def test_replicas_that_are_shown_together_for_less_than_half_a_window_lower_nothing() -> None:
    """By exporters alone a pod is measured with its first sample after `warmup`."""
    by_warmup = ((165, "2m", None), (209, "2m", None), (210, "2m", 135), (45, "0s", 135))
    for age, warmup, value in by_warmup:
        pods = [*(bert(letter, 45) for letter in "bc"), bert("d", 45, first_seen=NOW - age)]
        decided = decide_about(*pods, trigger=spec(warmup=warmup), evidence=None)
        assert (decided.state, decided.value) == (State.MEASURED, value)


def test_the_first_samples_after_a_gap_lower_nothing() -> None:
    """A load in bursts: 2 % in all of them may be half of it, or none."""
    for count, value in ((3, None), (4, 4)):
        decided = decide_about(*ready([2.0] * count, count=2))
        assert decided.value == value
        assert ("held: less than half a window" in decided.reason) is (value is None)
    assert decide_about(*ready([90.0] * 2, count=2)).value == 180


def test_while_a_replica_is_too_young_the_others_are_kept_by_what_they_did_before() -> None:
    """A hold is no recommendation: the HPA forgets for which load it started a replica."""
    young = bert("z", [20.0] * 2, status=said(ready=NOW - 30))
    for load_, value in ((72.0, 72.0), (70.0, None), (160.0, 160.0)):
        old = bert("b", [load_] * 15 + [20.0] * 2, status=said())
        decided = decide_about(old, young, trigger=spec(gpuAggregation="sum"))
        assert (decided.state, decided.value) == (State.STARTING, value)


def _with_a_gap(suffix: str, count: int) -> Pod:
    """Return a pod with its first samples, and so many of its last."""
    whole = bert(suffix, [80.0] * 13 + [5.0] * 4, status=said())
    (gpu,) = whole.gpus
    times, values = (each[:5] + each[-count:] for each in (gpu.times, gpu.values))
    return replace(whole, gpus=(replace(gpu, times=times, values=values),))


def test_a_gap_within_the_time_that_samples_reach_back_is_a_gap_too() -> None:
    """One sample after it is no mean of a load in bursts."""
    for count, value in ((1, None), (4, 15)):
        pods = [_with_a_gap(letter, count) for letter in "bcd"]
        assert decide_about(*pods).value == value


def test_a_window_of_one_instant_is_whole_however_often_exporters_are_scraped() -> None:
    """Two Prometheus that scrape an exporter by turns do so every 7 s; samples are 15 s apart."""
    often = replace(bert("b", 0), scrape_interval_seconds=7.0)
    found = measured(often, window=f"{STEP:.0f}s")
    assert (found.sums.is_brief, found.measured) == (False, [0])


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
