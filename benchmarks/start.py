"""What a start costs: CPU time until a process listens, and what it then has in memory.

The scaler with its defaults and one Prometheus, which nobody has asked for anything yet; next to it
the echo server, and a bare server with the libraries that any scaler in Python needs. All three are
started in turns. Nothing is compiled during a start: an image has its byte code, and so has an
installed package from its second start on.
"""

import compileall
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks import processes
from benchmarks.comparison import Detail, Goal, Measured, Plan, Row
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


async def measure(_directory: Path, plan: Plan) -> Measured:
    """Start each server once a round."""
    starts = await each(plan.rounds)
    return Measured(rows(starts), [detail(starts)], asdict(starts))


def rows(starts: Starts) -> list[Row]:
    """Return CPU time and memory, which have limits of their own."""
    return [
        Row(
            key="start.cpu",
            name="a start: CPU time until it listens",
            unit="s",
            measured=starts.cpu_seconds[SCALER],
            reference_name=ECHO,
            reference=starts.cpu_seconds[ECHO],
            goal=Goal.FIGURE_AT_MOST,
            limit=0.8,
        ),
        Row(
            key="start.resident",
            name="a start: resident memory",
            unit="MiB",
            measured=starts.resident_mib[SCALER],
            reference_name=ECHO,
            reference=starts.resident_mib[ECHO],
            goal=Goal.FIGURE_AT_MOST,
            limit=64.0,
        ),
    ]


def detail(starts: Starts) -> Detail:
    """Return what the start of each server takes, the medians of the rounds."""
    cells = [
        [name, f"{median(used):.2f} s", f"{median(starts.resident_mib[name]):.0f} MiB"]
        for name, used in starts.cpu_seconds.items()
    ]
    return Detail("start", "What a start takes", ["a start", "CPU time", "resident"], cells)


async def each(rounds: int) -> Starts:
    """Return what the starts of each server took.

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
