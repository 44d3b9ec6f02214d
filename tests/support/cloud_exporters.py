"""Pages of Alibaba Cloud's two exporters for simulated GPUs, made of the recorded pages.

Each GPU is shown as the recorded page shows one with a pod, or one without; its load is its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from keda_gpu_scaler.simulator.cluster import Gpu
from tests.support import exporters


class _Names(NamedTuple):
    """What an exporter calls things."""

    board: str
    number: str
    namespace: str
    pod: str
    loads: frozenset[str]
    """Its metrics of the load in percent; what the others show stays as it was recorded."""


EXPORTERS: Mapping[str, _Names] = {
    "ack-dcgm-custom": _Names(
        board="UUID",
        number="gpu",
        namespace="NamespaceName",
        pod="PodName",
        loads=frozenset({"DCGM_CUSTOM_PROCESS_SM_UTIL", "DCGM_FI_DEV_GPU_UTIL"}),
    ),
    "ack-legacy": _Names(
        board="uuid",
        number="minor_number",
        namespace="namespace_name",
        pod="pod_name",
        loads=frozenset({"nvidia_gpu_duty_cycle"}),
    ),
}
"""By the names of their profiles."""


def page(simulated: Iterable[Gpu], exporter: str) -> bytes:
    """Return the page of these GPUs, by the name of the profile that reads it."""
    return "".join(_lines(list(simulated), exporter)).encode()


def _lines(simulated: list[Gpu], exporter: str) -> Iterator[str]:
    names = EXPORTERS[exporter]
    for family in text_string_to_metric_families(exporters.page(exporter)):
        of_boards = [one for one in family.samples if names.board in one.labels]
        held = next((one for one in of_boards if one.labels.get(names.pod)), None)
        free = next((one for one in of_boards if not one.labels.get(names.pod)), None)
        for gpu in simulated:
            recorded = (held or free) if gpu.pod else free
            if recorded is not None:
                labels = {**recorded.labels, names.board: gpu.uuid, names.number: str(gpu.index)}
                if gpu.pod and recorded is held:
                    labels |= {names.namespace: gpu.pod.workload.namespace, names.pod: gpu.pod.name}
                value = round(gpu.percent) if family.name in names.loads else recorded.value
                shown = ",".join(f'{label}="{text}"' for label, text in labels.items())
                yield f"{family.name}{{{shown}}} {value}\n"
