"""Servers as processes of their own: started, waited for and stopped by their handles.

A server logs where it listens in one JSON line; nothing here waits for a fixed time.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

START_SECONDS = 30.0
STOP_SECONDS = 30.0
_PREFIX = "KEDA_GPU_SCALER_"
_LONGEST_LINE_BYTES = 1024 * 1024
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


class ServerError(Exception):
    """A server did not start, or answered wrongly."""


class Server:
    """A running server."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process, self.port = process, port

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """Return the CPU time of all its threads so far, in nanoseconds' resolution."""
        return time.clock_gettime(cpu_clock(self._process.pid))

    def memory(self) -> Memory:
        """Return what it has in memory."""
        return memory(Path(f"/proc/{self._process.pid}/status").read_text())


def cpu_clock(pid: int) -> int:
    """Return Linux's clock of the CPU time of a process; its files count in hundredths."""
    return ~pid << 3 | _SCHEDULED


def memory(status: str) -> Memory:
    """Return what the text of a /proc/PID/status says of memory."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Memory(*(int(lines[name].split()[0]) * _KIB for name in ("VmRSS", "VmHWM")))


@contextlib.asynccontextmanager
async def scaler(
    prometheus_url: str, more: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Server]:
    """Run `keda-gpu-scaler serve` with its defaults, and more settings, on this Prometheus."""
    settings = {
        "GRPC_ADDRESS": "127.0.0.1:0",
        "HTTP_ADDRESS": "127.0.0.1:0",
        "PROMETHEUS_URL": prometheus_url,
        **more,
    }
    chosen = {_PREFIX + name: value for name, value in settings.items()}
    async with _running("keda_gpu_scaler", "serve", settings=chosen) as server:
        yield server


@contextlib.asynccontextmanager
async def echo() -> AsyncIterator[Server]:
    """Run the server that does nothing but answer."""
    async with _running("benchmarks.echo", settings={}) as server:
        yield server


@contextlib.asynccontextmanager
async def _running(*module: str, settings: Mapping[str, str]) -> AsyncIterator[Server]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *module),
        env={**kept, **settings},
        limit=_LONGEST_LINE_BYTES,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    output = process.stdout or asyncio.StreamReader()
    reading: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(START_SECONDS):
            port = await _port(process, output)
        reading = asyncio.create_task(_drained(output), name=f"output of {module[0]}")
        yield Server(process, port)
    finally:
        await _stop(process)
        if reading is not None:
            await reading


async def _port(process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> int:
    async for line in output:
        port = listening_port(line)
        if port is not None:
            return port
    status = await process.wait()
    raise ServerError(f"a server ended with status {status} before it listened; see above")


def listening_port(line: bytes) -> int | None:
    """Return the gRPC port if this line of a log says that a server listens."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    port = said.get("grpc_port") if isinstance(said, dict) else None
    return port if isinstance(port, int) else None


async def _drained(output: asyncio.StreamReader) -> None:
    """Read on: a server stops at a full pipe when its log is not read."""
    async for _line in output:
        pass


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
