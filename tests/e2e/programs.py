"""Programs that run beside a test: found, started with a log of their own, ended by their handle.

A program leads a process group, so that ending it ends all that it started. It also ends by itself
after a bounded time: a test run that was killed leaves nothing behind for ever.
"""

import functools
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.e2e import generation
from tests.support.processes import bounded, until

ROOT = Path(__file__).parents[2]
LIFE_SECONDS = 3000
"""Longer than the slowest run of all scenarios, much shorter than for ever."""
STOPPED_WITHIN_SECONDS = 30.0
_LOG_TAIL_BYTES = 3000
CLUSTER = (
    "etcd",
    *generation.kubernetes().values(),
    *generation.keda().values(),
    "kwok",
    "prometheus",
)
"""What runs under every scenario, by the names in `tools/programs.py`."""


@dataclass(slots=True)
class Program:
    """One process, which can be ended and started again."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; its output goes to the end of its log."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*bounded(LIFE_SECONDS), *self.command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"], "HOME": str(self.log.parent), **self.environment},
                start_new_session=True,
            )

    async def start_serving(self, url: str, within_seconds: float) -> None:
        """Start it, and wait until this address of its own answers with success."""
        self.start()
        async with httpx.AsyncClient(trust_env=False) as client:
            answers = functools.partial(self._answers, client, url)
            await until(answers, within_seconds, f"{self.name} is ready")

    def stop(self) -> None:
        """Ask it to end, as Kubernetes asks a container, and wait; kill it if it does not."""
        if self.running and self._process is not None:
            # One signal to one process: `timeout` passes it on, and a second one means "at once".
            self._process.terminate()
        try:
            self._wait()
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self.running and self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._wait()

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self) -> str:
        return self.output()[-_LOG_TAIL_BYTES:]

    async def _answers(self, client: httpx.AsyncClient, url: str) -> bool:
        if not self.running:
            raise RuntimeError(f"{self.name} ended while it started:\n{self.tail()}")
        try:
            return (await client.get(url)).is_success
        except httpx.TransportError:
            return False

    def _wait(self) -> None:
        if self._process is not None:
            self._process.wait(STOPPED_WITHIN_SECONDS)
