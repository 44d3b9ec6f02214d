"""The log: how lines look, and which facts become lines.

An event is a dotted name, everything else is a key. The core never logs: it states facts, and
`LogObserver` writes a line where somebody would want to know. Nothing here decides or counts.
"""

import logging
import sys
import time
from collections.abc import Callable
from typing import TextIO

import structlog
from cachetools import TTLCache
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from keda_gpu_scaler import facts
from keda_gpu_scaler.decision import State
from keda_gpu_scaler.settings import LogFormat, LogLevel
from keda_gpu_scaler.spec import ScaledObject, TriggerSpec

REMEMBER_SECONDS = 600.0
"""KEDA asks every 30 s by default; what nobody asked for this long is gone, or as good as new."""
TRIGGERS_REMEMBERED = 20_000
PARTS = frozenset({"scrape", "history", "exporters"})
"""Queries that can fail while their source is up; any other one takes the source down."""
_DECIMALS = 3


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


class LogObserver:
    """Writes one line where something changed; at debug, one for each evaluation and query."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember nothing yet.

        Args:
            clock: seconds that never go back.
        """
        self._logger: FilteringBoundLogger = structlog.get_logger()
        self._decided: TTLCache[tuple[ScaledObject, TriggerSpec], tuple[State, bool | None]] = (
            TTLCache(TRIGGERS_REMEMBERED, REMEMBER_SECONDS, timer=clock)
        )
        self._reachable: dict[str, bool] = {}
        self._failing: TTLCache[tuple[str, str, str], bool] = TTLCache(
            TRIGGERS_REMEMBERED, REMEMBER_SECONDS, timer=clock
        )

    def __call__(self, fact: facts.Fact) -> None:
        """Write what is worth a line."""
        match fact:
            case facts.Evaluated():
                self._evaluated(fact)
            case facts.SourceChanged():
                self._source_changed(fact)
            case facts.ExportersFound():
                self._logger.info("source.exporters", source=fact.source, found=fact.profiles)
            case facts.SnapshotTaken() | facts.Called():
                pass
            case _:
                self._queried(fact)

    def _evaluated(self, fact: facts.Evaluated) -> None:
        key, now = (fact.scaled_object, fact.spec), (fact.decision.state, fact.decision.active)
        before = self._decided.get(key)
        self._decided[key] = now
        if before is None:
            self._warn(fact)
        if before != now:
            self._logger.info("decision.changed", **_described(fact))
        self._logger.debug("decision.made", **_described(fact))

    def _warn(self, fact: facts.Evaluated) -> None:
        for warning in fact.spec.warnings:
            self._logger.warning("trigger.warning", **_whose(fact), warning=warning)

    def _queried(self, fact: facts.Queried) -> None:
        seconds = round(fact.seconds, _DECIMALS)
        self._logger.debug(
            "source.queried",
            source=fact.source,
            query=fact.query,
            seconds=seconds,
            error=fact.error,
        )
        if fact.query in PARTS:
            self._part_changed(fact)

    def _part_changed(self, fact: facts.Queried) -> None:
        """Write when a part of what is known gets lost or comes back, while the source is up."""
        key, failing = (fact.source, fact.query, fact.target), fact.error is not None
        before = self._failing.get(key, False)
        self._failing[key] = failing
        named = {"source": fact.source, "query": fact.query, "target": fact.target}
        if failing and not before:
            self._logger.warning("source.part_lost", **named, reason=fact.error)
        elif before and not failing:
            self._logger.info("source.part_back", **named)

    def _source_changed(self, fact: facts.SourceChanged) -> None:
        """Write the first of several: each signal of a source notices its outage by itself."""
        if self._reachable.get(fact.source, True) == fact.reachable:
            return
        self._reachable[fact.source] = fact.reachable
        if fact.reachable:
            self._logger.info("source.up", source=fact.source, reason=fact.reason)
        else:
            self._logger.warning("source.down", source=fact.source, reason=fact.reason)


def _whose(fact: facts.Evaluated) -> dict[str, str]:
    return {
        "namespace": fact.scaled_object.namespace,
        "scaled_object": fact.scaled_object.name,
        "metric": fact.spec.metric_name,
        "workload": fact.spec.workload,
    }


def _described(fact: facts.Evaluated) -> dict[str, object]:
    decided = fact.decision
    return {
        **_whose(fact),
        "state": str(decided.state),
        "active": decided.active,
        "value": _rounded(decided.value),
        "average": _rounded(decided.average),
        "reason": decided.reason,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)
