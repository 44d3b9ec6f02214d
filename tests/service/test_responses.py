"""Spec and decision become messages that every version of KEDA reads without losing a number."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import trigger
from keda_gpu_scaler.service import responses
from keda_gpu_scaler.spec.spec import TOO_LARGE
from testbed.triggers import access
from tests.service.harness import OBJECT, TRIGGER, decided

VALUES = st.floats(min_value=0, max_value=TOO_LARGE, exclude_max=True)


def keda_reads(whole: int, precise: float) -> float:
    """Choose the field as KEDA 2.17 and later do."""
    return precise if precise > 0 else float(whole)


@given(st.floats(min_value=0.001, max_value=TOO_LARGE, exclude_max=True))
def test_any_target_of_a_demand_is_one_that_the_hpa_takes(target: float) -> None:
    metadata = TRIGGER | {"demandQuery": "load", "demandThreshold": f"{target:.17g}"}
    targets = responses.targets(trigger.parse(OBJECT, metadata, access()))
    _, demand_spec = responses.metric_spec(*targets.items()).metricSpecs
    assert demand_spec.targetSizeFloat == target
    assert demand_spec.targetSize >= 1


@pytest.mark.parametrize(
    ("threshold", "whole"),
    [
        (70, None),
        (70.4, None),
        (0.96, None),
        (9.6, None),
        (1e15, None),
        (0.4, 1),
        (1.4, 1),
        (1.9, 2),
    ],
)
def test_rounding_by_more_than_five_percent_is_warned_of(
    threshold: float, whole: int | None
) -> None:
    warning = responses.rounding_warning("gpu-load", threshold)
    assert (warning is None) is (whole is None)
    assert warning is None or f"for gpu-load they use {whole}, not {threshold}" in warning


@given(VALUES)
def test_no_reader_loses_a_value(value: float) -> None:
    (metric,) = responses.metric_value("gpu-utilization", decided(value=value)).metricValues
    assert keda_reads(metric.metricValue, metric.metricValueFloat) == value
    assert metric.metricValueFloat == value
    assert metric.metricValue - 1 < value <= metric.metricValue
    assert (metric.metricValue == 0) == (value == 0)


@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf, -math.inf, 2.0**53, 1e16])
def test_a_value_that_keda_cannot_count_with_is_a_fault_and_not_an_answer(value: float) -> None:
    with pytest.raises(ValueError, match="not a number that KEDA can count with"):
        responses.metric_value("gpu-utilization", decided(value=value))
