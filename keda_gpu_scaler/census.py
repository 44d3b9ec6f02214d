"""PromQL texts about what there is at all: GPUs, whoever has them, and exporters.

Pure text. These are asked now and then only.
"""

from collections.abc import Iterable, Iterator

from keda_gpu_scaler import profiles
from keda_gpu_scaler.profiles import Way
from keda_gpu_scaler.query import alternatives, marked
from keda_gpu_scaler.spec import Signal

EXPORTER_LABEL = "exporter"
"""Names the exporter that a row of `exporters` has found."""
STATE_LABEL = "state"
"""Marks the rows of `gpus`: reported or busy."""


def gpus(uuids: Iterable[str]) -> str:
    """Return the query for which of these GPUs are reported at all, and which are busy without pod.

    A row has no pod when no label names one, or when `pod` is the exporter's own, which is what
    Prometheus attaches to idle GPUs: then `up` carries the same pod. A GPU has no pod when no row
    of it has one: where GPUs are shared, exporters show the device itself beside each pod's copy.
    """
    matched = alternatives(uuids)
    return " or ".join(
        branch for label in profiles.BOARD_LABELS for branch in _gpu_states(label, matched)
    )


def exporters() -> str:
    """Return the query for which exporters beside dcgm-exporter show pods at all."""
    return " or ".join(
        marked(f"group({_shown(way)})", EXPORTER_LABEL, name)
        for name in profiles.DETECTED
        for way in profiles.ways(name, Signal.UTILIZATION)
    )


def _shown(way: Way) -> str:
    names = "|".join(metric.name for metric in way.measure.metrics)
    absent = "".join(f',{label}=""' for label in way.labels.absent)
    return f'{{__name__=~"{names}",{way.labels.namespace}!="",{way.labels.pod}!=""{absent}}}'


def _gpu_states(label: str, matched: str) -> Iterator[str]:
    names = "|".join(sorted(profiles.UTILIZATION_METRICS))
    gpu = f'__name__=~"{names}",{label}=~{matched}'
    no_pod = ",".join([gpu, *(f'{name}=""' for name in profiles.POD_LABELS if name != "pod")])
    unmapped = (
        f'({{{no_pod},pod=""}} or ({{{no_pod},pod!=""}} and on (job, instance, namespace, pod) up))'
    )
    mapped = f"({{{gpu}}} unless {unmapped})"
    busy = f"{unmapped} > 0 unless on ({label}, GPU_I_ID) {mapped}"
    yield marked(f"group by ({label}) ({busy})", STATE_LABEL, "busy")
    yield marked(f"group by ({label}) ({{{gpu}}})", STATE_LABEL, "reported")
