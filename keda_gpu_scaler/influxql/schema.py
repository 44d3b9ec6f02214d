"""Which measurement, field and tags of an InfluxDB say what. Values only.

Exporters' metrics come there in two usual ways: a measurement for each metric, or one measurement
with a field for each. Where neither names the metric, the numbers are utilization in percent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keda_gpu_scaler import profiles
from keda_gpu_scaler.profiles import Labels

METRIC = "{metric}"
"""Stands for the name of an exporter's metric."""
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
"""What the numbers are taken for where nothing names their metric."""


@dataclass(frozen=True, slots=True)
class Schema:
    """How samples are laid out."""

    measurement: str = METRIC
    """A name, or `METRIC`: there is a measurement for each metric."""
    field: str = "gauge"
    """A name, or `METRIC`: there is a field for each metric."""
    namespace_tag: str = "namespace"
    pod_tag: str = "pod"
    gpu_tag: str = "UUID"

    @property
    def names_metrics(self) -> bool:
        """Whether every metric of an exporter can be told from the others."""
        return METRIC in (self.measurement, self.field)

    @property
    def knows_uuids(self) -> bool:
        """Whether a GPU is named the same whoever holds it, and differently from all others."""
        return self.gpu_tag in profiles.BOARD_LABELS

    def measurements(self, metrics: Iterable[str]) -> list[str]:
        """Return the measurements that hold these metrics."""
        return sorted(metrics) if self.measurement == METRIC else [self.measurement]

    def fields(self, metrics: Iterable[str]) -> list[str]:
        """Return the fields that hold these metrics."""
        return sorted(metrics) if self.field == METRIC else [self.field]

    def metric(self, measurement: str, field: str) -> str:
        """Return the metric that a field of a measurement holds."""
        if not self.names_metrics:
            return UTILIZATION
        return measurement if self.measurement == METRIC else field

    def labels(self, tags: Mapping[str, str], labels: Labels) -> dict[str, str]:
        """Return tags under the names that an exporter's labels have, the pod's above all.

        What else could name a pod there is somebody else's: Telegraf adds the exporter's own.
        """
        meant = {
            labels.gpu[0]: tags.get(self.gpu_tag),
            labels.namespace: tags.get(self.namespace_tag),
            labels.pod: tags.get(self.pod_tag),
        }
        others = {name: text for name, text in tags.items() if name not in labels.absent}
        return others | {name: text for name, text in meant.items() if text}
