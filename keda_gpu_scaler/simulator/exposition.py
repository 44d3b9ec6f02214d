"""The page of a simulated dcgm-exporter, with the exporter's names, labels and units.

Pure. The metrics are those of dcgm-exporter's `dcp-metrics-included.csv`, the labels those of its
releases since 3.3.5: a GPU without a pod has no pod labels.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import exposition
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler.simulator import cluster, devices

CONTENT_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4
ROUTER_METRIC = "simulator_router_offered_load_percent"
MODEL = "NVIDIA H100 80GB HBM3"
_MEMORY_MIB = 81559
_MEMORY_IN_USE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The options in which exporters differ."""

    engine_active: bool = True
    """Whether whole GPUs show DCGM_FI_PROF_*; MIG instances always do."""
    mig_shows_zero: bool = False
    """Whether MIG instances show DCGM_FI_DEV_GPU_UTIL 0, as in some releases, or do not show it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One device at one instant."""

    device: devices.Device
    percent: float
    labels: dict[str, str]
    held: bool

    @property
    def memory_mib(self) -> int:
        """The framebuffer memory of the device."""
        return int(_MEMORY_MIB * self.device.share)

    @property
    def memory_used_mib(self) -> int:
        """Used memory: a model stays in memory as long as its pod exists, busy or not."""
        return int(self.memory_mib * _MEMORY_IN_USE) if self.held else 0

    @property
    def celsius(self) -> int:
        """The temperature: it rises with the load."""
        return round(30 + 0.4 * self.percent)

    @property
    def watts(self) -> float:
        """The power: from 70 W without load to 700 W."""
        return round(70 + 6.3 * self.percent, 3)


@dataclass(frozen=True, slots=True)
class Field:
    """One metric of the exporter."""

    name: str
    help: str
    value: Callable[[Reading], float]


_BOARD = (
    Field("DCGM_FI_DEV_GPU_TEMP", "Temperature of the card in °C.", lambda gpu: gpu.celsius),
    Field("DCGM_FI_DEV_POWER_USAGE", "Power the card draws in W.", lambda gpu: gpu.watts),
    Field(
        "DCGM_FI_DEV_FB_FREE",
        "Memory that is not in use in MiB.",
        lambda gpu: gpu.memory_mib - gpu.memory_used_mib,
    ),
    Field("DCGM_FI_DEV_FB_USED", "Memory in use in MiB.", lambda gpu: gpu.memory_used_mib),
)
_UTILIZATION = (
    Field(
        "DCGM_FI_DEV_GPU_UTIL", "Share of time with a kernel in %.", lambda gpu: round(gpu.percent)
    ),
    Field("DCGM_FI_DEV_ENC_UTIL", "Load of the video encoder in %.", lambda _: 0),
    Field("DCGM_FI_DEV_DEC_UTIL", "Load of the video decoder in %.", lambda _: 0),
)
_PROFILING = (
    Field(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "Share of time the engine was active, from 0 to 1.",
        lambda gpu: gpu.percent / 100,
    ),
    Field(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Share of cycles the tensor cores were active, from 0 to 1.",
        lambda gpu: gpu.percent / 100 * 0.6,
    ),
    Field(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "Share of cycles the memory was active, from 0 to 1.",
        lambda gpu: gpu.percent / 100 * 0.5,
    ),
)


def node_page(simulated: cluster.Simulated, style: Style, now: float, node: int) -> bytes:
    """Return the page of one node's exporter; nodes count from 0."""
    found = readings(simulated, now, simulated.nodes[node : node + 1])
    return _text(_exporter_families(list(found), style))


def router_page(simulated: cluster.Simulated) -> bytes:
    """Return the page of the router in front of the workloads, without GPUs."""
    return _text([_router_family(simulated)])


def whole_page(simulated: cluster.Simulated, style: Style, now: float) -> bytes:
    """Return all nodes' exporters and the router on one page."""
    families = _exporter_families(list(readings(simulated, now, simulated.nodes)), style)
    return _text([*families, _router_family(simulated)])


def readings(shown: cluster.Simulated, now: float, nodes: list[devices.Node]) -> Iterator[Reading]:
    """Yield the readings of all devices of these nodes, in the order of the nodes and GPUs."""
    holders = dict(_holders(shown, now))
    for node in nodes:
        for device in node.devices:
            percent, pod_labels = holders.get(device, (0, {}))
            yield Reading(
                device, percent, _labels(device, node.host) | pod_labels, bool(pod_labels)
            )


def _holders(
    simulated: cluster.Simulated, now: float
) -> Iterator[tuple[devices.Device, tuple[float, dict[str, str]]]]:
    for (namespace, name), workload in simulated.workloads.items():
        for pod, percent in workload.percents(now):
            labels = {"container": pod.container or name, "namespace": namespace, "pod": pod.name}
            for device in pod.devices:
                yield device, (percent, labels)


def _labels(device: devices.Device, host: str) -> dict[str, str]:
    labels = {
        "gpu": str(device.gpu),
        "UUID": cluster.uuid(f"{host}/{device.gpu}"),
        "pci_bus_id": f"00000000:{device.gpu % 256:02X}:00.0",
        "device": f"nvidia{device.gpu}",
        "modelName": MODEL,
        "Hostname": host,
    }
    if device.profile:
        labels |= {"GPU_I_PROFILE": device.profile, "GPU_I_ID": str(device.instance)}
    return labels


def _exporter_families(found: list[Reading], style: Style) -> Iterator[Metric]:
    whole = [reading for reading in found if not reading.device.profile]
    cut = [reading for reading in found if reading.device.profile]
    for each in _UTILIZATION:
        yield _family(each, whole, cut if style.mig_shows_zero else [])
    for each in _BOARD:
        yield _family(each, found)
    for each in _PROFILING:
        yield _family(each, found if style.engine_active else cut)


def _family(each: Field, shown: Iterable[Reading], zeros: Iterable[Reading] = ()) -> Metric:
    family = GaugeMetricFamily(each.name, each.help)
    for reading in shown:
        family.add_sample(each.name, reading.labels, each.value(reading))
    for reading in zeros:
        family.add_sample(each.name, reading.labels, 0)
    return family


def _router_family(simulated: cluster.Simulated) -> Metric:
    text = "Load offered to a workload, in percent of one GPU; there at zero replicas too."
    family = GaugeMetricFamily(ROUTER_METRIC, text, labels=["namespace", "workload"])
    for key, workload in simulated.workloads.items():
        family.add_metric([*key], workload.wanted.load)
    return family


class _Page(Collector):
    """Prebuilt families, for prometheus-client's writer."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _text(families: Iterable[Metric]) -> bytes:
    return exposition.generate_latest(_Page(family for family in families if family.samples))
