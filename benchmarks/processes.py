"""Servers as processes of their own, with a log in a folder: what they use is read from outside."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from testbed.processes import Program, free_port

START_SECONDS = 30.0
_KIB = 1024
_SCHEDULED = 2
"""CPUCLOCK_SCHED of Linux: all CPU time, user's and system's."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process has in memory, as Linux counts it."""

    resident_bytes: int
    """Now."""
    peak_bytes: int
    """The most so far."""


@contextlib.contextmanager
def idle_loops() -> Iterator[None]:
    """Keep each core awake by a loop of the lowest priority, which yields to everything else."""
    endless = (sys.executable, "-c", "import os\nos.nice(19)\nwhile True: pass")
    loops = [subprocess.Popen(endless) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class ServerError(Exception):
    """A server answered wrongly."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    program: Program
    port: int

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """Return the CPU time of all its threads so far, in nanoseconds' resolution."""
        return time.clock_gettime(cpu_clock(self.program.pid))

    def memory(self) -> Memory:
        """Return what it has in memory."""
        return memory(Path(f"/proc/{self.program.pid}/status").read_text())


def cpu_clock(pid: int) -> int:
    """Return Linux's clock of the CPU time of a process; its files count in hundredths."""
    return ~pid << 3 | _SCHEDULED


def memory(status: str) -> Memory:
    """Return what the text of a /proc/PID/status says of memory."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Memory(*(int(lines[name].split()[0]) * _KIB for name in ("VmRSS", "VmHWM")))


@contextlib.asynccontextmanager
async def scaler(
    directory: Path, prometheus_url: str, more: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Server]:
    """Run `keda-gpu-scaler serve` with its defaults, and more settings, on this Prometheus."""
    port, http = free_port(), f"127.0.0.1:{free_port()}"
    settings = {
        "GRPC_ADDRESS": f"127.0.0.1:{port}",
        "HTTP_ADDRESS": http,
        "PROMETHEUS_URL": prometheus_url,
        **more,
    }
    program = _program(
        directory,
        "keda_gpu_scaler",
        "serve",
        **{f"KEDA_GPU_SCALER_{name}": value for name, value in settings.items()},
    )
    try:
        await program.start_serving(f"http://{http}/readyz", START_SECONDS)
        yield Server(program, port)
    finally:
        await asyncio.to_thread(program.stop)


@contextlib.asynccontextmanager
async def echo(directory: Path) -> AsyncIterator[Server]:
    """Run the server that does nothing but answer: a channel to it may have to wait."""
    port = free_port()
    program = _program(directory, "benchmarks.echo", str(port))
    program.start()
    try:
        yield Server(program, port)
    finally:
        await asyncio.to_thread(program.stop)


def _program(directory: Path, *module: str, **environment: str) -> Program:
    command = [sys.executable, "-m", *module]
    return Program(module[0], command, directory / f"{module[0]}.log", environment)
