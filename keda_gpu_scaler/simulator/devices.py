"""The GPUs of a simulated node, and their assignment to pods.

A node has as many GPUs as its pods ever needed at once, plus the spare ones it started with. GPUs
are never removed.
"""

import heapq
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """A GPU for one container."""

    node: int
    gpu: int


@dataclass(slots=True)
class Node:
    """One node's GPUs; the lowest free one is assigned first."""

    index: int
    spare: int = 0
    name: str = ""
    """The name of a real node; empty: a name is generated."""
    devices: list[Device] = field(default_factory=list)
    _free: list[Device] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Add the spare GPUs."""
        self.fill(self.spare)

    @property
    def host(self) -> str:
        """The node's name."""
        return self.name or f"gpu-node-{self.index}"

    @property
    def taken(self) -> int:
        """The number of GPUs that pods hold."""
        return len(self.devices) - len(self._free)

    def fill(self, gpus: int) -> None:
        """Add GPUs until the node has this many."""
        while len(self.devices) < gpus:
            device = Device(self.index, len(self.devices))
            self.devices.append(device)
            heapq.heappush(self._free, device)

    def take(self, count: int) -> tuple[Device, ...]:
        """Assign GPUs; add some to the node if too few are free."""
        self.fill(self.taken + count)
        return tuple(heapq.heappop(self._free) for _ in range(count))

    def give_back(self, devices: tuple[Device, ...]) -> None:
        """Take GPUs back from a pod that is gone."""
        for device in devices:
            heapq.heappush(self._free, device)
