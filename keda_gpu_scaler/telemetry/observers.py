"""All observers as one: each gets every fact, and none can fail what states them.

Facts are stated in the middle of an answer. An observer that fails has lost a line, a number or a
span; the answer and the other observers have nothing to do with it.
"""

import time
from collections.abc import Callable, Mapping

import structlog
from cachetools import TTLCache

from keda_gpu_scaler.telemetry import facts

REPEAT_SECONDS = 60.0
"""A failing observer is a line of the log once in this time: it may fail at every fact."""

log = structlog.get_logger()


class Observers:
    """Passes each fact to all observers, in their order."""

    def __init__(
        self,
        observers: Mapping[str, facts.Observer],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Pass facts to these observers, which have names for the log."""
        self._observers = observers
        self._reported: TTLCache[str, bool] = TTLCache(len(observers), REPEAT_SECONDS, clock)

    def __call__(self, fact: facts.Fact) -> None:
        """Pass the fact on; never raise what an observer raises."""
        for name, observe in self._observers.items():
            try:
                observe(fact)
            except Exception as error:  # whatever it is, it is not the caller's
                if name not in self._reported:
                    self._reported[name] = True
                    kind = type(fact).__name__
                    log.exception("observer.failed", observer=name, fact=kind, exc_info=error)
