"""The configuration of the log: its level, its format and its stream.

The event of a line is a dotted name, everything else is a key. The core never logs: it states
facts, and `LogObserver` (in `log_lines`) writes lines for some of them. Nothing here decides or
counts.
"""

import logging
import sys
from enum import StrEnum
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger


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


def configure(level: LogLevel, form: LogFormat, stream: TextIO = sys.stdout) -> None:
    """Send every line of this process to one stream, in one format.

    Args:
        level: the lowest level to write; for libraries it is at least warning.
        form: JSON, or readable lines; `auto` means readable lines on a terminal, else JSON.
        stream: the stream to write to; a container's standard output is its log.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendering = _rendering(form, stream)
    structlog.configure(
        processors=[*common, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    _configure_libraries(max(number, logging.WARNING), common, rendering, stream)


def _rendering(form: LogFormat, stream: TextIO) -> list[Processor]:
    is_terminal = stream.isatty()
    if form is LogFormat.CONSOLE or (form is LogFormat.AUTO and is_terminal):
        # The default shows the values of variables in tracebacks; they may be secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=plain)]
    json = structlog.processors.JSONRenderer(default=str)
    return [structlog.processors.format_exc_info, _put_first, json]


def _put_first(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Begin each line with timestamp, level and event."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event")}
    return {**first, **event}


def _configure_libraries(
    level: int, common: list[Processor], rendering: list[Processor], stream: TextIO
) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_name_event, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)


def _name_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Keep `event` a name: the sentence that a library logs becomes a key."""
    event["message"], event["event"] = event["event"], "library.logged"
    event["logger"] = event["_record"].name
    return event
