"""The GPUs of a simulated node, whole or cut into MIG instances, and their assignment to pods.

A node has as many GPUs as its pods ever needed at once, plus the spare ones it started with. GPUs
are never removed, and a GPU that was cut into instances stays cut.
"""

import heapq
from dataclasses import dataclass, field

WHOLE = ""
"""The profile of a GPU that is not cut."""
FIRST_INSTANCE_ID = {1: 7, 2: 3, 3: 1, 4: 1, 7: 0}
"""The GPU_I_ID of the first instance, by compute slices (`nvidia-smi mig -lgipp`)."""
_SLICES_PER_GPU = 7


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """A device for one container: a GPU, or a MIG instance of one."""

    node: int
    gpu: int
    profile: str = WHOLE
    instance: int = 0
    """GPU_I_ID; has no meaning for a whole GPU."""

    @property
    def share(self) -> float:
        """The device's share of the card."""
        return slices(self.profile) / _SLICES_PER_GPU if self.profile else 1


def slices(profile: str) -> int:
    """Return the compute slices of a MIG profile: 3 for `3g.40gb`."""
    return int(profile.partition("g.")[0])


@dataclass(slots=True)
class Node:
    """One node's devices; the lowest free one is assigned first."""

    index: int
    spare: int = 0
    name: str = ""
    """The name of a real node; empty: a name is generated."""
    devices: list[Device] = field(default_factory=list)
    _free: dict[str, list[Device]] = field(default_factory=dict)
    _gpus: int = 0

    def __post_init__(self) -> None:
        """Add the spare GPUs."""
        self.fill(self.spare)

    @property
    def host(self) -> str:
        """The node's name."""
        return self.name or f"gpu-node-{self.index}"

    @property
    def taken(self) -> int:
        """The number of devices that pods hold."""
        return len(self.devices) - sum(len(free) for free in self._free.values())

    def fill(self, gpus: int) -> None:
        """Add whole GPUs until the node has this many."""
        while self._gpus < gpus:
            self._plug_in(WHOLE)

    def take(self, profile: str, count: int) -> tuple[Device, ...]:
        """Assign devices of one profile; add GPUs to the node if none is free."""
        return tuple(self._take_one(profile) for _ in range(count))

    def _take_one(self, profile: str) -> Device:
        if not self._free.get(profile):
            self._plug_in(profile)
        return heapq.heappop(self._free[profile])

    def give_back(self, devices: tuple[Device, ...]) -> None:
        """Take devices back from a pod that is gone."""
        for device in devices:
            heapq.heappush(self._free[device.profile], device)

    def _plug_in(self, profile: str) -> None:
        added = _cut(self.index, self._gpus, profile)
        self._gpus += 1
        self.devices.extend(added)
        for device in added:
            heapq.heappush(self._free.setdefault(profile, []), device)


def _cut(node: int, gpu: int, profile: str) -> list[Device]:
    if profile == WHOLE:
        return [Device(node, gpu)]
    first = FIRST_INSTANCE_ID[slices(profile)]
    count = _SLICES_PER_GPU // slices(profile)
    return [Device(node, gpu, profile, first + offset) for offset in range(count)]
