"""What the rows of several exporters have in common: units, and labels as Prometheus keeps them.

Pure.
"""

from collections.abc import Mapping
from dataclasses import replace

from keda_gpu_scaler.profiles.model import Labels, Measure, Metric, Part, Scheme
from keda_gpu_scaler.spec import Signal

MIB = 1024 * 1024
_MEMORY_LIMIT_MIB = 4 * MIB
WATTS_LIMIT = 10_000
CELSIUS_LIMIT = 200
ACK_POD = "PodName"

EXPORTED = Labels("exported_namespace", "exported_pod")
"""What Prometheus makes of `namespace` and `pod` where its target has them too."""
PLAIN = Labels(
    "namespace", "pod", absent=("exported_pod", "pod_name", ACK_POD), may_name_exporter=True
)


def in_mebibytes(name: str, part: Part = Part.VALUE) -> Metric:
    """Return a metric of memory that the exporter shows in MiB."""
    return Metric(name, limit=_MEMORY_LIMIT_MIB, part=part)


def in_bytes(name: str, part: Part = Part.VALUE) -> Metric:
    """Return a metric of memory that the exporter shows in bytes."""
    return Metric(name, limit=_MEMORY_LIMIT_MIB * MIB, factor=1 / MIB, part=part)


def percent(name: str, limit: float = 100) -> Measure:
    """Return a signal that the exporter shows in percent."""
    return Measure((Metric(name, limit=limit),))


def watts(*names: str) -> Measure:
    """Return the power of a board: of the first of these metrics that is there."""
    return Measure(tuple(Metric(name, limit=WATTS_LIMIT) for name in names), per_board=True)


def celsius(*names: str) -> Measure:
    """Return the temperature of a board: of the first of these metrics that is there."""
    return Measure(tuple(Metric(name, limit=CELSIUS_LIMIT) for name in names), per_board=True)


def memory(used: Metric, total: Metric) -> Mapping[Signal, Measure]:
    """Return both signals of memory, from what is used and from what there is."""
    return {
        Signal.MEMORY: Measure((replace(used, part=Part.USED), replace(total, part=Part.TOTAL))),
        Signal.MEMORY_USED: Measure((used,)),
    }


def both(plain: Labels, measures: Mapping[Signal, Measure]) -> tuple[Scheme, ...]:
    """Return the schemes of an exporter that shows `namespace` and `pod`, for either scraping."""
    names = (EXPORTED.namespace, EXPORTED.pod)
    exported = replace(plain, namespace=names[0], pod=names[1], absent=(), may_name_exporter=False)
    return Scheme(exported, measures), Scheme(plain, measures)
