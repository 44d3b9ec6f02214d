"""The metrics, labels and units of Alibaba Cloud's two exporters, for simulated devices.

Pure. Both are modelled on the pages in `tests/data/exporters`, which say where each name is from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keda_gpu_scaler.simulator.readings import MEMORY_MIB, MODEL, Field, Reading

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
    card: Callable[[Reading], dict[str, str]]
    pod: Callable[[Reading], dict[str, str]]


def _dcgm_card(gpu: Reading) -> dict[str, str]:
    return {
        "gpu": str(gpu.device.gpu),
        "UUID": gpu.uuid,
        "device": f"nvidia{gpu.device.gpu}",
        "modelName": MODEL,
        "NodeName": gpu.host,
    }


def _dcgm_pod(gpu: Reading) -> dict[str, str]:
    if gpu.holder is None:
        return {}
    return {
        "ContainerName": gpu.holder.container,
        "NamespaceName": gpu.holder.namespace,
        "PodName": gpu.holder.pod,
    }


def _nvml_card(gpu: Reading) -> dict[str, str]:
    return {
        "minor_number": str(gpu.device.gpu),
        "name": MODEL,
        "node_name": gpu.host,
        "uuid": gpu.uuid,
    }


def _nvml_pod(gpu: Reading) -> dict[str, str]:
    """Return the labels of the pod, which are there and empty where no pod holds the GPU."""
    holder = gpu.holder
    return {
        "allocate_mode": "exclusive" if holder else "",
        "container_name": holder.container if holder else "",
        "namespace_name": holder.namespace if holder else "",
        "pod_name": holder.pod if holder else "",
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
