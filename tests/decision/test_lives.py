"""Claims about the sum while replicas come and go."""

import math
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
from tests.support.snapshots import NOW, STEP, bert, pod, said

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
    "before the window": ([*STAY, _left("x", alive=NOW - 195, ended=NOW - 165)], 180),
    # An end that was never listed is taken for a minute later.
    "its end is not listed": ([*STAY, _left("x", ended=math.inf)], 200),
    # It adds only what it did while it was Ready.
    "never Ready": ([*STAY, bert("x", 100, last_seen=LEFT, ended=True, status=NEVER_READY)], 180),
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
        pytest.param({"ready": NOW}, False, id="it did not work"),
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
    for age, value in ((165, None), (209, None), (210, 135)):
        pods = [*(bert(letter, 45) for letter in "bc"), bert("d", 45, first_seen=NOW - age)]
        decided = decide_about(*pods, evidence=None)
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
