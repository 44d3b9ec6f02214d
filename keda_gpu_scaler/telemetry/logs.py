"""The log: how lines look, and which facts become lines.

An event is a dotted name, everything else is a key. The core never logs: it states facts, and
`LogObserver` (in `log_lines`) writes a line where somebody would want to know. Nothing here
decides or counts.
"""

import logging
import sys
from enum import StrEnum
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger


class LogLevel(StrEnum):
    """The least important lines that are still written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line looks."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


def configure(level: LogLevel, form: LogFormat, stream: TextIO = sys.stdout) -> None:
    """Send every line of this process to one stream, in one form.

    Args:
        level: the least important lines to write. Libraries write warnings at least.
        form: JSON, or lines for people; `auto` is for people on a terminal.
        stream: where to; a container's standard output is its log.
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
        # The default shows the values of variables in tracebacks, and they may be secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=plain)]
    json = structlog.processors.JSONRenderer(default=str)
    return [structlog.processors.format_exc_info, _put_first, json]


def _put_first(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Begin each line with what people look for."""
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
    """Keep `event` a name: what a library says in a sentence becomes a key."""
    event["message"], event["event"] = event["event"], "library.logged"
    event["logger"] = event["_record"].name
    return event
