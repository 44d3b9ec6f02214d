"""The demo's child processes: how they are started, read and stopped.

The output of a child is a stream of lines that should not end. The last lines are kept, to explain
an unexpected end. One of the server's lines gives its ports.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeVar

from keda_gpu_scaler.simulator.demo import scenario

_T = TypeVar("_T")
_LONGEST_LINE_BYTES = 1024 * 1024
_LINES_KEPT = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a child may take; on a busy machine a Python process starts within seconds."""

    start_seconds: float = 20
    stop_seconds: float = 10


class Child:
    """One running process and its last lines."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, limits: Limits) -> None:
        """Read the output of a process; `name` is its name in messages."""
        self._name = name
        self._process = process
        self._limits = limits
        self._last: deque[str] = deque(maxlen=_LINES_KEPT)

    async def first(self, read: Callable[[str], _T | None]) -> _T:
        """Return the first result of `read` that is not None, line by line."""
        try:
            async with asyncio.timeout(self._limits.start_seconds):
                async for line in self._lines():
                    if (found := read(line)) is not None:
                        return found
        except TimeoutError as error:
            raise scenario.DemoError(self._story("did not start in time")) from error
        raise await self._ended()

    async def follow(self, hear: Callable[[str], None]) -> NoReturn:
        """Pass on every line; DemoError when the output ends."""
        async for line in self._lines():
            hear(line)
        raise await self._ended()

    async def _lines(self) -> AsyncIterator[str]:
        output = self._process.stdout or asyncio.StreamReader()
        while line := await output.readline():
            text = line.decode(errors="replace").rstrip()
            self._last.append(text)
            yield text

    async def wait(self) -> int:
        """Return the exit status of the process, once its output has ended as well."""
        await self._process.communicate()
        return await self._process.wait()

    async def _ended(self) -> scenario.DemoError:
        return scenario.DemoError(self._story(f"ended with status {await self.wait()}"))

    def _story(self, what: str) -> str:
        return "\n    ".join([f"{self._name} {what}; its last lines:", *self._last])

    async def stop(self) -> None:
        """Ask the process to end; kill it if it does not, or if this wait is cancelled."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.stop_seconds):
                    await self._process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


@contextlib.asynccontextmanager
async def running(
    name: str, command: Sequence[str], environment: Mapping[str, str], limits: Limits | None = None
) -> AsyncIterator[Child]:
    """Run a command for as long as the block lasts."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        limit=_LONGEST_LINE_BYTES,
        stderr=asyncio.subprocess.STDOUT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    child = Child(name, process, limits or Limits())
    try:
        yield child
    finally:
        await child.stop()


class Ports(NamedTuple):
    """Where the server listens."""

    grpc: int
    http: int


def ports(line: str) -> Ports | None:
    """Return the ports from the line that says that the server listens."""
    said = _event(line, "serve.listening")
    grpc, http = said.get("grpc_port"), said.get("http_port")
    return Ports(grpc, http) if isinstance(grpc, int) and isinstance(http, int) else None


def simulator_url(line: str) -> str | None:
    """Return the simulator's address from the line that names it."""
    found = line.removeprefix("listening on ")
    return None if found == line else found.strip()


def _event(line: str, name: str) -> dict[str, object]:
    """Return the keys of a JSON log line of this event; empty for any other line."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) and said.get("event") == name else {}
