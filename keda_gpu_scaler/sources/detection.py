"""Which exporters there are beside dcgm-exporter, asked of a source now and then.

dcgm-exporter's series are always asked for; those of every exporter ever would be a query many
times the size.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from keda_gpu_scaler import census, errors, facts, profiles
from keda_gpu_scaler.observation import Demand, Row

DETECTED_SECONDS = 120.0
"""Exporters come with node pools; one that is new is not looked at for so long."""


class Detection:
    """What was found in one source.

    What was found once is asked for from then on: an empty answer costs next to nothing.
    """

    def __init__(self, source: str, observe: facts.Observer, clock: Callable[[], float]) -> None:
        """Know nothing yet.

        Args:
            source: how triggers call the source.
            observe: is told when an exporter was found.
            clock: seconds that never go back.
        """
        self._source, self._observe, self._clock = source, observe, clock
        self._found: frozenset[str] = frozenset()
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    def widened(self, demand: Demand) -> Demand:
        """Return the demand with what `auto` has to look for."""
        return replace(demand, found=self._found) if demand.profile == profiles.AUTO else demand

    async def refresh(self, demand: Demand, ask: Callable[[], Awaitable[list[Row]]]) -> None:
        """Ask again what there is, if it was not asked lately and `demand` depends on it.

        Args:
            demand: what is wanted.
            ask: sends `census.exporters`; a server that refuses it still answers for what is known.
        """
        async with self._asking:
            due = self._clock() - self._asked_at >= DETECTED_SECONDS
            if due and demand.profile == profiles.AUTO:
                self._asked_at = self._clock()
                with contextlib.suppress(errors.SourceError):
                    self._note(await ask())

    def _note(self, rows: list[Row]) -> None:
        shown = {row.labels.get(census.EXPORTER_LABEL, "") for row in rows}
        new = shown.intersection(profiles.DETECTED) - self._found
        if new:
            self._found |= new
            self._observe(facts.ExportersFound(self._source, tuple(sorted(new))))
