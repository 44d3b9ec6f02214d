"""Helpers for processes of the tests' own: a port, an end of life, and a bounded wait."""

import asyncio
import contextlib
import itertools
import os
import shutil
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

_PORTS: Sequence[int] = range(10_000, 32_768)
"""Below those that Linux takes for outgoing connections, which would win the race for a port."""
_FIRST = os.getpid() * 211 % len(_PORTS)
"""Test processes that run at the same time have neighbouring numbers: far from each other here."""
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
