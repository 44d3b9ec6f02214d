"""What clouds and Kubernetes itself show of GPUs: ACK, GKE, OpenShift, the kubelet.

Pure data, from the vendors' documentation and the kubelet's source.
"""

from dataclasses import replace

from keda_gpu_scaler.query.profiles import dcgm, model
from keda_gpu_scaler.query.profiles.model import LabelConvention, Labels, Measure, Metric
from keda_gpu_scaler.spec.spec import Signal

ACK_CUSTOM = (
    LabelConvention(
        dcgm.ACK,
        {
            Signal.UTILIZATION: model.percent("DCGM_CUSTOM_PROCESS_SM_UTIL"),
            **model.memory(
                model.in_mebibytes("DCGM_CUSTOM_PROCESS_MEM_USED"),
                model.in_mebibytes("DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED"),
            ),
            Signal.POWER: dcgm.POWER,
            Signal.TEMPERATURE: dcgm.TEMPERATURE,
        },
    ),
)

_ACK_OLD = Labels("namespace_name", "pod_name", ("uuid",), number="minor_number")
_MILLIWATTS = Metric(
    "nvidia_gpu_power_usage_milliwatts", limit=1000 * model.WATTS_LIMIT, factor=0.001
)
ACK_LEGACY = (
    LabelConvention(
        _ACK_OLD,
        {
            Signal.UTILIZATION: model.percent("nvidia_gpu_duty_cycle"),
            **model.memory(
                model.in_bytes("nvidia_gpu_memory_used_bytes"),
                model.in_bytes("nvidia_gpu_memory_total_bytes"),
            ),
            Signal.POWER: Measure((_MILLIWATTS,), per_board=True),
            Signal.TEMPERATURE: model.celsius("nvidia_gpu_temperature_celsius"),
        },
    ),
)

_KUBELET = replace(model.PLAIN, gpu=("acc_id",))
CADVISOR = model.both(
    _KUBELET,
    {
        Signal.UTILIZATION: model.percent("container_accelerator_duty_cycle"),
        **model.memory(
            model.in_bytes("container_accelerator_memory_used_bytes"),
            model.in_bytes("container_accelerator_memory_total_bytes"),
        ),
    },
)

_GKE_LABELS = Labels("namespace_name", "pod_name", ("accelerator_id",))
GKE = (
    LabelConvention(
        _GKE_LABELS,
        {
            Signal.UTILIZATION: model.percent("kubernetes_io:container_accelerator_duty_cycle"),
            **model.memory(
                model.in_bytes("kubernetes_io:container_accelerator_memory_used"),
                model.in_bytes("kubernetes_io:container_accelerator_memory_total"),
            ),
        },
    ),
)

OPENSHIFT = model.both(
    model.PLAIN,
    {
        Signal.UTILIZATION: Measure(
            (Metric("accelerator_gpu_utilization", limit=100, whole_gpus_only=True),)
        ),
        Signal.POWER: model.watts("accelerator_power_usage_watts"),
        Signal.TEMPERATURE: model.celsius("accelerator_temperature_celsius"),
    },
)
