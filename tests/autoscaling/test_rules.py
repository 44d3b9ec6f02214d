"""The model of KEDA and the HPA, against the worked cases of their arithmetic."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.autoscaling.api_objects import Behavior

AVERAGE_VALUE = rules.MetricType.AVERAGE_VALUE
VALUE = rules.MetricType.VALUE


def metric(
    value: float | None, target: float = 70, kind: rules.MetricType = AVERAGE_VALUE
) -> rules.Metric:
    return rules.Metric(value=value, target=target, metric_type=kind)


def proposed(value: float, target: float, replicas: int) -> int:
    step = rules.recommend([metric(value, target)], rules.Scale.steady(replicas))
    assert step is not None
    return step.replicas


def synced(hpa: rules.Hpa, now: float, replicas: int, *metrics: rules.Metric) -> int:
    return hpa.sync(now, rules.Scale.steady(replicas), metrics)


@pytest.mark.parametrize(
    ("aggregation", "kind", "expected"),
    [
        pytest.param("average", AVERAGE_VALUE, (2, 2, 2), id="common recipe sticks at 2"),
        pytest.param("sum", AVERAGE_VALUE, (2, 3, 7), id="our default is right"),
        pytest.param("average", VALUE, (2, 3, 7), id="average with Value is right"),
        pytest.param("sum", VALUE, (2, 6, 33), id="sum with Value runs away"),
    ],
)
def test_every_pod_at_90_over_70_gives_the_documented_replicas(
    aggregation: str, kind: rules.MetricType, expected: tuple[int, int, int]
) -> None:
    found = []
    for replicas in (1, 2, 5):
        value = 90 * replicas if aggregation == "sum" else 90
        step = rules.recommend([metric(value, kind=kind)], rules.Scale.steady(replicas))
        found.append(step.replicas if step else None)
    assert tuple(found) == expected


@pytest.mark.parametrize(
    ("value", "target", "replicas", "expected"),
    [
        pytest.param(23, 20, 1, 2, id="23 over 20 is beyond tolerance"),
        pytest.param(22, 20, 1, 1, id="22 over 20 is the inclusive upper end"),
        pytest.param(22.001, 20, 1, 2, id="a thousandth above the upper end"),
        pytest.param(5 * 77, 70, 5, 5, id="77 each stays at 5"),
        pytest.param(5 * 78, 70, 5, 6, id="78 each asks for 6"),
        pytest.param(5 * 63, 70, 5, 5, id="63 each is the inclusive lower end"),
        pytest.param(9 * 62, 70, 9, 8, id="62 each asks for fewer"),
        pytest.param(0, 70, 5, 0, id="idle asks for none"),
        pytest.param(91 * 1.09, 91, 1, 1, id="a full card over 91 is on target"),
    ],
)
def test_average_value_follows_the_tolerance(
    value: float, target: float, replicas: int, expected: int
) -> None:
    assert proposed(value, target, replicas) == expected


@pytest.mark.parametrize(
    ("value", "kind", "tolerances", "expected"),
    [
        pytest.param(120, AVERAGE_VALUE, rules.Tolerances(up=0.2), 10, id="more is tolerated"),
        pytest.param(121, AVERAGE_VALUE, rules.Tolerances(up=0.2), 13, id="up to its end"),
        pytest.param(101, AVERAGE_VALUE, rules.Tolerances(up=0), 11, id="nothing above"),
        pytest.param(100, AVERAGE_VALUE, rules.Tolerances(up=0, down=0), 10, id="only the target"),
        pytest.param(75, AVERAGE_VALUE, rules.Tolerances(down=0.25), 10, id="less is tolerated"),
        pytest.param(74, AVERAGE_VALUE, rules.Tolerances(down=0.25), 8, id="down to its end"),
        pytest.param(89, AVERAGE_VALUE, rules.Tolerances(up=0.5), 9, id="up says nothing of down"),
        pytest.param(111, AVERAGE_VALUE, rules.Tolerances(down=0.5), 12, id="down nothing of up"),
        pytest.param(12, VALUE, rules.Tolerances(up=0.2), 10, id="by Value as well"),
        pytest.param(12.001, VALUE, rules.Tolerances(up=0.2), 13, id="by Value to its end"),
    ],
)
def test_each_direction_has_its_own_tolerance(
    value: float, kind: rules.MetricType, tolerances: rules.Tolerances, expected: int
) -> None:
    given = [metric(value, 10, kind)]
    step = rules.recommend(given, rules.Scale.steady(10), tolerances)
    assert step is not None
    assert step.replicas == expected
    hpa = rules.Hpa(stabilization_seconds=0, tolerances=tolerances)
    assert synced(hpa, 0, 10, metric(None)) == 10
    assert synced(hpa, 15, 10, *given) == expected


def test_average_value_without_any_created_pod_divides_by_the_target() -> None:
    scale = rules.Scale(spec=1, status=0, ready=0)
    assert rules.recommend([metric(140)], scale) == (
        2,
        "140 / 70 per replica = 2 replicas",
    )


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [
        pytest.param(77, rules.Scale(spec=5, status=5, ready=1), 5, id="tolerated keeps spec"),
        pytest.param(90, rules.Scale(spec=5, status=5, ready=3), 4, id="only Ready pods count"),
        pytest.param(90, rules.Scale(spec=5, status=0, ready=0), None, id="no pods is an error"),
    ],
)
def test_value_multiplies_the_ready_pods(
    value: float, scale: rules.Scale, expected: int | None
) -> None:
    step = rules.recommend([metric(value, kind=VALUE)], scale)
    assert (step and step.replicas) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param((140, 350), 5, id="the largest proposal wins"),
        pytest.param((350, None), 5, id="a scale-out survives a failed metric"),
        pytest.param((70, None), None, id="a scale-in does not"),
        pytest.param((None, None), None, id="nothing known holds"),
        pytest.param((350,), 5, id="one metric decides alone"),
        pytest.param((), None, id="no metric at all holds"),
    ],
)
def test_several_metrics(values: tuple[float | None, ...], expected: int | None) -> None:
    metrics = [metric(value) for value in values]
    step = rules.recommend(metrics, rules.Scale.steady(3))
    assert (step and step.replicas) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0004, 0),
        (0.0006, 1),
        (22.222, 22222),
        (float("nan"), 0),
        (float("inf"), 0),
        (-1.0, 0),
    ],
)
def test_numbers_travel_as_thousandths(value: float, expected: int) -> None:
    assert rules.milli(value) == expected


def test_a_target_that_rounds_to_zero_decides_nothing() -> None:
    assert rules.recommend([metric(1, target=0.0001)], rules.Scale.steady(3)) is None


@pytest.mark.parametrize(
    ("replicas", "value", "expected"),
    [
        pytest.param(5, None, 5, id="held: a metric has no value"),
        pytest.param(0, 700, 0, id="the HPA rests at 0 replicas: waking is KEDA's part"),
        pytest.param(30, None, 20, id="30 is outside 3 to 20"),
        pytest.param(1, None, 3, id="1 is outside 3 to 20"),
    ],
)
def test_a_sync_without_a_metric_only_keeps_the_bounds(
    replicas: int, value: float | None, expected: int
) -> None:
    assert synced(rules.Hpa(minimum=3, maximum=20), 0, replicas, metric(value)) == expected


@pytest.mark.parametrize(("replicas", "expected"), [(1, 4), (2, 4), (5, 10), (15, 20)])
def test_one_sync_scales_out_to_4_or_twice_as_many_and_never_above_the_maximum(
    replicas: int, expected: int
) -> None:
    assert synced(rules.Hpa(maximum=20), 0, replicas, metric(7000)) == expected


def test_an_idle_workload_falls_to_one_and_not_to_zero() -> None:
    hpa = rules.Hpa(stabilization_seconds=0)
    synced(hpa, 0, 4, metric(0))
    assert synced(hpa, 15, 4, metric(0)) == 1


def test_scale_in_waits_until_the_highest_recommendation_has_left_the_window() -> None:
    hpa = rules.Hpa()
    assert synced(hpa, 0, 7, metric(490)) == 7
    assert synced(hpa, 300, 7, metric(70)) == 7
    assert synced(hpa, 300.1, 7, metric(70)) == 1


def test_the_size_at_the_first_sync_is_remembered_as_a_recommendation() -> None:
    hpa = rules.Hpa()
    assert synced(hpa, 0, 9, metric(70)) == 9


def test_a_sync_that_fails_leaves_no_recommendation() -> None:
    hpa = rules.Hpa()
    synced(hpa, 0, 7, metric(490))
    for now in range(15, 400, 15):
        synced(hpa, now, 7, metric(None))
    assert synced(hpa, 400, 7, metric(70)) == 1


def direction(*policies: tuple[str, int, int], **fields: int | str) -> dict[str, Any]:
    written = [{"type": kind, "value": n, "periodSeconds": period} for kind, n, period in policies]
    return {"policies": written or None, **fields}


@pytest.mark.parametrize(
    ("up", "down", "start", "values", "expected"),
    [
        pytest.param({}, {}, 1, [1000] * 3, [5, 10, 20], id="as usual: 4 more, or twice"),
        pytest.param(direction(("Pods", 1, 60)), {}, 3, [1000] * 5, [4, 4, 4, 4, 5], id="a pod"),
        pytest.param(direction(("Percent", 50, 15)), {}, 3, [1000] * 2, [5, 8], id="rounded up"),
        pytest.param(
            direction(("Pods", 1, 15), ("Percent", 100, 15), selectPolicy="Min"),
            {},
            4,
            [1000] * 2,
            [5, 6],
            id="the least of both",
        ),
        pytest.param(direction(selectPolicy="Disabled"), {}, 4, [1000], [4], id="never up"),
        pytest.param(
            direction(stabilizationWindowSeconds=30),
            {},
            2,
            [60, 20, 60, 60],
            [2, 2, 2, 6],
            id="the lowest of a window",
        ),
        pytest.param({}, direction(stabilizationWindowSeconds=0), 9, [10], [1], id="down at once"),
        pytest.param(
            {},
            direction(("Pods", 2, 60), stabilizationWindowSeconds=0),
            9,
            [10] * 6,
            [7, 7, 7, 7, 5, 5],
            id="two pods a minute",
        ),
        pytest.param(
            {},
            direction(("Percent", 30, 15), stabilizationWindowSeconds=0),
            10,
            [10] * 2,
            [7, 4],
            id="rounded down",
        ),
        pytest.param(
            {},
            direction(
                ("Percent", 10, 15),
                ("Pods", 4, 15),
                selectPolicy="Min",
                stabilizationWindowSeconds=0,
            ),
            20,
            [10],
            [18],
            id="the slower of both",
        ),
        pytest.param({}, direction(selectPolicy="Disabled"), 9, [10] * 30, [9] * 30, id="not down"),
    ],
)
def test_behavior_limits_how_fast_replicas_change(
    up: dict[str, Any], down: dict[str, Any], start: int, values: list[float], expected: list[int]
) -> None:
    written = {"scaleUp": up, "scaleDown": down}
    hpa = rules.Hpa(maximum=100, behavior=msgspec.convert(written, Behavior))
    replicas, sizes = start, []
    for count, value in enumerate(values):
        replicas = synced(hpa, 15 * count, replicas, metric(value, target=10))
        sizes.append(replicas)
    assert sizes == expected


def test_policies_count_what_the_limits_took_away() -> None:
    written = {"scaleUp": direction(("Pods", 3, 60))}
    hpa = rules.Hpa(maximum=4, behavior=msgspec.convert(written, Behavior))
    assert synced(hpa, 0, 10, metric(None)) == 4
    hpa.maximum = 20
    assert synced(hpa, 15, 4, metric(1000, target=10)) == 10 + 3


@pytest.mark.parametrize(
    ("removed_at", "now", "expected"),
    [
        pytest.param((0, 10, 20), 50, 2 + 3 + 1, id="none is older than a period"),
        pytest.param((0, 10, 21), 50, 2 + 2 + 1, id="the third takes the place of the first"),
        pytest.param((0, 21, 42), 50, 2 + 1 + 1, id="each takes the place of the one before"),
        pytest.param((0, 10, 31), 65, 2 + 1 + 1, id="the third takes the place of the second"),
    ],
)
def test_a_removal_replaces_one_that_only_the_policies_up_still_count(
    removed_at: tuple[float, ...], now: float, expected: int
) -> None:
    written = {
        "scaleUp": direction(("Pods", 1, 60)),
        "scaleDown": direction(("Pods", 3, 20), stabilizationWindowSeconds=0),
    }
    hpa = rules.Hpa(behavior=msgspec.convert(written, Behavior))
    for at, replicas in zip(removed_at, (5, 4, 3), strict=True):
        fewer = metric(10 * (replicas - 1), target=10)
        assert synced(hpa, at, replicas, fewer) == replicas - 1
    assert synced(hpa, now, 2, metric(1000, target=10)) == expected


def test_a_window_for_scaling_up_does_not_repeat_a_size_from_before() -> None:
    """Without a behavior, the HPA jumps to the highest recommendation of the last minutes."""
    for behavior, expected in ((None, 8), (Behavior(), 5)):
        hpa = rules.Hpa(behavior=behavior)
        assert synced(hpa, 0, 8, metric(80, target=10)) == 8
        assert synced(hpa, 60, 4, metric(50, target=10)) == expected


BY_THE_HPA: dict[str, Any] = {"minimum": 2, "goes_to_zero": False}
TO_IDLE: dict[str, Any] = {"minimum": 3}
Polls = list[tuple[float, int, list[bool | None], int]]
"""When, at how many replicas, what the triggers said, and how many KEDA sets."""


@pytest.mark.parametrize(
    ("keda", "polls"),
    [
        pytest.param(BY_THE_HPA, [(0, 2, [False], 2)], id="left to the HPA"),
        pytest.param(BY_THE_HPA, [(0, 1, [False], 2)], id="below the minimum"),
        pytest.param(BY_THE_HPA, [(0, 0, [True], 2)], id="to the minimum"),
        pytest.param(TO_IDLE, [(0, 3, [False], 0)], id="idle: to zero"),
        pytest.param(TO_IDLE, [(0, 0, [False], 0)], id="idle: it stays"),
        pytest.param(TO_IDLE, [(0, 1, [True], 3)], id="idle: active, to the minimum"),
        pytest.param({}, [(0, 0, [False, True], 1)], id="one trigger wakes"),
        pytest.param({}, [(0, 0, [None, True], 1)], id="beside a failed one"),
        pytest.param({}, [(0, 2, [False], 0)], id="never active: at once"),
        pytest.param({}, [(9, 4, [False, None], 4)], id="an error never scales in"),
        pytest.param(
            {},
            [
                (0, 4, [True], 4),
                (30.9, 4, [True], 4),
                (330, 4, [False], 4),
                (330.1, 4, [False], 0),
            ],
            id="the cooldown begins with the second of the last active poll",
        ),
        pytest.param(
            {},
            [
                (1000, 0, [True], 1),
                (1030, 1, [False], 1),
            ],
            id="to wake is to be active",
        ),
        pytest.param(
            {"last_active": 0},
            [(300, 4, [True, None], 4), (301, 4, [False], 0)],
            id="an error beside an active trigger does not renew the cooldown",
        ),
    ],
)
def test_keda_wakes_and_goes_to_zero(keda: dict[str, Any], polls: Polls) -> None:
    simulated = rules.Keda(**keda)
    for now, replicas, triggers, expected in polls:
        assert simulated.poll(now, replicas, triggers) == expected


loads = st.floats(min_value=0, max_value=1e6)
targets = st.floats(min_value=0.5, max_value=1000)
sizes = st.integers(min_value=1, max_value=200)


@given(load=loads, target=targets, replicas=sizes)
def test_the_default_arithmetic_is_on_target_or_the_exact_quotient(
    load: float, target: float, replicas: int
) -> None:
    found = proposed(load, target, replicas)
    value, goal = rules.milli(load), rules.milli(target)
    assert found in {replicas, -(-value // goal)}


@given(
    replicas=sizes,
    maximum=st.integers(min_value=1, max_value=100),
    minimum=st.integers(min_value=0, max_value=100),
    values=st.lists(st.none() | loads, max_size=30),
)
def test_a_sync_stays_within_the_bounds_and_the_limit(
    replicas: int, maximum: int, minimum: int, values: list[float | None]
) -> None:
    minimum = min(minimum, maximum)
    hpa = rules.Hpa(minimum=minimum, maximum=maximum)
    for count, value in enumerate(values):
        before = replicas
        replicas = synced(hpa, 15 * count, replicas, metric(value))
        assert max(1, minimum) <= replicas <= maximum
        assert replicas <= max(rules.scale_up_limit(before), minimum)


@given(polls=st.lists(st.lists(st.none() | st.booleans(), min_size=1, max_size=3), max_size=40))
def test_keda_only_falls_on_a_poll_without_errors_after_a_quiet_cooldown(
    polls: list[list[bool | None]],
) -> None:
    keda = rules.Keda()
    replicas, last_active = 0, -math.inf
    for count, triggers in enumerate(polls):
        now = 30.0 * count
        after = keda.poll(now, replicas, triggers)
        if after < replicas:
            assert set(triggers) == {False}
            assert now - last_active > keda.cooldown_seconds
        if True in triggers and (None not in triggers or replicas == 0):
            last_active = now
        replicas = after
