"""One expression about demand: asked once at a time, with the last answer.

As with snapshots, a failure does not age what was answered before: that serves until it is older
than the trigger's `maxAge`. Nobody waits for a source that is known to fail or to be slow. That
there is nothing is an answer too: it replaces the one before it.
"""

import asyncio
from collections.abc import Callable

from keda_gpu_scaler import demand, errors, facts
from keda_gpu_scaler.demand import Demand
from keda_gpu_scaler.source import SLOW_SECONDS, Source

NOTHING = "demandQuery gives nothing"


class Question:
    """What one source says about one expression."""

    def __init__(
        self,
        source_name: str,
        source: Source,
        text: str,
        observe: facts.Observer,
        clock: Callable[[], float],
    ) -> None:
        """Ask nothing yet.

        Args:
            source_name: the source, as facts name it.
            source: whom to ask.
            text: the expression.
            observe: is told when it fails and when it works again.
            clock: seconds that never go back.
        """
        self._source_name, self._source, self._text = source_name, source, text
        self._observe, self._clock = observe, clock
        self._value: float | None = None
        self._answered_at = self._asked_at = self._wanted_at = float("-inf")
        self._trouble: str | None = f"source {source_name}: no answer yet"
        """Why the newest asking brought no number; None: it did."""
        self._is_prompt = True
        """The newest asking that ended was answered, and in time: the next is waited for."""
        self._works = True
        self._flight: asyncio.Task[None] | None = None

    def due_seconds(self, interval_seconds: float) -> float:
        """Return how long it takes until it may be asked again, once per interval.

        While it waits for its turn, that is when its turn comes.
        """
        left = self._asked_at - self._clock()
        if left > 0:
            return left
        is_overdue = left <= -interval_seconds and self._is_under_way()
        return interval_seconds if is_overdue else left + interval_seconds

    def is_idle(self, seconds: float) -> bool:
        """Tell whether nobody has wanted to know for so long, and it is not being asked now."""
        is_being_asked = self._is_under_way() and self._asked_at <= self._clock()
        return not is_being_asked and self._wanted_at < self._clock() - seconds

    def launch(self, turn_seconds: float) -> None:
        """Ask when its turn comes; the answer comes by itself."""
        self._collect()
        self._asked_at = self._clock() + turn_seconds
        self._flight = asyncio.create_task(
            self._fly(turn_seconds), name=f"{demand.name_of(self._text)} {self._source_name}"
        )

    async def waited(self, deadline: float) -> None:
        """Wait for the answer under way, where there is hope that it comes soon.

        There is none where it is not even asked before the deadline.
        """
        self._wanted_at = self._clock()
        if self._flight is not None and self._is_prompt and self._asked_at <= deadline:
            left = min(deadline, self._asked_at + SLOW_SECONDS) - self._clock()
            await asyncio.wait({self._flight}, timeout=max(0.0, left))
        self._collect()

    def demand(self, max_age_seconds: float) -> Demand:
        """Return what is known now; what was answered longer ago than this is not known."""
        age_seconds = self._clock() - self._answered_at
        if self._value is not None and age_seconds <= max_age_seconds:
            return Demand(self._value)
        return Demand(None, self._trouble or f"source {self._source_name}: no newer answer")

    def cancel(self) -> None:
        """Let the asking under way end, if there is one."""
        if self._flight is not None:
            self._flight.cancel()

    async def close(self) -> None:
        """End the asking under way, if there is one."""
        self.cancel()
        if self._flight is not None:
            await asyncio.wait({self._flight})

    def _is_under_way(self) -> bool:
        return self._flight is not None and not self._flight.done()

    def _collect(self) -> None:
        """Take note of an asking that ended; a fault of ours in it is raised."""
        if self._flight is not None and self._flight.done():
            flight, self._flight = self._flight, None
            flight.result()

    async def _fly(self, turn_seconds: float) -> None:
        await asyncio.sleep(turn_seconds)
        try:
            value = await self._source.number(self._text)
        except errors.SourceError as error:
            self._is_prompt = False
            self._found_trouble(f"source {self._source_name}: {error}")
            return
        self._answered_at = self._clock()
        self._is_prompt = self._answered_at - self._asked_at <= SLOW_SECONDS
        self._value = value
        if value is None:
            self._found_trouble(NOTHING)
        else:
            self._answered()

    def _found_trouble(self, trouble: str) -> None:
        self._trouble = trouble
        if self._works:
            self._changed(works=False, reason=trouble)

    def _answered(self) -> None:
        self._trouble = None
        if not self._works:
            self._changed(works=True, reason="it gives a number again")

    def _changed(self, *, works: bool, reason: str) -> None:
        self._works = works
        name = demand.name_of(self._text)
        self._observe(facts.OwnQueryChanged(self._source_name, name, works, reason))
