"""Lines that wait for no reader: a writer on real pipes."""

import fcntl
import io
import os
import queue
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from keda_gpu_scaler.telemetry.output import LONGEST_BYTES, LineWriter
from tests.support.processes import until

HANG_SECONDS = 30.0
PIPE_BYTES = 4096
"""The smallest pipe that Linux has."""
LONG = "a" * 2 * PIPE_BYTES + "\n"
"""A line that hangs in the pipe until it is read."""


class Pipe:
    """A pipe with a name, which can have another reader after the first one is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        os.mkfifo(path)
        self.reader = self._opened()
        self.writer = path.open("wb", buffering=0)
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def read(self) -> bytes:
        """Return what is there, once there is something."""
        return self.reader.read(PIPE_BYTES)

    def leave(self) -> None:
        """Read no more."""
        self.reader.close()

    def read_again(self) -> None:
        """Let another reader come."""
        self.reader = self._opened()

    def read_to_the_end(self) -> bytes:
        """Return everything that was written; nothing can be written any more."""
        self.writer.close()
        return self.reader.readall()

    async def is_full(self) -> None:
        """Wait until it is full, so that a writer hangs."""
        await until(self._is_full, HANG_SECONDS, "the pipe is full")

    async def _is_full(self) -> bool:
        size = fcntl.ioctl(self.reader, termios.FIONREAD, struct.pack("i", 0))
        return struct.unpack("i", size) == (PIPE_BYTES,)

    def _opened(self) -> io.FileIO:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(descriptor, True)
        return io.FileIO(descriptor)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    made = Pipe(tmp_path / "pipe")
    yield made
    made.reader.close()
    made.writer.close()


def ignored(_dropped: int) -> None:
    """Ignore how many lines were dropped."""


def test_lines_are_written_in_order_before_the_end(pipe: Pipe) -> None:
    lines = LineWriter(pipe.writer.fileno(), ignored)
    for number in range(100):
        lines.write(f"{number}\n")
    lines.finish(HANG_SECONDS)
    assert pipe.read_to_the_end() == b"".join(b"%d\n" % number for number in range(100))
    assert lines.dropped() == 0


def test_the_end_does_not_wait_for_a_reader_that_hangs(pipe: Pipe) -> None:
    lines = LineWriter(pipe.writer.fileno(), ignored)
    lines.write(LONG)
    lines.finish(0)
    pipe.leave()
    lines.finish(HANG_SECONDS)
    assert lines.dropped() == 1


async def test_a_pipe_that_does_not_wait_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer.fileno(), False)
    lines = LineWriter(pipe.writer.fileno(), ignored)
    lines.write(LONG)
    read = b""
    for _ in range(2):
        await pipe.is_full()
        read += pipe.read()
    lines.finish(HANG_SECONDS)
    assert (read + pipe.read_to_the_end()).decode() == LONG


async def test_what_finds_no_room_is_dropped_and_told_when_writing_works_again(pipe: Pipe) -> None:
    told: queue.Queue[int] = queue.Queue()
    lines = LineWriter(pipe.writer.fileno(), told.put, waiting_bytes=len(LONG) + 2)
    lines.write(LONG)
    for line in ("b\n", "c\n", "d\n"):
        lines.write(line)
    assert lines.dropped() == 2
    assert told.empty()
    read = b""
    while not read.endswith(b"b\n"):
        read += pipe.read()
    assert told.get(timeout=HANG_SECONDS) == 2
    lines.write("e\n")
    assert pipe.read() == b"e\n"
    lines.finish(HANG_SECONDS)
    assert told.empty()


async def lost(lines: LineWriter, count: int) -> None:
    """Wait until so many lines are lost."""

    async def is_lost() -> bool:
        return lines.dropped() == count

    await until(is_lost, HANG_SECONDS, f"{count} lines are lost")


async def test_lines_that_cannot_be_written_are_told_when_one_can(pipe: Pipe) -> None:
    told: queue.Queue[int] = queue.Queue()
    lines = LineWriter(pipe.writer.fileno(), told.put)
    pipe.leave()
    for count in (1, 2):
        lines.write("a\n")
        await lost(lines, count)
    pipe.read_again()
    lines.write("b\n")
    assert pipe.read() == b"b\n"
    assert told.get(timeout=HANG_SECONDS) == 2
    lines.finish(HANG_SECONDS)


async def test_half_a_line_is_ended_before_the_next_one(pipe: Pipe) -> None:
    lines = LineWriter(pipe.writer.fileno(), ignored)
    lines.write(LONG)
    await pipe.is_full()
    pipe.leave()
    await lost(lines, 1)
    pipe.read_again()
    lines.write("b\n")
    assert pipe.read() == b"a" * PIPE_BYTES
    assert pipe.read() == b"\nb\n"
    lines.finish(HANG_SECONDS)


def test_a_line_has_a_longest_length_and_ends_also_where_it_is_cut(pipe: Pipe) -> None:
    lines = LineWriter(pipe.writer.fileno(), ignored)
    lines.write("ä" * LONGEST_BYTES + "\n")
    lines.write("b\n")
    read = b""
    while not read.endswith(b"\nb\n"):
        read += pipe.read()
    lines.finish(HANG_SECONDS)
    assert len(read) == LONGEST_BYTES + 2


def test_text_that_utf_8_cannot_hold_is_written_nevertheless(pipe: Pipe) -> None:
    lines = LineWriter(pipe.writer.fileno(), ignored)
    lines.write("half a pair: \udc80\n")
    lines.finish(HANG_SECONDS)
    assert pipe.read_to_the_end() == b"half a pair: \\udc80\n"
