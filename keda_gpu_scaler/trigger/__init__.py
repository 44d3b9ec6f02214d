"""From the strings of a trigger's metadata to a TriggerSpec, or to every mistake in them at once.

Pure: no clock, I/O or logging. Behind this door nobody reads metadata again.
"""

from collections.abc import Collection, Mapping

from keda_gpu_scaler.spec import (
    Aggregation,
    GpuAggregation,
    OnUnknown,
    PodSelector,
    ScaledObject,
    Signal,
    TriggerSpec,
)
from keda_gpu_scaler.trigger import rules, values
from keda_gpu_scaler.trigger.keys import KEDA_KEYS, KEYS, Key
from keda_gpu_scaler.trigger.reader import Reader

__all__ = ["KEDA_KEYS", "KEYS", "Key", "parse"]

_ADDED_UP = frozenset({Signal.MEMORY_USED, Signal.POWER})
"""What the GPUs of one pod have together; of everything else they have an average."""


def parse(
    scaled_object: ScaledObject,
    metadata: Mapping[str, str],
    source_names: Collection[str],
    *,
    knows_targets: bool = False,
) -> TriggerSpec:
    """Return what a trigger asks for.

    Args:
        scaled_object: whose trigger it is.
        metadata: all of the trigger's metadata, as KEDA forwards it.
        source_names: the sources that the process settings name.
        knows_targets: the Kubernetes API says what a ScaledObject scales: `workload` may be left
            out.

    Raises:
        errors.SpecError: the trigger is wrong; the message lists every mistake.
    """
    reader = Reader(scaled_object, metadata)
    rules.refuse_unsupported(reader)
    pods, name = rules.pods(reader, knows_targets=knows_targets)
    spec = _spec(reader, source_names, pods, name)
    reader.raise_mistakes()
    return spec


def _spec(
    reader: Reader, source_names: Collection[str], pods: PodSelector, name: str
) -> TriggerSpec:
    """Return the spec; where the reader notes a mistake it has a stand-in, and is not used."""
    signal = reader.read("signal", values.choice(Signal), Signal.UTILIZATION)
    usual = GpuAggregation.SUM if signal in _ADDED_UP else GpuAggregation.AVERAGE
    gpu_aggregation = reader.read("gpuAggregation", values.choice(GpuAggregation), usual)
    threshold = rules.threshold(reader, signal, gpu_aggregation)
    activation = rules.activation_threshold(reader, signal)
    return TriggerSpec(
        pods=pods,
        workload=name,
        signal=signal,
        profile=rules.profile(reader, signal),
        threshold=threshold,
        aggregation=reader.read("aggregation", values.choice(Aggregation), Aggregation.SUM),
        gpu_aggregation=gpu_aggregation,
        window_seconds=reader.read("window", values.window, None),
        activation_threshold=activation,
        activation_window_seconds=reader.read("activationWindow", values.window, 0.0),
        start_timeout_seconds=reader.read("startTimeout", values.timeout, 0.0),
        warmup_seconds=reader.read("warmup", values.warmup, 0.0),
        on_unknown=reader.read("onUnknown", values.choice(OnUnknown), OnUnknown.HOLD),
        max_age_seconds=reader.read("maxAge", values.window, 0.0),
        source=reader.read("source", values.source(source_names), ""),
        metric_name=reader.read("metricName", values.metric_name, f"gpu-{signal}"),
        warnings=tuple(rules.warnings(signal, gpu_aggregation, threshold, activation)),
    )
