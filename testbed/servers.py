"""A real server for tests: started on a free port, stopped by its handle, with data of its own.

What it is, and what it can be asked, is in a module of its own for each kind. Every wait is
bounded, and so is the life of the process.
"""

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import httpx

from testbed import programs
from testbed.processes import Program, free_port

NAMES = ("prometheus", "prometheus-2", "victoria-metrics", "influxdb")
READY_WITHIN_SECONDS = 20.0
LIFE_SECONDS = 600.0
"""No test uses it longer; a test run that was killed leaves no server behind for ever."""


def chosen() -> list[str]:
    """Return the servers that SERVERS names; all if it is not set."""
    names = os.environ.get("SERVERS", " ".join(NAMES)).split()
    if unknown := set(names) - set(NAMES):
        message = f"SERVERS may hold {', '.join(NAMES)}, and not {', '.join(sorted(unknown))}"
        raise RuntimeError(message)
    return names


@dataclass(slots=True)
class Server:
    """One process with its data in a directory of the test."""

    PROGRAM: ClassVar[str]
    """The program's name in `testbed/programs.py`."""
    READY: ClassVar[str]
    STARTS_WITHIN_SECONDS: ClassVar[float] = READY_WITHIN_SECONDS
    STOPS_WITHIN_SECONDS: ClassVar[float] = 10.0

    directory: Path
    port: int = field(default_factory=free_port, kw_only=True)
    life_seconds: float = field(default=LIFE_SECONDS, kw_only=True)
    _program: Program | None = field(default=None, kw_only=True)
    _client: httpx.AsyncClient = field(
        default_factory=lambda: httpx.AsyncClient(trust_env=False, timeout=60), kw_only=True
    )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._program is not None
        return self._program.pid

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._client.aclose()

    async def start(self) -> None:
        """Start the process on the data of this directory and wait until it is ready."""
        self._configure()
        self._program = Program(
            self.PROGRAM,
            self._command(),
            self.log_file,
            self._environment(),
            self.life_seconds,
            self.STOPS_WITHIN_SECONDS,
        )
        await self._program.start_serving(f"{self.url}{self.READY}", self.STARTS_WITHIN_SECONDS)

    async def stop(self) -> None:
        """End the process and wait for it; kill it when it does not end by itself."""
        if self._program is not None:
            await asyncio.to_thread(self._program.stop)

    async def kill(self) -> None:
        """End the process at once, as a lost node does."""
        assert self._program is not None
        self._program.kill()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def _configure(self) -> None:
        """Write what the process reads when it starts."""
        raise NotImplementedError

    def _command(self) -> list[str]:
        return [programs.path(self.PROGRAM), *self._flags()]

    def _environment(self) -> dict[str, str]:
        """Return its environment beside PATH and HOME."""
        return {}

    def _flags(self) -> list[str]:
        raise NotImplementedError

    @property
    def log_file(self) -> Path:
        return self.directory / f"{self.PROGRAM}.log"
