"""What this process writes, so that nothing waits for a reader and nothing fails because of one.

A container's log is a pipe that another process reads: it can be closed or full, and so can the
disk behind it. Lines wait in a bounded queue for a thread that writes them. What finds no room in
the queue, and what cannot be written, is dropped and counted.
"""

import contextlib
import io
import itertools
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TextIO, cast

WAITING_BYTES = 4 * 1024 * 1024
"""About ten thousand lines: what a thousand triggers have to say when they begin, and more."""
LONGEST_BYTES = 32 * 1024
"""The longest line; one beyond it is cut off."""
_STDERR = 2


def _encoded(text: str) -> bytes:
    # What UTF-8 cannot hold, half of a surrogate pair, can come from outside.
    return text.encode("utf-8", "backslashreplace")


class LineWriter(io.TextIOBase):
    """Writes lines in order, in a thread of its own; `write` neither waits nor fails."""

    def __init__(
        self,
        descriptor: int,
        on_dropped: Callable[[int], None],
        waiting_bytes: int = WAITING_BYTES,
    ) -> None:
        """Start the thread.

        Args:
            descriptor: the file descriptor to write to.
            on_dropped: is called in the thread with the number of all lines dropped so far, once
                writing works again. It may write a line.
            waiting_bytes: how much may wait to be written.
        """
        self._descriptor, self._on_dropped = descriptor, on_dropped
        self._waiting_bytes = waiting_bytes
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._is_finishing = False
        self._is_torn = False
        self._dropped = self._told = 0
        # Its lock can be taken twice: garbage that is collected meanwhile may log as well.
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Queue one line, with its end; drop it if the queue is full."""
        line = _encoded(text)
        if len(line) > LONGEST_BYTES:
            line = line[: LONGEST_BYTES - 1] + b"\n"
        with self._changed:
            if self._bytes + len(line) > self._waiting_bytes:
                self._dropped += 1
            else:
                self._waiting.append(line)
                self._bytes += len(line)
                self._changed.notify()
        return len(text)

    def dropped(self) -> int:
        """Return how many lines were dropped so far."""
        return self._dropped

    def finish(self, seconds: float) -> None:
        """Write what waits, but wait for it no longer than this. Nothing is written afterwards."""
        with self._changed:
            self._is_finishing = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while lines := self._take():
            lost = self._lost(lines)
            with self._changed:
                self._bytes -= sum(map(len, lines))
                self._dropped += lost
            if not lost and self._dropped != self._told:
                self._told = self._dropped
                self._on_dropped(self._told)

    def _take(self) -> list[bytes]:
        """Wait for lines; return none if everything is written and no more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_finishing)
            taken, self._waiting = self._waiting, []
            return taken

    def _lost(self, lines: Sequence[bytes]) -> int:
        """Write lines, all at once: after each write the thread waits for its turn again.

        Returns:
            How many of them could not be written as a whole.
        """
        if self._is_torn:  # half a line is there already
            lines = [b"\n" + lines[0], *lines[1:]]
        text = b"".join(lines)
        written = self._written(text)
        if written:
            self._is_torn = not text[:written].endswith(b"\n")
        return sum(end > written for end in itertools.accumulate(map(len, lines)))

    def _written(self, text: bytes) -> int:
        """Write until everything is written or nothing can be; return the number of bytes."""
        written = 0
        with contextlib.suppress(OSError):
            while written < len(text):
                try:
                    written += os.write(self._descriptor, memoryview(text)[written:])
                except BlockingIOError:  # another process made the pipe so
                    room = select.poll()
                    room.register(self._descriptor, select.POLLOUT)
                    room.poll()
        return written


class _ErrorOutput(io.TextIOBase):
    """Python's error output: what cannot be written at once is lost."""

    def fileno(self) -> int:
        return _STDERR

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            os.write(_STDERR, _encoded(text))
        return len(text)


def free_error_output() -> None:
    """Let nothing wait for a reader of the error output, or fail because of it.

    gRPC's library writes there from its own threads, a line for each TLS handshake that fails, and
    Python its last words. They are not queued: the process may end with them.
    """
    sys.stderr = cast("TextIO", _ErrorOutput())
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.fstat(_STDERR).st_mode):
            # Opened again, because others may share this end of the pipe and want to wait.
            opened = os.open(f"/proc/self/fd/{_STDERR}", os.O_WRONLY | os.O_NONBLOCK)
            os.dup2(opened, _STDERR)
            os.close(opened)
