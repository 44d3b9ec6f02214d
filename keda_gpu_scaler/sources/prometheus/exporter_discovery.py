"""Which exporters there are beside dcgm-exporter, asked of a source now and then.

dcgm-exporter's series are always asked for; those of every exporter ever would be a query many
times the size.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql_texts import EXPORTER_LABEL
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.telemetry import facts

DETECTED_SECONDS = 120.0
"""Exporters come with node pools; one that is new is not looked at for so long."""


class ExporterDiscovery:
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

    def widened(self, snapshot_query: SnapshotQuery) -> SnapshotQuery:
        """Return the query with what `auto` has to look for."""
        return (
            replace(snapshot_query, found=self._found)
            if snapshot_query.profile == profiles.AUTO
            else snapshot_query
        )

    async def refresh(
        self, snapshot_query: SnapshotQuery, ask: Callable[[], Awaitable[list[Row]]]
    ) -> None:
        """Ask again what there is, if it was not asked lately and `snapshot_query` depends on it.

        Args:
            snapshot_query: what is wanted.
            ask: sends `exporters_text`; a server that refuses it still answers for what is known.
        """
        async with self._asking:
            due = self._clock() - self._asked_at >= DETECTED_SECONDS
            if due and snapshot_query.profile == profiles.AUTO:
                self._asked_at = self._clock()
                with contextlib.suppress(errors.SourceError):
                    self._note(await ask())

    def _note(self, rows: list[Row]) -> None:
        shown = {row.labels.get(EXPORTER_LABEL, "") for row in rows}
        new = shown.intersection(profiles.DETECTED) - self._found
        if new:
            self._found |= new
            self._observe(facts.ExportersFound(self._source, tuple(sorted(new))))
