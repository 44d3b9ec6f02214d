"""Which exporters a source has beside dcgm-exporter, queried from time to time.

Snapshot queries always include dcgm-exporter's series. To include every known exporter would make
them many times longer.
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
"""New exporters come with node pools; it can take this long until a new one is found."""


class ExporterDiscovery:
    """The exporters found in one source.

    An exporter that was found once is always queried: an empty answer costs next to nothing.
    """

    def __init__(self, source: str, observe: facts.Observer, clock: Callable[[], float]) -> None:
        self._source, self._observe, self._clock = source, observe, clock
        self._found: frozenset[str] = frozenset()
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    def found(self) -> frozenset[str]:
        """Return the exporters that were found beside dcgm-exporter."""
        return self._found

    def widened(self, snapshot_query: SnapshotQuery) -> SnapshotQuery:
        """Return the query with the exporters that `auto` stands for."""
        return (
            replace(snapshot_query, found=self._found)
            if snapshot_query.profile == profiles.AUTO
            else snapshot_query
        )

    async def refresh(
        self, snapshot_query: SnapshotQuery, ask: Callable[[], Awaitable[list[Row]]]
    ) -> None:
        """Look for exporters, unless that was done recently or `snapshot_query` needs none.

        `ask` sends `EXPORTERS`; if the server refuses it, the known exporters stay in use.
        """
        async with self._asking:
            is_due = self._clock() - self._asked_at >= DETECTED_SECONDS
            if not is_due or snapshot_query.profile != profiles.AUTO:
                return
            self._asked_at = self._clock()
            with contextlib.suppress(errors.SourceError):
                shown = {row.labels.get(EXPORTER_LABEL, "") for row in await ask()}
                new = shown.intersection(profiles.DETECTED) - self._found
                if new:
                    self._found |= new
                    self._observe(facts.ExportersFound(self._source, tuple(sorted(new))))
