"""What the simulated devices show at one instant, before any exporter names it.

Pure. The numbers are those of the card; names, labels and units are each exporter's own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from keda_gpu_scaler.simulator import cluster, devices

MODEL = "NVIDIA H100 80GB HBM3"
MEMORY_MIB = 81559
"""The framebuffer memory of a GPU."""
_MEMORY_IN_USE = 0.6


@dataclass(frozen=True, slots=True)
class Holder:
    """The container that holds a device."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One device at one instant."""

    device: devices.Device
    host: str
    percent: float
    holder: Holder | None
    """None: no pod holds the device."""

    @property
    def uuid(self) -> str:
        """The GPU's UUID."""
        return cluster.uuid(f"{self.host}/{self.device.gpu}")

    @property
    def memory_used_mib(self) -> int:
        """Used memory: a model stays in memory as long as its pod exists, busy or not."""
        return int(MEMORY_MIB * _MEMORY_IN_USE) if self.holder else 0

    @property
    def celsius(self) -> int:
        """The temperature: it rises with the load."""
        return round(30 + 0.4 * self.percent)

    @property
    def watts(self) -> float:
        """The power: from 70 W without load to 700 W."""
        return round(70 + 6.3 * self.percent, 3)


@dataclass(frozen=True, slots=True)
class Field:
    """One metric of an exporter."""

    name: str
    help: str
    value: Callable[[Reading], float]


def taken(shown: cluster.Simulated, now: float, nodes: list[devices.Node]) -> Iterator[Reading]:
    """Yield the readings of all devices of these nodes, in the order of the nodes and GPUs."""
    held = dict(_held(shown, now))
    for node in nodes:
        for device in node.devices:
            percent, holder = held.get(device, (0, None))
            yield Reading(device, node.host, percent, holder)


def _held(
    simulated: cluster.Simulated, now: float
) -> Iterator[tuple[devices.Device, tuple[float, Holder]]]:
    for (namespace, name), workload in simulated.workloads.items():
        for pod, percent in workload.percents(now):
            holder = Holder(namespace, pod.name, pod.container or name)
            for device in pod.devices:
                yield device, (percent, holder)
