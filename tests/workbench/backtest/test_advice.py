"""What a backtest recommends, and where it does not."""

import pytest

from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.workbench.backtest.advice import Case, advise, alternatives, references, replay
from keda_gpu_scaler.workbench.backtest.replay import Outcome
from keda_gpu_scaler.workbench.backtest.work import Work
from testbed.triggers import demanding, spec

CASE = Case(spec=spec(), hpa=Hpa(maximum=20)).above_zero()
BY_DEMAND = Case(spec=demanding("sum(requests)", threshold="", demandThreshold="10"))
HOUR = [50.0] * 240


def outcome(hours: float, overloaded_seconds: float) -> Outcome:
    return Outcome(hours, (overloaded_seconds,), 0, 0, 0.0, ())


@pytest.mark.parametrize(
    ("work", "outcomes", "sentence", "threshold"),
    [
        pytest.param(
            Work(0, HOUR),
            [(4, 0), (5, 0), (4.5, 0), (3.8, 72), (9, 0), (1, 0)],
            "Keep threshold 70: it is the cheapest with at most 1 % of the time overloaded.",
            None,
            id="as it is",
        ),
        pytest.param(
            Work(0, HOUR, gpus=2),
            [(4, 72), (5, 0), (4.5, 30), (3.8, 90)],
            "threshold 60 is the cheapest with at most 1 % of the time overloaded: 1 GPU-hours "
            "more than now, with 0.833 % overloaded instead of 2 %.",
            60,
            id="another one",
        ),
        pytest.param(
            Work(0, HOUR, full=[True] * 24),
            [(4, 0), (5, 0), (4.5, 30), (3.8, 36)],
            "threshold 80 is the cheapest with at most 1 % of the time overloaded: 0.2 GPU-hours "
            "less than now, with 1 % overloaded instead of 0 % (both are lower bounds).",
            80,
            id="another one, of work that was at least so much",
        ),
        pytest.param(
            Work(0, HOUR),
            [(4, 720), (5, 360), (4.5, 540), (3.8, 900)],
            "No recommendation: no threshold keeps the overload within 1 % of the time; the least "
            "is 10 %, at 50. Add a demand, which rises before the GPUs are full; or raise "
            "minReplicaCount; or let the exporter collect every 10 s.",
            None,
            id="none is enough",
        ),
        pytest.param(
            Work(0, [2050.0] * 240),
            [(4, 720)] * 4,
            "No recommendation: the work needs up to 21 replicas, and maxReplicaCount is 20.",
            None,
            id="too few are allowed",
        ),
        pytest.param(
            Work(0, [50.0] * 60 + [None] * 180),
            [(4, 0)] * 4,
            "No recommendation: the work is known for only 25 % of the time. Choose a time with "
            "samples.",
            None,
            id="hardly known",
        ),
        pytest.param(
            Work(0, HOUR, full=[True] * 60),
            [(4, 0)] * 4,
            "No recommendation: all GPUs were full for 25 % of the time, so they do not show how "
            "much work there was. Scale by a demand without threshold: demandPreset, or "
            "demandQuery with demandThreshold.",
            None,
            id="full",
        ),
    ],
)
def test_the_cheapest_within_the_overload_is_recommended(
    work: Work, outcomes: list[tuple[float, float]], sentence: str, threshold: float | None
) -> None:
    tried = list(alternatives(CASE, ()))
    made = [outcome(*figures) for figures in outcomes]
    advice = advise(CASE, work, list(zip(tried, made, strict=False)), 0.01)
    assert advice == (sentence, threshold)


def test_alternatives_begin_with_what_there_is() -> None:
    assert [one.name for one in alternatives(CASE, ())] == [
        "threshold 70, as it is",
        "threshold 50",
        "threshold 60",
        "threshold 80",
        "sum(), threshold 70",
        "avg() with Value, threshold 70",
        "avg(), threshold 70",
    ]
    assert [one.name for one in alternatives(BY_DEMAND, (5.0, 10.0))] == [
        "demandThreshold 10, as it is",
        "demandThreshold 5",
    ]


def test_each_alternative_is_replayed_with_its_own_threshold() -> None:
    work = Work(0, [300.0] * 240, replicas=[2])
    ours = [one for one in alternatives(CASE, (50.0, 80.0)) if one.recipe is None]
    assert [replay(CASE, work, one).sizes[-1] for one in ours] == [4, 6, 4]
    demands = Work(0, [300.0] * 240, demands=[30.0] * 240, replicas=[2])
    tried = alternatives(BY_DEMAND, (6.0,))
    assert [replay(BY_DEMAND, demands, one).sizes[-1] for one in tried] == [3, 5]


def test_a_workload_that_begins_idle_keeps_its_replicas_for_the_cooldown() -> None:
    idle = Work(0, [0.0] * 40, demands=[0.0] * 40, replicas=[1])
    sizes = replay(BY_DEMAND, idle, next(alternatives(BY_DEMAND, ()))).sizes
    assert [sizes[step] for step in (10, 19, 39)] == [1, 1, 0]


def test_references_have_the_smallest_size_that_is_enough() -> None:
    work = Work(0, [50.0] * 198 + [350.0] * 2, replicas=[1] * 200, full=[False] * 200)
    names = [name for name, _ in references(CASE, work, 0.01)]
    assert names == ["as it was (overloaded: at least)", "1 replica, always", "clairvoyant"]
    assert next(references(CASE, Work(0, work.loads), 1.0))[0] == "1 replica, always"
    names = [name for name, _ in references(CASE, Work(0, work.loads), 0.0)]
    assert names == ["4 replicas, always", "clairvoyant"]
    work = Work(0, [50.0] * 4, replicas=[1, None, None, None])
    assert next(references(CASE, work, 0.0))[0] == "as it was in 25 % of the time"
