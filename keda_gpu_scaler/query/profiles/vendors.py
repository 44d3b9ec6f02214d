"""The exporters of other vendors, of shared GPUs and of clouds; what Kubernetes itself shows.

Pure data, from each exporter's source or its vendor's documentation.
"""

from dataclasses import replace

from keda_gpu_scaler.query.profiles import dcgm, model
from keda_gpu_scaler.query.profiles.model import LabelConvention, Labels, Measure, Metric, Part
from keda_gpu_scaler.spec.spec import Signal

_HAMI_LIMIT = 1000
"""Its sampling overshoots: far more than 100 % has been reported (HAMi issues 555, 1565)."""


def _some(measure: Measure) -> Measure:
    """Skip a metric that is 0: this exporter shows 0 for what a card lacks."""
    shown = tuple(replace(metric, zero_is_unknown=True) for metric in measure.metrics)
    return replace(measure, metrics=shown)


_AMD = replace(
    model.PLAIN,
    gpu=("gpu_uuid", "serial_number"),
    slice="gpu_partition_id",
    whole=("", "0"),
    number="gpu_id",
)
AMD = model.both(
    _AMD,
    {
        Signal.UTILIZATION: Measure(
            (
                Metric("gpu_gfx_activity", limit=100, whole_gpus_only=True),
                Metric("gpu_gfx_busy_instantaneous", limit=100),
            )
        ),
        **model.memory(model.in_mebibytes("gpu_used_vram"), model.in_mebibytes("gpu_total_vram")),
        Signal.POWER: _some(
            model.watts("gpu_package_power", "gpu_average_package_power", "gpu_power_usage")
        ),
        Signal.TEMPERATURE: _some(
            model.celsius("gpu_junction_temperature", "gpu_edge_temperature")
        ),
    },
)

_XPUM_LABELS = Labels("kube_namespace", "kube_pod", ("uuid",), number="dev_file")
_DEVICE = ("sub_dev", ("",))
"""Selects the rows of the device; its tiles have rows of their own."""


def _of_device(metric: Metric, *where: tuple[str, tuple[str, ...]]) -> Metric:
    return replace(metric, where=(_DEVICE, *where))


XPUM = (
    LabelConvention(
        _XPUM_LABELS,
        {
            Signal.UTILIZATION: Measure(
                (
                    _of_device(Metric("xpum_engine_ratio", limit=1.01, factor=100)),
                    _of_device(Metric("xpum_engine_group_ratio", limit=1.01, factor=100)),
                )
            ),
            Signal.MEMORY: Measure(
                (_of_device(Metric("xpum_memory_ratio", limit=1.01, factor=100)),)
            ),
            Signal.MEMORY_USED: Measure((_of_device(model.in_bytes("xpum_memory_used_bytes")),)),
            Signal.POWER: Measure(
                (_of_device(Metric("xpum_power_watts", limit=model.WATTS_LIMIT)),), per_board=True
            ),
            Signal.TEMPERATURE: Measure(
                (
                    _of_device(
                        Metric("xpum_temperature_celsius", limit=model.CELSIUS_LIMIT),
                        ("location", ("gpu",)),
                    ),
                ),
                per_board=True,
            ),
        },
    ),
)

_OTEL_LABELS = Labels("k8s_namespace_name", "k8s_pod_name", ("hw_id",), number="pci_bdf")


def _task(*tasks: str) -> Measure:
    ratio = Metric("hw_gpu_utilization_ratio", limit=1.01, factor=100)
    return Measure((replace(ratio, where=(("hw_gpu_task", tasks),)),))


OTEL = (
    LabelConvention(
        _OTEL_LABELS,
        {
            Signal.UTILIZATION: _task("", "general", "compute", "render"),
            Signal.MEMORY: Measure(
                (
                    model.in_bytes("hw_gpu_memory_usage_bytes", Part.USED),
                    model.in_bytes("hw_memory_usage_bytes", Part.USED),
                    model.in_bytes("hw_gpu_memory_limit_bytes", Part.TOTAL),
                    model.in_bytes("hw_memory_size_bytes", Part.TOTAL),
                )
            ),
            Signal.MEMORY_USED: Measure(
                (
                    model.in_bytes("hw_gpu_memory_usage_bytes"),
                    model.in_bytes("hw_memory_usage_bytes"),
                )
            ),
            Signal.POWER: model.watts("hw_power_watts"),
            Signal.TEMPERATURE: model.celsius("hw_temperature_celsius"),
            Signal.ENCODER: _task("encoder"),
            Signal.DECODER: _task("decoder"),
        },
    ),
)

_HAMI_LABELS = replace(model.PLAIN, gpu=("device_uuid",), slice="vdevice_index")
HAMI = model.both(
    _HAMI_LABELS,
    {
        Signal.UTILIZATION: model.percent("hami_container_device_utilization_ratio", _HAMI_LIMIT),
        **model.memory(
            model.in_bytes("hami_vgpu_memory_used_bytes"),
            model.in_bytes("hami_vgpu_memory_limit_bytes"),
        ),
    },
)
_HAMI_OLD = Labels("podnamespace", "podname", ("deviceuuid",), slice="vdeviceid")
HAMI_LEGACY = (
    LabelConvention(
        _HAMI_OLD,
        {
            Signal.UTILIZATION: model.percent("Device_utilization_desc_of_container", _HAMI_LIMIT),
            **model.memory(
                model.in_bytes("vGPU_device_memory_usage_in_bytes"),
                model.in_bytes("vGPU_device_memory_limit_in_bytes"),
            ),
        },
    ),
)

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
