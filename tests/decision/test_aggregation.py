"""Claims about `aggregation: max` and `p95`: they raise the sum, and never ask for fewer."""

import statistics
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.load import outstanding
from keda_gpu_scaler.decision.summary import hpa_metrics
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import Aggregation, TriggerSpec
from testbed.triggers import spec
from tests.decision.deciding import LETTERS, decide_about, ready
from tests.support.snapshots import NOW, bert, said, unseen

READY = said(is_ready=True)
MAX, P95 = spec(aggregation="max"), spec(aggregation="p95")


@pytest.mark.parametrize(
    ("loads", "by_max", "by_p95"),
    [
        ([80.0], 80, 80),
        ([90.0, 30.0], 180, 174),  # p95 is 87: 30 and 95 % of the way to 90
        ([90.0, 20.0, 10.0], 270, 249),
        ([50.0, 50.0, 50.0], 150, 150),
        ([0.0, 0.0], 0, 0),
        # 95 % lie at or below 10, and 5 % of the way to 100.
        ([100.0, *[10.0] * 19], 2000, 290),
        ([100.0, 100.0, *[10.0] * 18], 2000, 2000),
    ],
)
def test_each_replica_counts_as_the_one_that_stands_out(
    loads: list[float], by_max: float, by_p95: float
) -> None:
    assert decide_about(*ready(*loads), trigger=MAX).value == by_max
    assert decide_about(*ready(*loads), trigger=P95).value == by_p95


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=60))
def test_p95_is_the_quantile_that_promql_takes(loads: list[float]) -> None:
    right = statistics.quantiles(loads, n=20, method="inclusive")[-1]
    assert outstanding(Aggregation.P95, loads) == pytest.approx(right, rel=1e-9, abs=1e-9)
    assert outstanding(Aggregation.MAX, loads) == max(loads)
    assert outstanding(Aggregation.SUM, loads) == outstanding(Aggregation.MAX, []) == 0


def test_an_unknown_load_is_taken_for_none_and_not_for_the_largest() -> None:
    silent = bert("z", 50, last_seen=NOW - 100, status=READY)
    decided = decide_about(*ready(100.0, 100.0), silent, trigger=MAX)
    assert (decided.state, decided.value) == (State.PARTIAL, 300)  # the silent one as a full one
    assert decide_about(*ready(100.0, 10.0), silent, trigger=MAX).value is None
    assert decide_about(*ready(100.0, 10.0), silent, trigger=spec()).value is None


def test_beside_replicas_that_are_not_seen_p95_takes_them_for_idle() -> None:
    """Two of three are measured, and the third, which asks for a GPU, is on its target."""
    assert decide_about(*ready(60.0, 20.0), DARK, trigger=MAX).value == 2 * 60 + 70
    # 20 and 60 and an idle one: 95 % is 56.
    assert decide_about(*ready(60.0, 20.0), DARK, trigger=P95).value == 2 * 56 + 70


def test_the_extra_pod_of_a_rolling_update_counts_for_no_replica() -> None:
    pods = ready(65.0, 20.0, 20.0)
    assert decide_about(*pods, wanted=3, trigger=MAX).value == 195
    assert decide_about(*pods, wanted=2, trigger=MAX).value == 130
    by_sum = 105  # which it never goes below
    assert decide_about(*pods, wanted=0, trigger=MAX).value == by_sum


DARK = unseen("z", READY)
YOUNG = bert("z", 50, status=said(ready=NOW - 30, is_ready=True), first_seen=NOW - 30)


@pytest.mark.parametrize(
    ("trigger", "pods", "words"),
    [
        (
            MAX,
            ready(90.0, 20.0, 10.0),
            (
                "mean utilization 40 % over 3 replicas: max 90 % for each of 3 replicas, "
                "in all 270 %, which needs 4 replicas at 70 %"
            ),
        ),
        (
            P95,
            ready(90.0, 30.0),
            "p95 87 % for each of 2 replicas, in all 174 %",
        ),
        (MAX, ready(50.0, 50.0), "over 2 replicas: sum 100 %, which needs 2"),
        (
            MAX,
            [*ready(100.0, 99.0, 98.0, 97.0, 96.0), YOUNG],
            "and those alone need more than there are: max 100 % for each",
        ),
        (
            P95,
            [*ready(60.0, 20.0), DARK],
            "p95 56 % for each of 2 replicas and 70 % for the others, in all 182 %",
        ),
    ],
)
def test_the_reason_says_what_each_replica_counts_as(
    trigger: TriggerSpec, pods: list[Pod], words: str
) -> None:
    assert words in decide_about(*pods, trigger=trigger).reason


class Drawn(NamedTuple):
    """A workload in any state, and the HPA that is told about it."""

    pods: list[Pod]
    wanted: int | None
    threshold: float
    scale: rules.Scale
    tolerances: rules.Tolerances


@st.composite
def _drawn(draw: st.DrawFn) -> Drawn:
    letters = iter(LETTERS)
    percent = st.floats(0, 100)
    pods = [bert(next(letters), load, status=READY) for load in draw(st.lists(percent, max_size=8))]
    pods.extend(
        bert(next(letters), draw(percent), last_seen=NOW - 100, status=READY)
        for _ in range(draw(st.integers(0, 2)))
    )
    pods.extend(unseen(next(letters), READY) for _ in range(draw(st.integers(0, 2))))
    for _ in range(draw(st.integers(0, 2))):
        created = NOW - draw(st.sampled_from([60.0, 1900.0]))
        pods.append(unseen(next(letters), said(never=True, created=created)))
    for _ in range(draw(st.integers(0, 1))):
        young = NOW - draw(st.floats(0, 120))
        status = said(ready=young, is_ready=True)
        pods.append(bert(next(letters), draw(percent), first_seen=young, status=status))
    for _ in range(draw(st.integers(0, 1))):
        left = NOW - draw(st.floats(10, 100))
        status = said(ended=True, ended_at=left, alive_at=left)
        pods.append(bert(next(letters), draw(percent), last_seen=left, ended=True, status=status))
    there = draw(st.integers(0, 12))
    return Drawn(
        pods,
        draw(st.none() | st.just(there)),
        draw(st.floats(10, 90)),
        rules.Scale(spec=there, status=draw(st.integers(0, 12)), ready=there),
        rules.Tolerances(up=draw(st.floats(0, 0.3)), down=draw(st.floats(0, 0.3))),
    )


def _asked(drawn: Drawn, trigger: TriggerSpec, decided: Decision) -> int:
    """Return the replicas after one sync; those that there are while it holds."""
    told = list(hpa_metrics(trigger, decided, None).values())
    step = rules.recommend(told, drawn.scale, drawn.tolerances)
    return drawn.scale.spec if step is None else step.replicas


@given(_drawn())
def test_whatever_is_known_the_hpa_never_runs_fewer_by_p95_and_max_than_by_the_sum(
    drawn: Drawn,
) -> None:
    triggers = [
        spec(aggregation=aggregation, threshold=f"{drawn.threshold:.3f}")
        for aggregation in ("sum", "p95", "max")
    ]
    decided = [decide_about(*drawn.pods, wanted=drawn.wanted, trigger=one) for one in triggers]
    assert len({(one.state, one.active, one.value is None) for one in decided}) == 1
    asked = [_asked(drawn, *each) for each in zip(triggers, decided, strict=True)]
    assert asked == sorted(asked)


@given(_drawn())
def test_an_idle_gpu_is_0_and_an_unknown_load_is_none_by_all_of_them(drawn: Drawn) -> None:
    values = {
        decide_about(*drawn.pods, wanted=drawn.wanted, trigger=one).value for one in (MAX, P95)
    }
    by_sum = decide_about(*drawn.pods, wanted=drawn.wanted, trigger=spec()).value
    assume(not by_sum)
    assert values == {by_sum}
