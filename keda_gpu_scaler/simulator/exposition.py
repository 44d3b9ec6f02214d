"""The page of a simulated exporter: dcgm-exporter's names, labels and units by default.

Pure. The metrics are those of dcgm-exporter's `dcp-metrics-included.csv`, the labels those of its
releases since 3.3.5: a GPU without a pod has no pod labels. Other exporters are in `clouds.py`.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import exposition
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler.simulator import clouds, cluster, readings
from keda_gpu_scaler.simulator.readings import MEMORY_MIB, MODEL, Field, Reading

CONTENT_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4
ROUTER_METRIC = "simulator_router_offered_load_percent"
DCGM = "dcgm"
EXPORTERS = (DCGM, *clouds.EXPORTERS)
"""What a page can look like, by the names of the profiles that read it."""
_Labelled = tuple[dict[str, str], Reading]


_DCGM = (
    Field("DCGM_FI_DEV_GPU_TEMP", "Temperature of the card in °C.", lambda gpu: gpu.celsius),
    Field("DCGM_FI_DEV_POWER_USAGE", "Power the card draws in W.", lambda gpu: gpu.watts),
    Field(
        "DCGM_FI_DEV_FB_FREE",
        "Memory that is not in use in MiB.",
        lambda gpu: MEMORY_MIB - gpu.memory_used_mib,
    ),
    Field("DCGM_FI_DEV_FB_USED", "Memory in use in MiB.", lambda gpu: gpu.memory_used_mib),
    Field(
        "DCGM_FI_DEV_GPU_UTIL", "Share of time with a kernel in %.", lambda gpu: round(gpu.percent)
    ),
    Field("DCGM_FI_DEV_ENC_UTIL", "Load of the video encoder in %.", lambda _: 0),
    Field("DCGM_FI_DEV_DEC_UTIL", "Load of the video decoder in %.", lambda _: 0),
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


def node_page(simulated: cluster.Simulated, now: float, node: int, exporter: str = DCGM) -> bytes:
    """Return the page of one node's exporter; nodes count from 0."""
    found = list(readings.taken(simulated, now, simulated.nodes[node : node + 1]))
    return _text(_families(found, exporter))


def router_page(simulated: cluster.Simulated) -> bytes:
    """Return the page of the router in front of the workloads, without GPUs."""
    return _text([_router_family(simulated)])


def whole_page(simulated: cluster.Simulated, now: float, exporter: str = DCGM) -> bytes:
    """Return all nodes' exporters and the router on one page."""
    found = list(readings.taken(simulated, now, simulated.nodes))
    return _text([*_families(found, exporter), _router_family(simulated)])


def _families(found: list[Reading], exporter: str) -> Iterator[Metric]:
    if exporter in clouds.EXPORTERS:
        yield from _cloud_families(found, clouds.EXPORTERS[exporter])
    else:
        shown = [(_dcgm_labels(reading), reading) for reading in found]
        yield from (_family(each, shown) for each in _DCGM)


def _cloud_families(found: list[Reading], exporter: clouds.Exporter) -> Iterator[Metric]:
    cards = [(exporter.card(reading), reading) for reading in found]
    gpus = [(card | exporter.pod(reading), reading) for card, reading in cards]
    held = [(labels, reading) for labels, reading in gpus if reading.holder]
    for each in exporter.of_pods:
        yield _family(each, held)
    for each in exporter.of_gpus:
        yield _family(each, gpus)
    for each in exporter.of_cards:
        yield _family(each, cards)


def _dcgm_labels(reading: Reading) -> dict[str, str]:
    device = reading.device
    labels = {
        "gpu": str(device.gpu),
        "UUID": reading.uuid,
        "pci_bus_id": f"00000000:{device.gpu % 256:02X}:00.0",
        "device": f"nvidia{device.gpu}",
        "modelName": MODEL,
        "Hostname": reading.host,
    }
    if holder := reading.holder:
        labels |= {
            "container": holder.container,
            "namespace": holder.namespace,
            "pod": holder.pod,
        }
    return labels


def _family(each: Field, shown: Iterable[_Labelled]) -> Metric:
    family = GaugeMetricFamily(each.name, each.help)
    for labels, reading in shown:
        family.add_sample(each.name, labels, each.value(reading))
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
