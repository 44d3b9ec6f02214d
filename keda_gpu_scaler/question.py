"""One expression about demand: asked once at a time, with the last answer.

As with snapshots, a failure does not age what was answered before: that serves until it is older
than the trigger's `maxAge`. Nobody waits for a source that is known to be down.
"""

import asyncio
import hashlib
from collections.abc import Callable

from keda_gpu_scaler import errors, facts
from keda_gpu_scaler.demand import Demand
from keda_gpu_scaler.source import Source

SLOW_SECONDS = 2.5
"""An answer that takes longer is no longer waited for by anybody; it may still come."""
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
            source_name: how triggers call the source.
            source: whom to ask.
            text: the expression.
            observe: is told when it fails and when it works again.
            clock: seconds that never go back.
        """
        self._source_name, self._source, self._text = source_name, source, text
        self._observe, self._clock = observe, clock
        self._name = f"demand-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        self._value: float | None = None
        self._answered_at = self._launched_at = self._wanted_at = float("-inf")
        self._trouble: str | None = f"source {source_name}: no answer yet"
        """Why the newest asking brought no number; None: it did."""
        self._failed = False
        """The newest asking brought no answer at all."""
        self._works = True
        self._flight: asyncio.Task[None] | None = None

    def due_seconds(self, interval_seconds: float) -> float:
        """Return how long it takes until it may be asked again, once per interval."""
        if self._is_under_way():
            return interval_seconds
        return self._launched_at + interval_seconds - self._clock()

    def is_idle(self, seconds: float) -> bool:
        """Tell whether nobody has wanted to know for so long."""
        return not self._is_under_way() and self._wanted_at < self._clock() - seconds

    def launch(self) -> None:
        """Ask now; the answer comes by itself."""
        self._launched_at = self._clock()
        self._flight = asyncio.create_task(self._fly(), name=f"{self._name} {self._source_name}")

    async def waited(self, deadline: float) -> None:
        """Wait for the answer under way, as long as there is hope that it comes soon.

        A fault of ours in the asking is raised to whoever waits.
        """
        self._wanted_at = self._clock()
        if self._flight is None:
            return
        if not self._failed:
            left = min(deadline, self._launched_at + SLOW_SECONDS) - self._clock()
            await asyncio.wait({self._flight}, timeout=max(0.0, left))
        if self._flight.done():
            self._flight.result()

    def demand(self, max_age_seconds: float) -> Demand:
        """Return what is known now; what was answered longer ago than this is not known."""
        age_seconds = self._clock() - self._answered_at
        if self._value is not None and age_seconds <= max_age_seconds:
            return Demand(self._value)
        return Demand(None, self._trouble or f"source {self._source_name}: no newer answer")

    async def close(self) -> None:
        """End the asking under way, if there is one."""
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.wait({self._flight})

    def _is_under_way(self) -> bool:
        return self._flight is not None and not self._flight.done()

    async def _fly(self) -> None:
        try:
            value = await self._source.number(self._text)
        except errors.SourceError as error:
            self._failed = True
            self._found_trouble(f"source {self._source_name}: {error}")
            return
        self._failed = False
        self._value, self._answered_at = value, self._clock()
        if value is None:
            self._found_trouble(NOTHING)
        else:
            self._answered()

    def _found_trouble(self, trouble: str) -> None:
        self._trouble = trouble
        if self._works:
            self._works = False
            self._changed(trouble)

    def _answered(self) -> None:
        self._trouble = None
        if not self._works:
            self._works = True
            self._changed("it gives a number again")

    def _changed(self, reason: str) -> None:
        self._observe(facts.OwnQueryChanged(self._source_name, self._name, self._works, reason))
