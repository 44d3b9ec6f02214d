"""The table of exporters, one row each: whose series can be read, and how.

Pure data; the documentation's table is compared with it.
"""

from collections.abc import Mapping

from keda_gpu_scaler.profiles import clouds, dcgm, vendors
from keda_gpu_scaler.profiles.model import Profile

PROFILES: Mapping[str, Profile] = {
    "dcgm-exported": Profile("dcgm-exporter, scraped without honor_labels", dcgm.EXPORTED_SCHEMES),
    "dcgm": Profile(
        "dcgm-exporter, scraped with honor_labels or by GKE's managed collection",
        dcgm.PLAIN_SCHEMES,
    ),
    "dcgm-prof": Profile("dcgm-exporter, profiling metrics alone", dcgm.ENGINE_SCHEMES),
    "dcgm-old": Profile("dcgm-exporter before 2.0, or with its old namespace", dcgm.OLD_SCHEMES),
    "ack-dcgm-custom": Profile(
        "Alibaba Cloud ACK's DCGM exporter, per process", clouds.ACK_CUSTOM, verified=False
    ),
    "acs": Profile("Alibaba Cloud ACS GPU pods", dcgm.ACS_SCHEMES),
    "ack-legacy": Profile("Alibaba Cloud's ack-prometheus-gpu-exporter", clouds.ACK_LEGACY),
    "mindprince": Profile("mindprince/nvidia_gpu_prometheus_exporter", ()),
    "cadvisor-accel": Profile("the kubelet's cAdvisor, Kubernetes up to 1.24", clouds.CADVISOR),
    "amd": Profile("AMD device-metrics-exporter", vendors.AMD),
    "intel-xpum-v1": Profile("Intel XPU Manager 1", vendors.XPUM),
    "otel-hw": Profile(
        "OpenTelemetry's hw.gpu metrics, Intel xpumd; only if enriched with the pod", vendors.OTEL
    ),
    "nvidia-smi": Profile("utkuozdemir/nvidia_gpu_exporter", ()),
    "hami-legacy": Profile("HAMi's monitor, older names", vendors.HAMI_LEGACY),
    "hami": Profile("HAMi's monitor since 2.9", vendors.HAMI),
    "gke-system": Profile("GKE's system metrics", clouds.GKE, verified=False),
    "openshift-rules": Profile("OpenShift's recording rules over dcgm-exporter", clouds.OPENSHIFT),
}
