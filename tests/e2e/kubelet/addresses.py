"""Which loopback address belongs to the made-up address of a pod.

Endpoints may not be on loopback, and pods can listen nowhere else: 10.x.y.z is played by 127.x.y.z.
"""

import itertools
import os
from collections.abc import Iterator

_FIRST_NETWORK, _NETWORKS = 100, 100
"""10.100.0.0 and above, which no Service has, up to 10.199.255.255."""
_PODS = range(1, 255)


def pod_addresses() -> Iterator[str]:
    """Return addresses for one pod after the other, none of which another kubelet gives away."""
    high, low = divmod(os.getpid(), 256)
    network = f"10.{_FIRST_NETWORK + high % _NETWORKS}.{low}"
    return (f"{network}.{number}" for number in itertools.cycle(_PODS))


def loopback(address: str) -> str:
    """Return where the processes of a pod with this address listen."""
    return "127." + address.removeprefix("10.")


def is_of_a_pod(host: str) -> bool:
    """Tell whether this is an address that a kubelet here gives to pods."""
    parts = host.split(".")
    networks = range(_FIRST_NETWORK, _FIRST_NETWORK + _NETWORKS)
    return len(parts) == 4 and parts[0] == "10" and parts[1] in map(str, networks)
