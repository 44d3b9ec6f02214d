"""Spec and decision become messages that every version of KEDA reads without losing a number."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.service import responses
from keda_gpu_scaler.spec import demand
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import OnUnknown
from tests.service.harness import OBJECT, TRIGGER, decided
from tests.support.triggers import access

VALUES = st.floats(min_value=0, max_value=demand.TOO_LARGE, exclude_max=True)


def keda_reads(whole: int, precise: float) -> float:
    """Choose the field as KEDA 2.17 and later do."""
    return precise if precise > 0 else float(whole)


def test_the_spec_names_the_metric_and_its_target_in_both_forms() -> None:
    parsed = trigger.parse(OBJECT, TRIGGER | {"threshold": "66.6"}, access())

    (metric,) = responses.metric_spec(parsed).metricSpecs

    assert metric.metricName == "gpu-utilization"
    assert metric.targetSizeFloat == 66.6
    assert metric.targetSize == 67


def test_a_demand_that_scales_is_a_second_metric_with_a_target_of_its_own() -> None:
    metadata = TRIGGER | {"demandQuery": "load", "demandThreshold": "2.5"}
    parsed = trigger.parse(OBJECT, metadata, access())

    load, wanted = responses.metric_spec(parsed).metricSpecs

    assert (load.metricName, load.targetSizeFloat) == ("gpu-utilization", 70)
    assert (wanted.metricName, wanted.targetSizeFloat) == ("gpu-demand", 2.5)
    assert wanted.targetSize == 2
    assert responses.targets(parsed) == {"gpu-utilization": 70, "gpu-demand": 2.5}


@pytest.mark.parametrize("more", [{}, {"demandQuery": "load"}])
def test_a_demand_without_a_target_is_no_metric(more: dict[str, str]) -> None:
    parsed = trigger.parse(OBJECT, TRIGGER | more, access())

    assert [metric.metricName for metric in responses.metric_spec(parsed).metricSpecs] == [
        "gpu-utilization"
    ]


@given(st.floats(min_value=0.001, max_value=demand.TOO_LARGE, exclude_max=True))
def test_any_target_of_a_demand_is_one_that_the_hpa_takes(target: float) -> None:
    metadata = TRIGGER | {"demandQuery": "load", "demandThreshold": f"{target:.17g}"}
    _, demand_spec = responses.metric_spec(trigger.parse(OBJECT, metadata, access())).metricSpecs

    assert demand_spec.targetSizeFloat == target
    assert demand_spec.targetSize >= 1


def test_a_target_below_one_is_still_a_target_for_readers_of_integers() -> None:
    parsed = trigger.parse(OBJECT, TRIGGER | {"threshold": "0.4"}, access())

    (metric,) = responses.metric_spec(parsed).metricSpecs

    assert metric.targetSize == 1
    assert metric.targetSizeFloat == 0.4


@pytest.mark.parametrize("threshold", [1, 70, 70.4, 10.5, 0.96, 9.6, 1e15])
def test_a_target_that_rounds_to_nearly_itself_is_no_warning(threshold: float) -> None:
    assert responses.rounding_warning("gpu-load", threshold) is None


@pytest.mark.parametrize(
    ("threshold", "whole"), [(0.4, 1), (1.4, 1), (2.5, 2), (1.9, 2), (0.94, 1)]
)
def test_rounding_a_target_by_more_than_five_percent_is_warned_of(
    threshold: float, whole: int
) -> None:
    warning = responses.rounding_warning("gpu-load", threshold)

    assert warning is not None
    assert f"for gpu-load they use {whole}, not {threshold}" in warning


@given(VALUES)
def test_no_reader_loses_a_value(value: float) -> None:
    (metric,) = responses.metric_value("gpu-utilization", decided(value=value)).metricValues

    assert keda_reads(metric.metricValue, metric.metricValueFloat) == value
    assert metric.metricValueFloat == value
    assert metric.metricValue - 1 < value <= metric.metricValue
    assert (metric.metricValue == 0) == (value == 0)


@given(VALUES, st.integers(min_value=1, max_value=1000))
def test_readers_of_integers_never_scale_below_readers_of_floats(value: float, target: int) -> None:
    (metric,) = responses.metric_value("gpu-utilization", decided(value=value)).metricValues

    assert metric.metricValue / target >= metric.metricValueFloat / target


@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf, -math.inf, 2.0**53, 1e16])
def test_a_value_that_keda_cannot_count_with_is_a_fault_and_not_an_answer(value: float) -> None:
    with pytest.raises(ValueError, match="not a number that KEDA can count with"):
        responses.metric_value("gpu-utilization", decided(value=value))


@given(VALUES, st.sampled_from(OnUnknown))
def test_a_demand_is_one_value_whatever_an_unknown_one_means(
    value: float, on_unknown: OnUnknown
) -> None:
    (metric,) = responses.demand_value("gpu-demand", Demand(value), on_unknown).metricValues

    assert metric.metricName == "gpu-demand"
    assert keda_reads(metric.metricValue, metric.metricValueFloat) == value


@pytest.mark.parametrize("on_unknown", [OnUnknown.HOLD, OnUnknown.ZERO])
def test_an_unknown_demand_is_held_and_never_zero(on_unknown: OnUnknown) -> None:
    unknown = Demand(None, "source default: nobody answers")

    assert not responses.demand_value("gpu-demand", unknown, on_unknown).metricValues


def test_an_unknown_demand_is_an_error_where_the_trigger_wants_one() -> None:
    unknown = Demand(None, "source default: nobody answers")
    with pytest.raises(errors.UnknownLoadError) as raised:
        responses.demand_value("gpu-demand", unknown, OnUnknown.ERROR)

    assert str(raised.value) == "source default: nobody answers: an error by onUnknown error"


def test_no_value_is_an_empty_list() -> None:
    assert not responses.metric_value("gpu-utilization", decided(value=None)).metricValues


def test_a_refused_value_is_an_error_with_the_reason() -> None:
    with pytest.raises(errors.UnknownLoadError, match="source down"):
        responses.metric_value("gpu-utilization", decided(refused=True, reason="source down"))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("active", [True, False])
def test_activity_is_passed_on(active: bool, known: bool) -> None:  # noqa: FBT001 - a table's values
    assert responses.activity(decided(active=active), has_replicas=known).result is active


def test_unknown_activity_is_an_error_with_the_reason_where_there_may_be_no_replicas() -> None:
    with pytest.raises(errors.UnknownLoadError, match="source down"):
        responses.activity(decided(active=None, reason="source down"), has_replicas=False)


def test_unknown_activity_of_replicas_is_active_unless_the_trigger_wants_an_error() -> None:
    assert responses.activity(decided(active=None), has_replicas=True).result
    refused = decided(active=None, refused=True, reason="source down")
    with pytest.raises(errors.UnknownLoadError, match="source down"):
        responses.activity(refused, has_replicas=True)
