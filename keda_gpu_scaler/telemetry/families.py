"""Families of samples, as the format of /metrics has them."""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily

from keda_gpu_scaler.telemetry.metrics import Metric


def gauge(
    metric: Metric, samples: Iterable[tuple[tuple[str, ...], float | None]]
) -> GaugeMetricFamily:
    """Return a gauge with every sample whose value is known."""
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, value)
    return family
