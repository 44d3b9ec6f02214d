"""One bash in which commands are typed one after the other, as a reader of a page types them.

Variables and functions stay from one to the next, and a command that fails ends nothing: the next
one can be typed all the same.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tests.e2e.shell import Done, Shell

_LIFE_SECONDS = 900
_LINE_BYTES = 1024 * 1024
"""Logs have long lines."""
_TIMED_OUT, _CLOSED = 124, 129
"""Exit statuses of `timeout` and of a shell that lost its terminal."""
_PREPARED = "set -E\ntrap 'failed=$?' ERR\n"
"""Any failure is remembered, in functions as well."""


@dataclass(slots=True)
class Terminal:
    """A bash that waits for the next command."""

    _process: asyncio.subprocess.Process

    async def type(self, commands: str, within_seconds: float) -> Done:
        """Type commands, and return how they ended: badly if one of them failed.

        If they do not end within this time their status is 124, and nothing more can be typed.
        """
        assert self._process.stdin is not None
        end = secrets.token_hex(8)
        # In a group, so that they read nothing of what is typed after them.
        script = f'failed=0\n{{\n{commands}\n}} </dev/null\necho; echo "{end} $failed"\n'
        self._process.stdin.write(script.encode())
        lines: list[str] = []
        try:
            async with asyncio.timeout(within_seconds):
                status = await self._read_until(end, lines)
        except TimeoutError:
            status = _TIMED_OUT
        return Done(commands, status, "".join(lines))

    async def _read_until(self, end: str, lines: list[str]) -> int:
        """Read lines until the one that tells how the commands ended."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            lines.append(line.decode(errors="replace"))
            if lines[-1].startswith(end):
                return int(lines.pop().split()[1])
        return _CLOSED


@contextlib.asynccontextmanager
async def terminal(shell: Shell) -> AsyncIterator[Terminal]:
    """Open one beside a shell, with its environment; it ends with the block."""
    process = await shell.bash(within_seconds=_LIFE_SECONDS, line_bytes=_LINE_BYTES)
    assert process.stdin is not None
    process.stdin.write(_PREPARED.encode())
    try:
        yield Terminal(process)
    finally:
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
