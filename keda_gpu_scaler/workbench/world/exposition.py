"""The page of a simulated dcgm-exporter.

Pure. The metrics are those of dcgm-exporter's `dcp-metrics-included.csv`, the labels those of its
releases since 3.3.5: a GPU without a pod has no pod labels.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import exposition
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler.workbench.world.cluster import MEMORY_MIB, MODEL, Cluster, SimulatedGpu

CONTENT_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4
ROUTER_METRIC = "simulator_router_offered_load_percent"


class PageMetric(NamedTuple):
    """One metric of an exporter."""

    name: str
    help: str
    value: Callable[[SimulatedGpu], float]


_FIELDS = (
    PageMetric("DCGM_FI_DEV_GPU_TEMP", "Temperature of the card in °C.", lambda gpu: gpu.celsius),
    PageMetric("DCGM_FI_DEV_POWER_USAGE", "Power the card draws in W.", lambda gpu: gpu.watts),
    PageMetric(
        "DCGM_FI_DEV_FB_FREE",
        "Memory that is not in use in MiB.",
        lambda gpu: MEMORY_MIB - gpu.memory_used_mib,
    ),
    PageMetric("DCGM_FI_DEV_FB_USED", "Memory in use in MiB.", lambda gpu: gpu.memory_used_mib),
    PageMetric(
        "DCGM_FI_DEV_GPU_UTIL", "Share of time with a kernel in %.", lambda gpu: round(gpu.percent)
    ),
    PageMetric("DCGM_FI_DEV_ENC_UTIL", "Load of the video encoder in %.", lambda _: 0),
    PageMetric("DCGM_FI_DEV_DEC_UTIL", "Load of the video decoder in %.", lambda _: 0),
    PageMetric(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "Share of time the engine was active, from 0 to 1.",
        lambda gpu: gpu.percent / 100,
    ),
    PageMetric(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Share of cycles the tensor cores were active, from 0 to 1.",
        lambda gpu: gpu.percent / 100 * 0.6,
    ),
    PageMetric(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "Share of cycles the memory was active, from 0 to 1.",
        lambda gpu: gpu.percent / 100 * 0.5,
    ),
)


def gpu_page(gpus: Iterable[SimulatedGpu]) -> bytes:
    metrics = {field: GaugeMetricFamily(field.name, field.help) for field in _FIELDS}
    for gpu in gpus:
        labels = _labels(gpu)
        for field, metric in metrics.items():
            metric.add_sample(field.name, labels, field.value(gpu))
    return _text(metrics.values())


def router_page(cluster: Cluster) -> bytes:
    help_text = "Load offered to a workload, in percent of one GPU; there at zero replicas too."
    metric = GaugeMetricFamily(ROUTER_METRIC, help_text, labels=["namespace", "workload"])
    for key in sorted(cluster.workloads):
        metric.add_metric([*key], cluster.wanted_of(key).load)
    return _text([metric])


def _labels(gpu: SimulatedGpu) -> dict[str, str]:
    labels = {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "pci_bus_id": f"00000000:{gpu.index % 256:02X}:00.0",
        "device": f"nvidia{gpu.index}",
        "modelName": MODEL,
        "Hostname": gpu.host,
    }
    if pod := gpu.pod:
        labels |= {
            "container": pod.container,
            "namespace": pod.workload.namespace,
            "pod": pod.name,
        }
    return labels


class _Page(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _text(metrics: Iterable[Metric]) -> bytes:
    """Return the metrics that have samples as a page."""
    return exposition.generate_latest(_Page(metric for metric in metrics if metric.samples))
