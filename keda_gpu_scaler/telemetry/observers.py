"""All observers as one: each gets the facts that it hears, and none can fail what states them.

Facts are stated in the middle of an answer. An observer that fails has lost a line, a number or a
span; the answer and the other observers have nothing to do with it.
"""

import time
from collections.abc import Callable, Mapping
from typing import get_args

import structlog

from keda_gpu_scaler.telemetry import facts

REPEAT_SECONDS = 60.0
"""A failing observer is a line of the log once in this time: it may fail at every fact."""

log = structlog.get_logger()


class Observers:
    """Passes each fact to all observers, in their order."""

    def __init__(
        self,
        observers: Mapping[str, facts.Observer],
        count_failure: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Pass facts to these observers.

        Args:
            observers: each observer with its name.
            count_failure: is called with the name of an observer that failed.
            clock: seconds that never go back.
        """
        self._count_failure, self._clock = count_failure, clock
        self._told: dict[str, float] = {}
        self._hearing: dict[type[facts.Fact], list[tuple[str, facts.Observer]]] = {
            kind: [
                # Without the call of a Subscriber in between: each fact would pay for it.
                (name, one.hears[kind] if isinstance(one, facts.Subscriber) else one)
                for name, one in observers.items()
                if facts.is_heard(one, kind)
            ]
            for kind in get_args(facts.Fact)
        }
        self.hears = frozenset(kind for kind, hearing in self._hearing.items() if hearing)

    def __call__(self, fact: facts.Fact) -> None:
        """Pass the fact on; never raise what an observer raises."""
        for name, hear in self._hearing[type(fact)]:
            try:
                hear(fact)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not the caller's
                self._failed(name, fact, error)

    def _failed(self, name: str, fact: facts.Fact, error: Exception) -> None:
        self._count_failure(name)
        now = self._clock()
        if now - self._told.get(name, -REPEAT_SECONDS) >= REPEAT_SECONDS:
            self._told[name] = now
            kind = type(fact).__name__
            log.error("observer.failed", observer=name, fact=kind, exc_info=error)
