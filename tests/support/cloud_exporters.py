"""Pages of Alibaba Cloud's two exporters for simulated GPUs: their metrics, labels and units.

Both are modelled on the pages in `tests/data/exporters`, which say where each name is from.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from keda_gpu_scaler.simulator.cluster import MEMORY_MIB, MODEL, Gpu
from keda_gpu_scaler.simulator.exposition import Field, family, text

_BYTES_PER_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exporter:
    """One exporter: its metrics, and how it labels a GPU."""

    of_pods: tuple[Field, ...]
    """Shown for GPUs that a pod holds, and labelled with the pod."""
    of_gpus: tuple[Field, ...]
    """Shown for every GPU, and labelled with its pod if one holds it."""
    of_cards: tuple[Field, ...]
    """Shown for every GPU, and never labelled with a pod."""
    card: Callable[[Gpu], dict[str, str]]
    pod: Callable[[Gpu], dict[str, str]]


def _dcgm_card(gpu: Gpu) -> dict[str, str]:
    return {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "device": f"nvidia{gpu.index}",
        "modelName": MODEL,
        "NodeName": gpu.host,
    }


def _dcgm_pod(gpu: Gpu) -> dict[str, str]:
    if gpu.pod is None:
        return {}
    return {
        "ContainerName": gpu.pod.container,
        "NamespaceName": gpu.pod.workload.namespace,
        "PodName": gpu.pod.name,
    }


def _nvml_card(gpu: Gpu) -> dict[str, str]:
    return {
        "minor_number": str(gpu.index),
        "name": MODEL,
        "node_name": gpu.host,
        "uuid": gpu.uuid,
    }


def _nvml_pod(gpu: Gpu) -> dict[str, str]:
    """Return the labels of the pod, which are there and empty where no pod holds the GPU."""
    pod = gpu.pod
    return {
        "allocate_mode": "exclusive" if pod else "",
        "container_name": pod.container if pod else "",
        "namespace_name": pod.workload.namespace if pod else "",
        "pod_name": pod.name if pod else "",
    }


EXPORTERS: Mapping[str, Exporter] = {
    "ack-dcgm-custom": Exporter(
        of_pods=(
            Field(
                "DCGM_CUSTOM_PROCESS_SM_UTIL",
                "SM utilization of the pod's processes in %.",
                lambda gpu: round(gpu.percent),
            ),
            Field(
                "DCGM_CUSTOM_PROCESS_MEM_USED",
                "Memory that the pod's processes use in MiB.",
                lambda gpu: gpu.memory_used_mib,
            ),
            Field(
                "DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED",
                "Memory that the container may use in MiB.",
                lambda _: MEMORY_MIB,
            ),
        ),
        of_gpus=(
            Field(
                "DCGM_FI_DEV_GPU_TEMP", "Temperature of the card in °C.", lambda gpu: gpu.celsius
            ),
            Field("DCGM_FI_DEV_POWER_USAGE", "Power the card draws in W.", lambda gpu: gpu.watts),
        ),
        of_cards=(
            Field(
                "DCGM_FI_DEV_GPU_UTIL",
                "Share of time with a kernel in %.",
                lambda gpu: round(gpu.percent),
            ),
            Field("DCGM_FI_DEV_FB_USED", "Memory in use in MiB.", lambda gpu: gpu.memory_used_mib),
        ),
        card=_dcgm_card,
        pod=_dcgm_pod,
    ),
    "ack-legacy": Exporter(
        of_pods=(),
        of_gpus=(
            Field(
                "nvidia_gpu_duty_cycle",
                "Share of time with a kernel in %.",
                lambda gpu: round(gpu.percent),
            ),
            Field(
                "nvidia_gpu_memory_used_bytes",
                "Memory in use in bytes.",
                lambda gpu: gpu.memory_used_mib * _BYTES_PER_MIB,
            ),
            Field(
                "nvidia_gpu_memory_total_bytes",
                "Memory of the card in bytes.",
                lambda _: MEMORY_MIB * _BYTES_PER_MIB,
            ),
            Field(
                "nvidia_gpu_temperature_celsius",
                "Temperature of the card in °C.",
                lambda gpu: gpu.celsius,
            ),
            Field(
                "nvidia_gpu_power_usage_milliwatts",
                "Power the card draws in milliwatts.",
                lambda gpu: round(gpu.watts * 1000),
            ),
        ),
        of_cards=(),
        card=_nvml_card,
        pod=_nvml_pod,
    ),
}
"""By the names of their profiles."""


def page(simulated: Iterable[Gpu], exporter: str) -> bytes:
    """Return the page of these GPUs, by the name of the profile that reads it."""
    shown = EXPORTERS[exporter]
    cards = [(shown.card(gpu), gpu) for gpu in simulated]
    gpus = [(card | shown.pod(gpu), gpu) for card, gpu in cards]
    held = [(labels, gpu) for labels, gpu in gpus if gpu.pod]
    return text(
        [
            *(family(field, held) for field in shown.of_pods),
            *(family(field, gpus) for field in shown.of_gpus),
            *(family(field, cards) for field in shown.of_cards),
        ]
    )
