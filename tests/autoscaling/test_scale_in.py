"""When a scale-in is near by an HPA's status, and whose a pod's cost is."""

from typing import Any

import msgspec
import pytest

from keda_gpu_scaler.autoscaling.api_objects import HpaObject
from keda_gpu_scaler.autoscaling.scale_in import COST, MARK, Forecast, change, kept

AHEAD = 30.0
PAUSE = 5.0
SYNC = 15.0
WINDOW = 300.0
ACTIVE = [{"type": "ScalingActive", "status": "True"}]


def hpa(replicas: int, *percents: float | None, **more: Any) -> HpaObject:
    """Return an HPA on metrics per replica, with 70 for each; None: it has no value of one."""
    amounts = [{} if each is None else {"averageValue": f"{each:g}"} for each in percents]
    target = {"external": {"metric": {"name": "gpu"}, "target": {"averageValue": "70"}}}
    return msgspec.convert(
        {
            "spec": {"maxReplicas": 12, "metrics": [target] * len(percents)} | more,
            "status": {
                "currentReplicas": replicas,
                "desiredReplicas": replicas,
                "currentMetrics": [{"external": {"current": amount}} for amount in amounts],
                "conditions": ACTIVE,
            },
        },
        HpaObject,
    )


def first_warning(seen: Forecast, there: HpaObject, since: float, until: float) -> float | None:
    """Return when fewer replicas are first expected, if the HPA stays as it is."""
    now = since
    while now < until:
        if seen.follow(there, now, AHEAD) < there.status.desired_replicas:
            return now - since
        now += PAUSE
    return None


def seen_busy(**more: Any) -> Forecast:
    """Return what has seen four busy replicas for a whole window."""
    seen = Forecast()
    assert first_warning(seen, hpa(4, 70, **more), 0, WINDOW) is None
    return seen


BEHAVIORS = {
    "none": {},
    "a window": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}}},
}


@pytest.mark.parametrize("more", BEHAVIORS.values(), ids=BEHAVIORS)
def test_a_scale_in_is_expected_half_a_minute_before_the_window_is_over(
    more: dict[str, Any],
) -> None:
    """The HPA looked for the last time up to 15 s before the metrics were seen to have fallen."""
    warned = first_warning(seen_busy(**more), hpa(4, 20, **more), WINDOW, 3 * WINDOW)
    assert warned is not None
    earliest = WINDOW - SYNC - PAUSE
    assert earliest - AHEAD <= warned < earliest


def policy(kind: str, value: int) -> dict[str, Any]:
    return {"policies": [{"type": kind, "value": value, "periodSeconds": 60}]}


NEVER = {
    "the load stays": hpa(4, 70),
    "within the tolerance": hpa(4, 64),
    "at the minimum": hpa(4, 20, minReplicas=4),
    "a metric has no value": hpa(4, 20, None),
    "no metric": hpa(4),
    "scale-in is disabled": hpa(4, 20, behavior={"scaleDown": {"selectPolicy": "Disabled"}}),
    "at zero": hpa(0, 0),
}


@pytest.mark.parametrize("there", NEVER.values(), ids=NEVER)
def test_where_the_hpa_does_not_scale_in_nothing_is_expected(there: HpaObject) -> None:
    assert first_warning(seen_busy(), there, WINDOW, 3 * WINDOW) is None


def test_a_value_of_an_hpa_that_cannot_read_its_metrics_is_of_an_earlier_sync() -> None:
    there = msgspec.json.decode(
        msgspec.json.encode(hpa(4, 20)).replace(b'"True"', b'"False"'), type=HpaObject
    )
    assert first_warning(seen_busy(), there, WINDOW, 3 * WINDOW) is None


def test_after_its_start_it_waits_for_a_whole_window_as_an_hpa_does() -> None:
    warned = first_warning(Forecast(), hpa(4, 20), 0, 2 * WINDOW)
    assert warned is not None
    assert WINDOW - AHEAD <= warned <= WINDOW


def test_a_higher_number_within_the_window_begins_it_anew() -> None:
    seen = seen_busy()
    assert first_warning(seen, hpa(4, 20), WINDOW, WINDOW + 200) is None
    assert first_warning(seen, hpa(4, 70), WINDOW + 200, WINDOW + 210) is None
    assert first_warning(seen, hpa(4, 20), WINDOW + 210, WINDOW + 450) is None


def test_the_next_step_waits_for_the_policy_of_the_last_one() -> None:
    """One pod a minute: a step just made counts, half a minute later the next one is near."""
    more = {"behavior": {"scaleDown": policy("Pods", 1) | {"stabilizationWindowSeconds": 60}}}
    seen = Forecast()
    assert first_warning(seen, hpa(4, 20, **more), 0, 60) is not None
    warned = first_warning(seen, hpa(3, 26, **more), 60, 200)
    assert warned is not None
    assert 60 - AHEAD <= warned <= 60


def test_one_pod_is_expected_to_go_where_the_policy_allows_one() -> None:
    more = {"behavior": {"scaleDown": policy("Pods", 1) | {"stabilizationWindowSeconds": 0}}}
    assert Forecast().follow(hpa(4, 20, **more), 0, AHEAD) == 3


def test_an_own_tolerance_and_an_average_count_as_the_hpa_counts_them() -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 0, "tolerance": "500m"}}
    assert Forecast().follow(hpa(4, 40, behavior=behavior), 0, AHEAD) == 4
    there = hpa(4, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    external = {"metric": {"name": "gpu"}, "target": {"value": "70"}}
    shown = {"external": {"current": {"value": "35"}}}
    plain = msgspec.to_builtins(there)
    plain["spec"]["metrics"], plain["status"]["currentMetrics"] = [{"external": external}], [shown]
    assert Forecast().follow(msgspec.convert(plain, HpaObject), 0, AHEAD) == 2


def test_an_average_that_was_rounded_up_asks_for_no_replica_more() -> None:
    """140 over three replicas is shown as 46.667, and needs two."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    assert Forecast().follow(hpa(3, 46.667, behavior=behavior), 0, AHEAD) == 2


WRITTEN = {"b": -4, "c": -3, "d": -2, "f": -1}


@pytest.mark.parametrize(
    ("fresh", "going", "stay"),
    [
        (WRITTEN, 1, WRITTEN),
        # Another order of those that stay, or that are equal, is no reason to write.
        ({"b": -4, "c": -3, "f": -2, "d": -1}, 2, WRITTEN),
        ({"a": -1, "b": -1, "c": -1, "d": -1, "f": -1}, 1, WRITTEN),
        # The first one has got a request.
        ({"c": -4, "d": -3, "f": -2, "b": -1}, 1, {"c": -4, "d": -2, "f": -1}),
        ({"d": -4, "c": -3, "f": -2, "b": -1}, 2, {"d": -4, "c": -3, "f": -1}),
        # Two have: the busier one loses its cost to the idlest.
        ({"f": -4, "d": -3, "c": -2, "b": -1}, 2, {"f": -4, "d": -3}),
        # A pod's load is not known any more.
        ({"c": -3, "d": -2, "f": -1}, 1, {"c": -3, "d": -2, "f": -1}),
        ({}, 1, {}),
    ],
)
def test_while_a_scale_in_is_waited_for_only_what_matters_is_written_again(
    fresh: dict[str, int], going: int, stay: dict[str, int]
) -> None:
    renewed = kept(WRITTEN, fresh, going)
    assert renewed == stay
    assert list(renewed) == list(stay)


@pytest.mark.parametrize(
    ("cost", "mark", "wanted", "changes"),
    [
        (None, None, None, {}),
        (None, None, -2, {COST: "-2", MARK: "-2"}),
        ("-2", "-2", -2, {}),
        ("-2", "-2", -1, {COST: "-1", MARK: "-1"}),
        ("-2", "-2", None, {COST: None, MARK: None}),
        ("5", None, -2, {}),
        ("5", None, None, {}),
        # Someone has changed a cost of ours, or taken it away.
        ("5", "-2", -2, {MARK: None}),
        ("5", "-2", None, {MARK: None}),
        (None, "-2", -2, {COST: "-2", MARK: "-2"}),
        (None, "-2", None, {COST: None, MARK: None}),
    ],
)
def test_a_cost_of_someone_else_stays(
    cost: str | None, mark: str | None, wanted: int | None, changes: dict[str, str | None]
) -> None:
    assert change(cost, mark, wanted) == changes
