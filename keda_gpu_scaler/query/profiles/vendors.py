"""The exporters of other vendors, of shared GPUs and of clouds; what Kubernetes itself shows.

Pure data, from each exporter's source or its vendor's documentation.
"""

from collections.abc import Mapping
from dataclasses import replace

from keda_gpu_scaler.query.profiles import dcgm, model
from keda_gpu_scaler.query.profiles.model import (
    GpuMetric,
    LabelConvention,
    Labels,
    Measure,
    Part,
    Profile,
)
from keda_gpu_scaler.spec.spec import Signal

_HAMI_LIMIT = 1000
"""Its sampling overshoots: far more than 100 % has been reported (HAMi issues 555, 1565)."""
_DEVICE = ("sub_dev", ("",))
"""Selects the rows of the device; its tiles have rows of their own."""
_UNDIVIDED = (("gpu_compute_partition_type", ("", "spx", "SPX")),)
"""Of a GPU in partitions the first one shows the average of all (device-metrics-exporter 139)."""


def _milliwatts(name: str) -> Measure:
    return Measure((GpuMetric(name, limit=1000 * model.WATTS_LIMIT, factor=0.001),), per_board=True)


def _some(measure: Measure) -> Measure:
    """Skip a metric that is 0: this exporter shows 0 for what a card lacks."""
    shown = tuple(replace(metric, zero_is_unknown=True) for metric in measure.metrics)
    return replace(measure, metrics=shown)


def _where(measure: Measure, *where: tuple[str, tuple[str, ...]]) -> Measure:
    """Read only the rows with these values of labels."""
    return replace(
        measure, metrics=tuple(replace(metric, where=where) for metric in measure.metrics)
    )


def _vram(name: str, part: Part) -> GpuMetric:
    """Read the GPU's own memory, in KiB; MetaX shows the system's too."""
    limit = 1024 * model.MEMORY_LIMIT_MIB
    return GpuMetric(name, limit, 1 / 1024, where=(("type", ("vram",)),), part=part)


def _tasks(*tasks: str) -> Measure:
    return _where(model.ratio("hw_gpu_utilization_ratio"), ("hw_gpu_task", tasks))


_AMD: Mapping[Signal, Measure] = {
    Signal.UTILIZATION: Measure(
        (
            GpuMetric("gpu_gfx_activity", limit=100, whole_gpus_only=True, where=_UNDIVIDED),
            GpuMetric("gpu_gfx_busy_instantaneous", limit=100),
        )
    ),
    **model.memory("gpu_used_vram", "gpu_total_vram", model.in_mebibytes),
    Signal.POWER: _some(
        model.watts("gpu_package_power", "gpu_average_package_power", "gpu_power_usage")
    ),
    Signal.TEMPERATURE: _some(model.celsius("gpu_junction_temperature", "gpu_edge_temperature")),
}
_MOUNT = "mount the nodes' /var/lib/kubelet/pod-resources into its pods"
_NVIDIA = "let the source scrape dcgm-exporter on these nodes, which names pods"
_CONTAINERS = "let the source scrape its metrics of containers as well"
_CARDS = tuple(f"gpu{number}" for number in range(16))
"""A row beside them has the total of a container."""

PROFILES = {
    "ack-dcgm-custom": Profile(
        "Alibaba Cloud ACK's DCGM exporter, per process",
        model.conventions(
            dcgm.ACK,
            {
                Signal.UTILIZATION: model.percent("DCGM_CUSTOM_PROCESS_SM_UTIL"),
                **model.memory(
                    "DCGM_CUSTOM_PROCESS_MEM_USED",
                    "DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED",
                    model.in_mebibytes,
                ),
                Signal.POWER: dcgm.POWER,
                Signal.TEMPERATURE: dcgm.TEMPERATURE,
            },
        ),
        verified=False,
    ),
    "ack-legacy": Profile(
        "Alibaba Cloud's ack-prometheus-gpu-exporter",
        model.conventions(
            Labels("namespace_name", "pod_name", ("uuid",), number="minor_number"),
            {
                Signal.UTILIZATION: model.percent("nvidia_gpu_duty_cycle"),
                **model.memory("nvidia_gpu_memory_used_bytes", "nvidia_gpu_memory_total_bytes"),
                Signal.POWER: _milliwatts("nvidia_gpu_power_usage_milliwatts"),
                Signal.TEMPERATURE: model.celsius("nvidia_gpu_temperature_celsius"),
            },
        ),
    ),
    "amd": Profile(
        "AMD device-metrics-exporter",
        model.conventions(
            replace(
                model.PLAIN,
                gpu=("gpu_uuid", "serial_number"),
                slice="gpu_partition_id",
                whole=("", "0"),
                number="gpu_id",
            ),
            _AMD,
            model.renamed(_AMD, "amd_{}".format),
        ),
        to_name_pods=_MOUNT,
    ),
    "intel-xpum-v1": Profile(
        "Intel XPU Manager 1",
        model.conventions(
            Labels("kube_namespace", "kube_pod", ("uuid",), number="dev_file"),
            {
                Signal.UTILIZATION: _where(
                    model.ratio("xpum_engine_ratio", "xpum_engine_group_ratio"), _DEVICE
                ),
                Signal.MEMORY: _where(model.ratio("xpum_memory_ratio"), _DEVICE),
                Signal.MEMORY_USED: _where(
                    Measure((model.in_bytes("xpum_memory_used_bytes"),)), _DEVICE
                ),
                Signal.POWER: _where(model.watts("xpum_power_watts"), _DEVICE),
                Signal.TEMPERATURE: _where(
                    model.celsius("xpum_temperature_celsius"), _DEVICE, ("location", ("gpu",))
                ),
            },
        ),
        to_name_pods=_MOUNT,
    ),
    "otel-hw": Profile(
        "OpenTelemetry's hw.gpu metrics, Intel xpumd; only if enriched with the pod",
        model.conventions(
            Labels("k8s_namespace_name", "k8s_pod_name", ("hw_id",), number="pci_bdf"),
            {
                Signal.UTILIZATION: _tasks("", "general", "compute", "render"),
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
                Signal.ENCODER: _tasks("encoder"),
                Signal.DECODER: _tasks("decoder"),
            },
        ),
        to_name_pods="add k8s_pod_name and k8s_namespace_name of the pod that uses the GPU",
    ),
    "hami": Profile(
        "HAMi's monitor since 2.9",
        model.conventions(
            replace(model.PLAIN, gpu=("device_uuid",), slice="vdevice_index"),
            {
                Signal.UTILIZATION: model.percent(
                    "hami_container_device_utilization_ratio", _HAMI_LIMIT
                ),
                **model.memory("hami_vgpu_memory_used_bytes", "hami_vgpu_memory_limit_bytes"),
            },
        ),
        to_name_pods=_CONTAINERS,
        unread=("hami_host_gpu_utilization_ratio",),
    ),
    "hami-legacy": Profile(
        "HAMi's monitor, older names",
        model.conventions(
            Labels("podnamespace", "podname", ("deviceuuid",), slice="vdeviceid"),
            {
                Signal.UTILIZATION: model.percent(
                    "Device_utilization_desc_of_container", _HAMI_LIMIT
                ),
                **model.memory(
                    "vGPU_device_memory_usage_in_bytes", "vGPU_device_memory_limit_in_bytes"
                ),
            },
        ),
        to_name_pods=_CONTAINERS,
        unread=("HostCoreUtilization",),
    ),
    "cadvisor-accel": Profile(
        "the kubelet's cAdvisor, Kubernetes up to 1.24",
        model.conventions(
            replace(model.PLAIN, gpu=("acc_id",)),
            {
                Signal.UTILIZATION: model.percent("container_accelerator_duty_cycle"),
                **model.memory(
                    "container_accelerator_memory_used_bytes",
                    "container_accelerator_memory_total_bytes",
                ),
            },
        ),
    ),
    "gke-system": Profile(
        "GKE's system metrics",
        model.conventions(
            Labels("namespace_name", "pod_name", ("accelerator_id",)),
            {
                Signal.UTILIZATION: model.percent("kubernetes_io:container_accelerator_duty_cycle"),
                **model.memory(
                    "kubernetes_io:container_accelerator_memory_used",
                    "kubernetes_io:container_accelerator_memory_total",
                ),
            },
        ),
        verified=False,
    ),
    "openshift-rules": Profile(
        "OpenShift's recording rules over dcgm-exporter",
        model.conventions(
            model.PLAIN,
            {
                Signal.UTILIZATION: Measure(
                    (GpuMetric("accelerator_gpu_utilization", limit=100, whole_gpus_only=True),)
                ),
                Signal.POWER: model.watts("accelerator_power_usage_watts"),
                Signal.TEMPERATURE: model.celsius("accelerator_temperature_celsius"),
            },
        ),
    ),
    "gke-device-plugin": Profile(
        "GKE's TPU and GPU device plugins, port 2112",
        model.conventions(
            replace(model.PLAIN, gpu=("accelerator_id",)),
            {
                # Other programs have metrics of these names too.
                signal: _where(measure, ("make", ("cloud-tpu", "nvidia")))
                for signal, measure in {
                    Signal.UTILIZATION: model.percent("duty_cycle"),
                    **model.memory("memory_used", "memory_total"),
                    Signal.TENSOR_ACTIVITY: model.percent("tensorcore_utilization"),
                    Signal.DRAM_ACTIVITY: model.percent("memory_bandwidth_utilization"),
                }.items()
            },
        ),
    ),
    "ascend": Profile(
        "Huawei Ascend npu-exporter",
        model.conventions(
            Labels("namespace", "pod_name", ("vdie_id",), number="id"),
            {
                Signal.UTILIZATION: model.percent("npu_chip_info_utilization"),
                **model.memory(
                    "npu_chip_info_hbm_used_memory",
                    "npu_chip_info_hbm_total_memory",
                    model.in_mebibytes,
                ),
                Signal.POWER: model.watts("npu_chip_info_power"),
                Signal.TEMPERATURE: model.celsius("npu_chip_info_temperature"),
            },
        ),
        to_name_pods="set -containerMode to the nodes' container runtime and mount its socket",
    ),
    "metax": Profile(
        "MetaX mxExporter",
        model.conventions(
            replace(model.PLAIN, gpu=("uuid",), slice="die_id", number="deviceId"),
            {
                Signal.UTILIZATION: model.percent("mx_gpu_usage"),
                **model.memory("mx_memory_used", "mx_memory_total", _vram),
                Signal.POWER: _milliwatts("mx_board_power"),
                Signal.TEMPERATURE: model.celsius("mx_chip_hotspot_temp"),
                Signal.ENCODER: model.percent("mx_vpue_usage"),
                Signal.DECODER: model.percent("mx_vpud_usage"),
            },
        ),
    ),
    "runai": Profile(
        "Run:ai's metrics by pod",
        model.conventions(
            Labels("pod_namespace", "pod_name"),
            {
                Signal.UTILIZATION: model.percent("runai_gpu_utilization_per_pod_per_gpu"),
                Signal.MEMORY_USED: Measure(
                    (model.in_mebibytes("runai_gpu_memory_used_mebibytes_per_pod_per_gpu"),)
                ),
            },
        ),
    ),
    "iluvatar": Profile(
        "Iluvatar ix-exporter",
        model.conventions(
            replace(model.PLAIN, gpu=("uuid",)),
            {
                Signal.UTILIZATION: model.percent("ix_gpu_utilization"),
                **model.memory("ix_mem_used", "ix_mem_total", model.in_mebibytes),
                Signal.POWER: model.watts("ix_power_usage"),
                Signal.TEMPERATURE: model.celsius("ix_gpu_temperature", "ix_temperature"),
            },
        ),
    ),
    "enflame": Profile(
        "Enflame gcu-exporter",
        model.conventions(
            Labels("pod_namespace", "pod_name", ("uuid",), number="minor_number"),
            {
                Signal.UTILIZATION: model.percent("enflame_gcu_usage"),
                **model.memory("enflame_gcu_memory_used_bytes", "enflame_gcu_memory_total_bytes"),
                Signal.POWER: model.watts("enflame_gcu_power_consumption"),
                Signal.TEMPERATURE: model.celsius("enflame_gcu_temperatures"),
            },
        ),
    ),
    "tencent": Profile(
        "Tencent gpu-manager",
        tuple(
            LabelConvention(
                Labels("namespace", "pod_name", number=card),
                {signal: _where(Measure((metric,)), (card, _CARDS))},
            )
            for card, signal, metric in (
                ("gpu", Signal.UTILIZATION, GpuMetric("container_gpu_utilization", limit=100)),
                (
                    "gpu_memory",
                    Signal.MEMORY_USED,
                    model.in_mebibytes("container_gpu_memory_total"),
                ),
            )
        ),
    ),
    "furiosa": Profile(
        "Furiosa furiosa-metrics-exporter",
        model.conventions(
            replace(model.PLAIN, gpu=("uuid",), slice="core", number="device"),
            {
                Signal.UTILIZATION: model.percent("furiosa_npu_core_utilization"),
                **model.memory("furiosa_npu_dram_usage", "furiosa_npu_dram_total"),
                Signal.POWER: _where(model.watts("furiosa_npu_hw_power"), ("label", ("rms",))),
                Signal.TEMPERATURE: _where(
                    model.celsius("furiosa_npu_hw_temperature"), ("label", ("peak",))
                ),
            },
        ),
    ),
    "hygon": Profile(
        "Hygon hcu-exporter, dcu-exporter",
        tuple(
            LabelConvention(
                Labels(
                    f"{unit}_pod_namespace",
                    f"{unit}_pod_name",
                    ("device_id",),
                    number="minor_number",
                ),
                {
                    Signal.UTILIZATION: model.percent(f"{unit}_utilizationrate"),
                    **model.memory(f"{unit}_usedmemory_bytes", f"{unit}_memorycap_bytes"),
                    Signal.POWER: model.watts(f"{unit}_power_usage"),
                    Signal.TEMPERATURE: model.celsius(f"{unit}_temp"),
                },
            )
            for unit in ("hcu", "dcu")
        ),
    ),
    "mindprince": Profile(
        "mindprince/nvidia_gpu_prometheus_exporter",
        (),
        to_name_pods=_NVIDIA,
        unread=("nvidia_gpu_duty_cycle",),
    ),
    "nvidia-smi": Profile(
        "utkuozdemir/nvidia_gpu_exporter",
        (),
        to_name_pods=_NVIDIA,
        unread=("nvidia_smi_utilization_gpu_ratio", "nvidia_smi_memory_used_bytes"),
    ),
    "drm-exporter": Profile("home-operations/drm-exporter", ()),
}
"""In the order in which `auto` prefers them."""
