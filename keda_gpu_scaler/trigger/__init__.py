"""From the strings of a trigger's metadata to a TriggerSpec, or to every mistake in them at once.

Pure: no clock, I/O or logging. No other package reads metadata.
"""

from collections.abc import Mapping

from keda_gpu_scaler.spec.spec import (
    Aggregation,
    GpuAggregation,
    OnUnknown,
    ScaledObject,
    Signal,
    TriggerSpec,
)
from keda_gpu_scaler.trigger import rules, values
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.trigger.keys import KEDA_KEYS, KEYS, Key
from keda_gpu_scaler.trigger.reader import Reader

__all__ = ["KEDA_KEYS", "KEYS", "Key", "parse"]

_ADDED_UP = frozenset({Signal.MEMORY_USED, Signal.POWER})
"""The signals that are summed over the GPUs of one pod; all others are averaged."""


def parse(
    scaled_object: ScaledObject,
    metadata: Mapping[str, str],
    access: Access,
) -> TriggerSpec:
    """Return what a trigger asks for.

    Args:
        scaled_object: the ScaledObject of the trigger.
        metadata: all of the trigger's metadata, as KEDA forwards it.
        access: what ScaledObjects are allowed.

    Raises:
        errors.SpecError: the trigger is wrong; the message lists every mistake.
    """
    reader = Reader(scaled_object, metadata)
    # A wrong value is replaced by a stand-in, so that all mistakes are reported together.
    measured = rules.measured(reader, access)
    signal, source = rules.signal(reader), rules.source(reader, access)
    query = rules.query(reader, access, measured, source)
    profile = rules.profile(reader, signal)
    usual = GpuAggregation.SUM if signal in _ADDED_UP else GpuAggregation.AVERAGE
    gpu_aggregation = reader.read("gpuAggregation", values.choice(GpuAggregation), usual)
    threshold = rules.threshold(reader, signal, gpu_aggregation)
    activation = rules.activation_threshold(reader, signal)
    aggregation = reader.read("aggregation", values.choice(Aggregation), Aggregation.SUM)
    demand = rules.demand(reader, access, source, aggregation, measured)
    spec = TriggerSpec(
        pods=measured.pods,
        workload=measured.name,
        signal=signal,
        profile=profile if query is None else query.name,
        threshold=threshold,
        aggregation=aggregation,
        gpu_aggregation=gpu_aggregation,
        window_seconds=reader.read("window", values.window, None),
        activation_threshold=activation,
        activation_window_seconds=reader.read("activationWindow", values.window, 0.0),
        start_timeout_seconds=reader.read("startTimeout", values.timeout, 0.0),
        warmup_seconds=reader.read("warmup", values.warmup, 0.0),
        on_unknown=reader.read("onUnknown", values.choice(OnUnknown), OnUnknown.HOLD),
        max_age_seconds=reader.read("maxAge", values.window, 0.0),
        source=source,
        query=query,
        only_shown=measured.name == rules.EVERY_POD,
        metric_name=rules.metric_name(reader, f"gpu-{signal}"),
        neighbour=rules.neighbour(reader, measured.pods),
        demand=demand,
        warnings=tuple(rules.warnings(signal, gpu_aggregation, threshold, activation, demand)),
        given=reader.given,
    )
    reader.raise_mistakes()
    return spec
