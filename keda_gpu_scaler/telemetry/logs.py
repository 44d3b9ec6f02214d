"""The configuration of the log, and the only writing to the standard streams.

The event of a line is a dotted name, everything else is a key. The core never logs: it states
facts, and `LogObserver` (in `log_lines`) writes lines for some of them.

A container's log is a pipe that another process reads: it can be closed or full, and so can the
disk behind it. A call neither waits for it nor fails because of it: lines wait in a bounded queue
for a thread. What finds no room there, and what cannot be written, is dropped and counted.
"""

import contextlib
import logging
import logging.handlers
import os
import queue
import stat
import sys
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TextIO

import structlog
from cachetools import TTLCache
from structlog.typing import EventDict, Processor, WrappedLogger

WAITING_LINES = 4_000
"""What a thousand triggers cause when they begin, and more: about two MiB."""
LONGEST_BYTES = 32 * 1024
"""The longest line; of a longer one a part is shown."""
_CUT_CHARACTERS = LONGEST_BYTES // 2 - 1_024
"""How much is shown of a line that is too long: at most twice as long where it is a value."""
REPEAT_SECONDS = 60.0
"""A library's line is written once in this time, however often it is repeated."""
_OWN = "keda_gpu_scaler"
"""The logger of this process's own lines; all others are those of libraries."""
_STDERR = 2


class LogLevel(StrEnum):
    """The lowest level of lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The format of a line."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class _Queue(logging.handlers.QueueHandler):
    """Hands rendered lines to the thread that writes them, and waits for nothing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # Its `put` can be called twice: garbage that is collected meanwhile may log as well.
        self.lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        super().__init__(self.lines)
        self.dropped = 0
        self._written: TTLCache[tuple[str, str], bool] = TTLCache(256, REPEAT_SECONDS, clock)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line, unless a library repeats it; `handle` holds the lock."""
        if record.name != _OWN:
            key = record.name, str(record.msg)[:1_000]
            if key in self._written:
                return
            self._written[key] = True
        super().emit(record)

    def enqueue(self, record: logging.LogRecord) -> None:
        if self.lines.qsize() < WAITING_LINES:
            record.msg = record.msg[:LONGEST_BYTES]  # only lines for people are longer
            self.lines.put(record)
        else:
            self.dropped += 1


class Log(logging.Handler):
    """Writes the lines of a queue in order, in a thread of its own."""

    def __init__(self, line_queue: _Queue, descriptor: int) -> None:
        """Start the thread, which writes to this file descriptor."""
        super().__init__()
        self._queue, self._descriptor = line_queue, descriptor
        self._lost = self._reported = 0
        self._listener = logging.handlers.QueueListener(line_queue.lines, self)
        self._listener.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; report how many were dropped once nothing waits any more."""
        # What UTF-8 cannot hold, half of a surrogate pair, can come from outside.
        line = f"{record.getMessage()}\n".encode("utf-8", "backslashreplace")
        written = 0
        with contextlib.suppress(OSError):
            written = os.write(self._descriptor, line)
        if written < len(line):
            self._lost += 1
        elif self.dropped() != self._reported and self._queue.lines.empty():
            self._reported = self.dropped()
            structlog.get_logger().warning("log.lines_dropped", dropped=self._reported)

    def dropped(self) -> int:
        return self._queue.dropped + self._lost

    def finish(self, seconds: float) -> None:
        """Write what waits, but wait for it no longer than this. Nothing is written afterwards."""
        thread = threading.Thread(target=self._listener.stop, name="end of the log", daemon=True)
        thread.start()
        thread.join(seconds)


def configure(
    level: LogLevel,
    form: LogFormat,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Log:
    """Send every line of this process to one stream, in one format.

    For libraries the level is at least warning. The format `auto` means readable lines on a
    terminal, else JSON. Without a stream it is the standard output, which is a container's log.
    The writer that is returned has to be finished at the end.
    """
    level_number = logging.getLevelNamesMapping()[level.upper()]
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    stream = sys.stdout if stream is None else stream
    line_queue = _Queue(clock)
    line_queue.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_name_event, *common],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(form, is_terminal=stream.isatty()),
            ],
        )
    )
    structlog.configure(
        processors=[*common, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level_number),
        logger_factory=lambda *_: logging.getLogger(_OWN),
        cache_logger_on_first_use=False,
    )
    logging.getLogger(_OWN).setLevel(level_number)
    logging.basicConfig(handlers=[line_queue], level=max(level_number, logging.WARNING), force=True)
    logging.captureWarnings(capture=True)
    return Log(line_queue, stream.fileno())


def _renderers(form: LogFormat, *, is_terminal: bool) -> list[Processor]:
    if form is LogFormat.CONSOLE or (form is LogFormat.AUTO and is_terminal):
        # The default shows the values of variables in tracebacks; they may be secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=plain)]
    return [structlog.processors.format_exc_info, _json_line]


_write_json = structlog.processors.JSONRenderer(default=str)


def _json_line(logger: WrappedLogger, method: str, event: EventDict) -> str | bytes:
    """Begin each line with timestamp, level and event; show only a part of one that is too long."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event")}
    line = _write_json(logger, method, {**first, **event})
    if len(line) < LONGEST_BYTES:
        return line
    return _write_json(logger, method, {**first, "cut": line[:_CUT_CHARACTERS]})


def _name_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Keep `event` a name: the sentence that a library logs becomes a key."""
    event["message"], event["event"] = event["event"], "library.logged"
    event["logger"] = event["_record"].name
    return event


def free_error_output() -> None:
    """Let gRPC's library wait for no reader of the error output; what has no room there is lost.

    It writes there from its own threads, a line for each TLS handshake that fails.
    """
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.fstat(_STDERR).st_mode):
            # Opened again, because others may share this end of the pipe and want to wait.
            descriptor = os.open(f"/proc/self/fd/{_STDERR}", os.O_WRONLY | os.O_NONBLOCK)
            os.dup2(descriptor, _STDERR)
            os.close(descriptor)
