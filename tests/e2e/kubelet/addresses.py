"""Which loopback address belongs to the made-up address of a pod.

Endpoints may not be on loopback, and pods can only listen there: 127.x.y.z stands in for 10.x.y.z.
"""

import itertools
import os
from collections.abc import Iterator

_FIRST_NETWORK, _NETWORKS = 100, 100
"""From 10.100.0.0, above all Services, up to 10.199.255.255."""
_PODS = range(1, 255)


def pod_addresses() -> Iterator[str]:
    """Return addresses for successive pods, none of which another kubelet assigns."""
    high, low = divmod(os.getpid(), 256)
    network = f"10.{_FIRST_NETWORK + high % _NETWORKS}.{low}"
    return (f"{network}.{number}" for number in itertools.cycle(_PODS))


def loopback(address: str) -> str:
    """Return where the processes of a pod with this address listen."""
    return "127." + address.removeprefix("10.")


def is_of_a_pod(host: str) -> bool:
    """Tell whether this is an address that a kubelet here assigns to pods."""
    parts = host.split(".")
    networks = range(_FIRST_NETWORK, _FIRST_NETWORK + _NETWORKS)
    return len(parts) == 4 and parts[0] == "10" and parts[1] in map(str, networks)
