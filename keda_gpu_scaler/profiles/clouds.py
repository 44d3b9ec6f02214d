"""What clouds and Kubernetes itself show of GPUs: ACK, GKE, OpenShift, the kubelet.

Pure data, from the vendors' documentation and the kubelet's source.
"""

from dataclasses import replace

from keda_gpu_scaler.profiles import dcgm, shared
from keda_gpu_scaler.profiles.model import Labels, Measure, Metric, Scheme
from keda_gpu_scaler.spec import Signal

ACK_CUSTOM = (
    Scheme(
        dcgm.ACK,
        {
            Signal.UTILIZATION: shared.percent("DCGM_CUSTOM_PROCESS_SM_UTIL"),
            **shared.memory(
                shared.in_mebibytes("DCGM_CUSTOM_PROCESS_MEM_USED"),
                shared.in_mebibytes("DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED"),
            ),
            Signal.POWER: dcgm.POWER,
            Signal.TEMPERATURE: dcgm.TEMPERATURE,
        },
    ),
)

_ACK_OLD = Labels("namespace_name", "pod_name", ("uuid",), number="minor_number")
_MILLIWATTS = Metric(
    "nvidia_gpu_power_usage_milliwatts", limit=1000 * shared.WATTS_LIMIT, factor=0.001
)
ACK_LEGACY = (
    Scheme(
        _ACK_OLD,
        {
            Signal.UTILIZATION: shared.percent("nvidia_gpu_duty_cycle"),
            **shared.memory(
                shared.in_bytes("nvidia_gpu_memory_used_bytes"),
                shared.in_bytes("nvidia_gpu_memory_total_bytes"),
            ),
            Signal.POWER: Measure((_MILLIWATTS,), per_board=True),
            Signal.TEMPERATURE: shared.celsius("nvidia_gpu_temperature_celsius"),
        },
    ),
)

_KUBELET = replace(shared.PLAIN, gpu=("acc_id",))
CADVISOR = shared.both(
    _KUBELET,
    {
        Signal.UTILIZATION: shared.percent("container_accelerator_duty_cycle"),
        **shared.memory(
            shared.in_bytes("container_accelerator_memory_used_bytes"),
            shared.in_bytes("container_accelerator_memory_total_bytes"),
        ),
    },
)

_GKE_LABELS = Labels("namespace_name", "pod_name", ("accelerator_id",))
GKE = (
    Scheme(
        _GKE_LABELS,
        {
            Signal.UTILIZATION: shared.percent("kubernetes_io:container_accelerator_duty_cycle"),
            **shared.memory(
                shared.in_bytes("kubernetes_io:container_accelerator_memory_used"),
                shared.in_bytes("kubernetes_io:container_accelerator_memory_total"),
            ),
        },
    ),
)

OPENSHIFT = shared.both(
    shared.PLAIN,
    {
        Signal.UTILIZATION: Measure(
            (Metric("accelerator_gpu_utilization", limit=100, whole_gpus_only=True),)
        ),
        Signal.POWER: shared.watts("accelerator_power_usage_watts"),
        Signal.TEMPERATURE: shared.celsius("accelerator_temperature_celsius"),
    },
)
