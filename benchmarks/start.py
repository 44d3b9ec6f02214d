"""What a start costs: CPU time until a process listens, and what it then has in memory.

The scaler with its defaults and one Prometheus, which nobody has asked for anything yet; next to it
the echo server, and a bare server with the libraries that any scaler in Python needs. All three are
started in turns. Nothing is compiled during a start: an image has its byte code, and so has an
installed package from its second start on.
"""

import compileall
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import processes
from benchmarks.processes import Server

SCALER, ECHO, BARE = "the scaler", "the echo server", "grpc.aio, httpx and pydantic-settings"
_NOWHERE = "http://127.0.0.1:9"
"""No start waits for a Prometheus, so there is none."""
_SERVERS: dict[str, Callable[[], AbstractAsyncContextManager[Server]]] = {
    SCALER: lambda: processes.scaler(_NOWHERE),
    ECHO: processes.echo,
    BARE: processes.bare,
}
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Starts:
    """One figure of each server for each round, by the server's name."""

    cpu_seconds: dict[str, list[float]]
    """CPU time of all threads from the start of the process until it listens."""
    resident_mib: dict[str, list[float]]
    """Resident memory at that moment: VmRSS, which counts pages shared with others as well."""


async def measure(rounds: int) -> Starts:
    """Start each server once a round.

    Args:
        rounds: how often each has its turn; one more at the beginning is not counted.
    """
    for package in ("benchmarks", "keda_gpu_scaler"):
        compileall.compile_dir(Path(__file__).parent.parent / package, quiet=1)
    starts = Starts({name: [] for name in _SERVERS}, {name: [] for name in _SERVERS})
    async for name, server in _started(rounds + 1):
        starts.cpu_seconds[name].append(server.cpu_seconds())
        starts.resident_mib[name].append(server.memory().resident_bytes / _MIB)
    for figures in (*starts.cpu_seconds.values(), *starts.resident_mib.values()):
        del figures[0]  # the first start of each reads its files from the disk
    return starts


async def _started(rounds: int) -> AsyncIterator[tuple[str, Server]]:
    """Yield each server in turns, while it listens."""
    for _ in range(rounds):
        for name, running in _SERVERS.items():
            async with running() as server:
                yield name, server
