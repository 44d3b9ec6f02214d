"""Processes beside a test, each with a log of its own: a port, a bounded life, and bounded waits.

A program leads a process group, so that ending it ends all that it started. It also ends by itself
after a bounded time: a test run that was killed leaves nothing behind for ever.
"""

import asyncio
import contextlib
import functools
import itertools
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

_PORTS: Sequence[int] = range(10_000, 32_768)
"""Below those that Linux takes for outgoing connections, which would win the race for a port."""
_FIRST = os.getpid() * 8699 % len(_PORTS)
"""Test processes that run at the same time have neighbouring numbers: a golden section of all ports
apart here, so that no few of them begin near each other."""
_LOG_TAIL_BYTES = 3000
_ports = itertools.cycle([*_PORTS[_FIRST:], *_PORTS[:_FIRST]])


def free_port() -> int:
    """Return a port of 127.0.0.1 that was free a moment ago, and is not given again soon."""
    for port in _ports:
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("the ports go round for ever")


def bounded(seconds: float) -> tuple[str, ...]:
    """Return the words that make a command end by itself, where the system has such a program.

    In the foreground, because `timeout` otherwise passes a signal on twice, to the process and to
    its group, and a second one means "at once" to many programs.
    """
    program = shutil.which("timeout")
    return (program, "--foreground", "--kill-after=5", f"{seconds:g}") if program else ()


def inner(pid: int) -> int:
    """Return the process that a bounded command runs; itself where nothing bounds it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


async def until(
    condition: Callable[[], Awaitable[bool]], within_seconds: float, claim: str
) -> None:
    """Ask until a condition holds; fail with the claim when it does not within this time."""
    deadline = asyncio.get_running_loop().time() + within_seconds
    while not await condition():
        if asyncio.get_running_loop().time() > deadline:
            message = f"not within {within_seconds:g} s: {claim}"
            raise TimeoutError(message)
        await asyncio.sleep(0.05)


@dataclass(slots=True)
class Program:
    """One process, which can be ended and started again."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    life_seconds: float = 3000
    """Longer than the slowest run of all scenarios, much shorter than for ever."""
    stops_within_seconds: float = 30
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return inner(self._process.pid)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; its output goes to the end of its log."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*bounded(self.life_seconds), *self.command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"], "HOME": str(self.log.parent), **self.environment},
                start_new_session=True,
            )

    async def start_serving(self, url: str, within_seconds: float) -> None:
        """Start it, and wait until this address of its own answers with success."""
        self.start()
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
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
            self._process.wait(self.stops_within_seconds)
