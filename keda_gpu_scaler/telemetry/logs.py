"""The configuration of the log: its level, its format and its stream.

The event of a line is a dotted name, everything else is a key. The core never logs: it states
facts, and `LogObserver` (in `log_lines`) writes lines for some of them. Lines wait in the queue of
`output`, so a call neither waits for the log nor fails because of it.
"""

import logging
import math
import re
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TextIO, cast

import structlog
from cachetools import LRUCache
from structlog.typing import EventDict, Processor, WrappedLogger

from keda_gpu_scaler.telemetry import output

REPEAT_SECONDS = 60.0
"""A library's line is written once in this time, however often it is repeated."""
_REMEMBERED = 256
_COMPARED_CHARACTERS = 1_000
_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9]+")
_CUT_CHARACTERS = output.LONGEST_BYTES // 2 - 1_024
"""How much is shown of a line that is too long: at most twice as long where it is a value."""


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


def configure(
    level: LogLevel,
    form: LogFormat,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> output.LineWriter:
    """Send every line of this process to one stream, in one format.

    Args:
        level: the lowest level to write; for libraries it is at least warning.
        form: JSON, or readable lines; `auto` means readable lines on a terminal, else JSON.
        stream: the stream to write to; None: the standard output, which is a container's log.
        clock: seconds that never go back.

    Returns:
        The writer of the lines, which has to be finished at the end.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    shown = sys.stdout if stream is None else stream
    rendering = _rendering(form, is_terminal=shown.isatty())
    writer = output.LineWriter(shown.fileno(), _tell_dropped)
    lines = cast("TextIO", writer)
    structlog.configure(
        processors=[*common, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(lines),
        cache_logger_on_first_use=False,
    )
    handler = _LibraryHandler(lines, clock)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_name_event, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)
    logging.captureWarnings(capture=True)
    return writer


def _tell_dropped(dropped: int) -> None:
    structlog.get_logger().warning("log.lines_dropped", dropped=dropped)


def _rendering(form: LogFormat, *, is_terminal: bool) -> list[Processor]:
    if form is LogFormat.CONSOLE or (form is LogFormat.AUTO and is_terminal):
        # The default shows the values of variables in tracebacks; they may be secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=plain)]
    return [structlog.processors.format_exc_info, _json]


_write_json = structlog.processors.JSONRenderer(default=str)


def _json(logger: WrappedLogger, method: str, event: EventDict) -> str | bytes:
    """Begin each line with timestamp, level and event; show only a part of one that is too long."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event")}
    line = _write_json(logger, method, {**first, **event})
    if len(line) < output.LONGEST_BYTES:
        return line
    return _write_json(logger, method, {**first, "cut": line[:_CUT_CHARACTERS]})


class _LibraryHandler(logging.StreamHandler[TextIO]):
    """Writes what libraries log. Lines that differ only in numbers are the same line again."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        super().__init__(stream)
        self._clock = clock
        self._written: LRUCache[tuple[object, ...], tuple[float, int]] = LRUCache(_REMEMBERED)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, or count that it was repeated; `handle` holds the lock."""
        try:
            is_due = self._is_due(record)
        except Exception:  # noqa: BLE001 - as in every handler: the caller is not to blame
            self.handleError(record)
        else:
            if is_due:
                super().emit(record)

    def _is_due(self, record: logging.LogRecord) -> bool:
        said = _NUMBER.sub("#", record.getMessage()[:_COMPARED_CHARACTERS])
        key = record.name, record.levelno, said
        now = self._clock()
        at, repeated = self._written.get(key, (-math.inf, 0))
        is_due = now - at >= REPEAT_SECONDS
        self._written[key] = (now, 0) if is_due else (at, repeated + 1)
        vars(record)["repeated"] = repeated
        return is_due


def _name_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Keep `event` a name: the sentence that a library logs becomes a key."""
    record = event["_record"]
    event["message"], event["event"] = event["event"], "library.logged"
    event["logger"] = record.name
    if record.repeated:
        event["repeated"] = record.repeated
    return event
