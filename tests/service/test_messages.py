"""Each trigger is parsed once, and every version of KEDA reads the same numbers."""

import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors, trigger
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import messages
from keda_gpu_scaler.spec.spec import TOO_LARGE
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access, Namespaces
from testbed.triggers import access
from tests.service.harness import OBJECT, TRIGGER, decided, reference

VALUES = st.floats(min_value=0, max_value=TOO_LARGE, exclude_max=True)


def triggers() -> messages.ParsedTriggers:
    return messages.ParsedTriggers(Access({"default": EVERY_NAMESPACE}))


def test_each_call_about_a_wrong_trigger_is_stated_and_each_new_trigger_once() -> None:
    stated: list[facts.Fact] = []
    known = messages.ParsedTriggers(Access({"default": EVERY_NAMESPACE}), stated.append)
    for _ in range(2):
        with pytest.raises(errors.SpecError):
            known.read(reference(treshold="70"))
    for _ in range(2):
        known.read(reference())
    *refused, changed = stated
    assert [type(fact) for fact in refused] == [facts.TriggerRefused] * 2
    assert "did you mean threshold?" in str(refused[0])
    assert changed == facts.TriggerChanged(OBJECT)


def test_a_trigger_is_found_again_in_whatever_order_its_strings_come() -> None:
    known = triggers()
    read = []
    for entries in (list(TRIGGER.items()), list(TRIGGER.items())[::-1]):
        # As another client may write them: one after the other, in this order.
        fields = (pb.ScaledObjectRef(scalerMetadata={key: text}) for key, text in entries)
        sent = b"".join(field.SerializeToString() for field in fields)
        sent += pb.ScaledObjectRef(name="bert-scaler", namespace="ml").SerializeToString()
        read.append(known.read(pb.ScaledObjectRef.FromString(sent)))
    assert read[0] is read[1]


@pytest.mark.slow
def test_what_is_made_of_triggers_is_kept_in_bounded_memory() -> None:
    """A short text becomes long: its pods are filled in, and each selector gets its namespace."""
    selector = 'a%d{z="\U0001f600",y=~"{podPattern}"}'
    known = triggers()
    tracemalloc.start()
    try:
        for number in range(0, 9_000, 15):
            query = "+".join(selector % each for each in range(number, number + 15))
            metadata = {
                "podPattern": 500 * "b",
                "threshold": "70",
                "activationThreshold": "5",
                "query": query,
                "demandQuery": f"sum({query})",
            }
            known.read(
                pb.ScaledObjectRef(name="bert-scaler", namespace="ml", scalerMetadata=metadata)
            )
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 56 * 2**20


def test_a_target_that_old_keda_rounds_is_stated_beside_the_loads() -> None:
    """Old KEDA would take a fifth of the replicas: 1 request per second each, and not 0.2."""
    stated: list[facts.Fact] = []
    known = messages.ParsedTriggers(Access({"default": EVERY_NAMESPACE}), stated.append)
    known.read(reference(threshold="1.4", demandQuery="load", demandThreshold="0.2"))
    known.read(reference(threshold="2"))
    first, second = stated
    assert isinstance(first, facts.TriggerChanged)
    assert [reason.partition(": ")[2] for reason in first.rounded] == [
        "for gpu-utilization they use 1, not 1.4",
        "for gpu-demand they use 1, not 0.2",
    ]
    assert second == facts.TriggerChanged(OBJECT)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (pb.ScaledObjectRef(), ["namespace ''", "name ''"]),
        (pb.ScaledObjectRef(name="bert"), ["namespace ''"]),
        (pb.ScaledObjectRef(namespace="ml"), ["name ''"]),
        (pb.ScaledObjectRef(name="a\nb", namespace="ml"), [r"name 'a\nb'"]),
        (pb.ScaledObjectRef(name="a" * 254, namespace="ml"), ["name 'aaa"]),
        (pb.ScaledObjectRef(name="bert", namespace='"}'), ["namespace '\"}'"]),
    ],
)
def test_a_reference_without_names_is_refused_and_each_is_named(
    broken: Any,
    named: list[str],
) -> None:
    with pytest.raises(errors.RequestError) as caught:
        triggers().read(broken)
    assert [text for text in named if text not in str(caught.value)] == []


def test_a_source_is_named_only_by_the_namespaces_it_is_for() -> None:
    gold = Namespaces(frozenset({"web"}))
    access = Access({"default": EVERY_NAMESPACE, "gold": gold})
    theirs = messages.ParsedTriggers(access)
    request = reference(source="gold")
    with pytest.raises(errors.SpecError) as refused:
        theirs.read(request)
    unknown = reference(source="cold")
    with pytest.raises(errors.SpecError) as missing:
        theirs.read(unknown)

    # A namespace that may not use a source does not learn that it exists.
    assert str(refused.value) == str(missing.value).replace("cold", "gold")
    assert "expected one of default;" in str(refused.value)
    request.namespace = "web"
    assert theirs.read(request).spec.source == "gold"


def keda_reads(whole: int, precise: float) -> float:
    """Choose the field as KEDA 2.17 and later do."""
    return precise if precise > 0 else float(whole)


@given(st.floats(min_value=0.001, max_value=TOO_LARGE, exclude_max=True))
def test_any_target_of_a_demand_is_one_that_the_hpa_takes(target: float) -> None:
    metadata = TRIGGER | {"demandQuery": "load", "demandThreshold": f"{target:.17g}"}
    targets = messages.targets(trigger.parse(OBJECT, metadata, access()))
    _, demand_spec = messages.metric_spec(*targets.items()).metricSpecs
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
    warning = messages.rounding_warning("gpu-load", threshold)
    assert (warning is None) is (whole is None)
    assert warning is None or f"for gpu-load they use {whole}, not {threshold}" in warning


@given(VALUES)
def test_no_reader_loses_a_value(value: float) -> None:
    (metric,) = messages.metric_value("gpu-utilization", decided(value=value)).metricValues
    assert keda_reads(metric.metricValue, metric.metricValueFloat) == value
    assert metric.metricValueFloat == value
    assert metric.metricValue - 1 < value <= metric.metricValue
    assert (metric.metricValue == 0) == (value == 0)


@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf, -math.inf, 2.0**53, 1e16])
def test_a_value_that_keda_cannot_count_with_is_a_fault_and_not_an_answer(value: float) -> None:
    with pytest.raises(ValueError, match="not a number that KEDA can count with"):
        messages.metric_value("gpu-utilization", decided(value=value))
