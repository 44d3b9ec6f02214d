"""dcgm-exporter's metrics and labels, of all its releases and of products based on it.

Pure data. Facts come from dcgm-exporter (`etc/default-counters.csv`, its `dcp-metrics-included.csv`
and its label code).
"""

from collections.abc import Mapping
from dataclasses import replace

from keda_gpu_scaler.query.profiles import model
from keda_gpu_scaler.query.profiles.model import GpuMetric, Labels, Measure, Part, Profile
from keda_gpu_scaler.spec.spec import Signal

BLANKS = frozenset(
    float(first + number)
    for first in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 2**47)
    for number in range(4)
)
"""DCGM's placeholders for a number that is not available; old exporters pass them on."""

LABELS = Labels("pod_namespace", "pod_name", ("UUID", "uuid"))
"""Those of every release: old ones have names of their own."""
ACK = Labels("NamespaceName", "PodName")

SAMPLED = GpuMetric("DCGM_FI_DEV_GPU_UTIL", limit=100, whole_gpus_only=True)
ENGINE = GpuMetric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", limit=1.01, factor=100, averaged=True)


def _codec(name: str) -> Measure:
    return Measure((GpuMetric(name, limit=100, whole_gpus_only=True),))


def _profiled(name: str) -> Measure:
    return model.ratio(name, averaged=True)


FB_USED = model.in_mebibytes("DCGM_FI_DEV_FB_USED")
_FB_SHARE = (
    replace(FB_USED, part=Part.USED),
    model.in_mebibytes("DCGM_FI_DEV_FB_FREE", Part.FREE),
    model.in_mebibytes("DCGM_FI_DEV_FB_TOTAL", Part.TOTAL),
)
POWER = model.watts("DCGM_FI_DEV_POWER_USAGE")
TEMPERATURE = model.celsius("DCGM_FI_DEV_GPU_TEMP")

_ANY: Mapping[Signal, Measure] = {
    Signal.UTILIZATION: Measure((ENGINE, SAMPLED)),
    Signal.MEMORY: Measure(_FB_SHARE),
    Signal.MEMORY_USED: Measure((FB_USED,)),
    Signal.POWER: POWER,
    Signal.TEMPERATURE: TEMPERATURE,
    Signal.SM_ACTIVITY: _profiled("DCGM_FI_PROF_SM_ACTIVE"),
    Signal.TENSOR_ACTIVITY: _profiled("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    Signal.DRAM_ACTIVITY: _profiled("DCGM_FI_PROF_DRAM_ACTIVE"),
    Signal.ENCODER: _codec("DCGM_FI_DEV_ENC_UTIL"),
    Signal.DECODER: _codec("DCGM_FI_DEV_DEC_UTIL"),
}
_SAMPLES_FIRST = {**_ANY, Signal.UTILIZATION: Measure((SAMPLED, ENGINE))}
_OLD_USED = model.in_mebibytes("dcgm_fb_used")
_OLD_NAMES: Mapping[Signal, Measure] = {
    Signal.UTILIZATION: Measure(
        (GpuMetric("dcgm_gpu_utilization", limit=100, whole_gpus_only=True),)
    ),
    Signal.MEMORY: Measure(
        (replace(_OLD_USED, part=Part.USED), model.in_mebibytes("dcgm_fb_free", Part.FREE))
    ),
    Signal.MEMORY_USED: Measure((_OLD_USED,)),
    Signal.POWER: model.watts("dcgm_power_usage"),
    Signal.TEMPERATURE: model.celsius("dcgm_gpu_temp"),
}
_ACS: Mapping[Signal, Measure] = {
    Signal.UTILIZATION: Measure((SAMPLED,)),
    Signal.MEMORY: Measure((_FB_SHARE[0], _FB_SHARE[2])),
    Signal.MEMORY_USED: Measure((FB_USED,)),
    Signal.POWER: POWER,
    Signal.TEMPERATURE: TEMPERATURE,
}
_RATIO: Mapping[Signal, Measure] = {
    Signal.UTILIZATION: _profiled("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
    Signal.MEMORY: Measure(_FB_SHARE),
    Signal.MEMORY_USED: Measure((FB_USED,)),
    Signal.POWER: model.watts("DCGM_FI_DEV_BOARD_POWER_WATTS"),
    Signal.TEMPERATURE: model.celsius("DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
    Signal.SM_ACTIVITY: _profiled("DCGM_FI_PROF_SM_UTIL_RATIO"),
    Signal.TENSOR_ACTIVITY: _profiled("DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
    Signal.DRAM_ACTIVITY: _profiled("DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    Signal.ENCODER: _codec("DCGM_FI_DEV_ENC_UTIL"),
    Signal.DECODER: _codec("DCGM_FI_DEV_DEC_UTIL"),
}
"""DCGM 4.6's names of the same fields, where the exporter's list of counters has them.

Not DCGM_FI_DEV_GPU_UTIL_RATIO: that is a percentage with DCGM 4.6 and a ratio with 4.7, and no
series says which.
"""

TO_NAME_PODS = (
    "set DCGM_EXPORTER_KUBERNETES=true for it; where device ids are names, as on GKE, also "
    "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE=device-name, and with ResourceClaims "
    "KUBERNETES_ENABLE_DRA=true"
)
AUTO_CONVENTIONS = model.conventions(LABELS, _ANY, _OLD_NAMES)
"""dcgm-exporter's series of any release; of two metrics the average before the sample."""
PROFILES = {
    "dcgm-exported": Profile(
        "dcgm-exporter, scraped without honor_labels",
        model.conventions(model.PLAIN, _SAMPLES_FIRST),
        to_name_pods=TO_NAME_PODS,
    ),
    "dcgm": Profile(
        "dcgm-exporter, scraped with honor_labels or by GKE's managed collection",
        model.conventions(model.PLAIN, _SAMPLES_FIRST),
        to_name_pods=TO_NAME_PODS,
    ),
    "dcgm-prof": Profile(
        "dcgm-exporter, profiling metrics alone",
        model.conventions(model.PLAIN, {**_ANY, Signal.UTILIZATION: Measure((ENGINE,))}),
        to_name_pods=TO_NAME_PODS,
    ),
    "dcgm-old": Profile(
        "dcgm-exporter before 2.0, or with its old namespace",
        model.conventions(LABELS, _SAMPLES_FIRST, _OLD_NAMES),
        to_name_pods=TO_NAME_PODS,
    ),
    "acs": Profile("Alibaba Cloud ACS GPU pods", model.conventions(model.PLAIN, _ACS)),
}
"""The parts of what `auto` reads of dcgm-exporter."""
RATIO = Profile(
    "dcgm-exporter with counters by the names of DCGM 4.6",
    model.conventions(model.PLAIN, _RATIO),
    to_name_pods=TO_NAME_PODS,
)
LOWER = Profile(
    "dcgm-exporter with names in lower case",
    model.conventions(LABELS, model.renamed(_ANY, str.lower)),
    to_name_pods=TO_NAME_PODS,
)
