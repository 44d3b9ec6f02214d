"""One shared snapshot: kept fresh by whoever asks, fetched once for all of them.

Fetching is separate from answering. Somebody who asks starts a fetch when a newer instant exists
and none is on its way; he waits for it only where there is nothing usable or he is patient, never
once the source is known to be down. So a thousand triggers cost one query per step, and none when
nobody asks.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from keda_gpu_scaler import errors, facts
from keda_gpu_scaler.collector import Collector
from keda_gpu_scaler.needs import Needs
from keda_gpu_scaler.observation import Need
from keda_gpu_scaler.snapshot import Key, Snapshot
from keda_gpu_scaler.source import SLOW_SECONDS, Source

USABLE_STEPS = 2
"""A snapshot older than this is not answered from while a newer one can be had."""
WIDEN_SECONDS = 1.0
"""A fetch only for namespaces that are new waits this long after the last, to gather more."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the newest fetch failed, and since when fetches do."""

    reason: str
    since: float
    """The instant that could not be had, on the source's clock."""


class Feed:
    """The snapshots of one (source, signal, profile)."""

    def __init__(
        self,
        key: Key,
        source: Source,
        observe: facts.Observer,
        collector: Collector,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without a snapshot.

        Args:
            key: what it is a feed of.
            source: where samples come from, for its clock and its step.
            observe: is told of every new snapshot and of the source's changes.
            collector: takes the snapshots.
            clock: seconds that never go back.
        """
        self.snapshot: Snapshot | None = None
        self.failure: Failure | None = None
        self._key, self._source, self._observe = key, source, observe
        self._collector, self._clock = collector, clock
        self._needs = Needs(clock)
        self._span_seconds = 0.0
        self._flight: asyncio.Task[None] | None = None
        self._launched_at = self._tried = float("-inf")

    async def refresh(self, need: Need, deadline: float, *, patient: bool = False) -> None:
        """Bring the snapshot up to date for `need`, as far as can be done before `deadline`.

        Args:
            need: the namespaces and the span of one trigger.
            deadline: on this feed's clock.
            patient: wait for a fetch on its way even where there is something usable.
        """
        self._needs.note(need)
        while True:
            self._collect()
            if self._flight is None and self._is_due(need):
                self._launch()
            if self._is_down() or (self._is_current(need) and not (patient and self._flight)):
                return
            if not await self._waited(deadline):
                return

    @property
    def trouble(self) -> str | None:
        """Why there is no newer snapshot, in the source's words; None while there is no trouble."""
        if self.failure is not None:
            return self.failure.reason
        if self._is_slow():
            return f"source {self._key.source}: no answer within {SLOW_SECONDS:g} s"
        return None

    @property
    def is_idle(self) -> bool:
        """Whether nobody has asked for long, so that it can be forgotten with all it knows."""
        return not self._is_under_way() and self._needs.are_forgotten

    @property
    def source_name(self) -> str:
        """The source, as facts name it."""
        return self._key.source

    def now(self) -> float:
        """The time on the source's clock."""
        return self._source.now()

    def covers(self, need: Need) -> bool:
        """Tell whether the snapshot holds everything that `need` is about."""
        if self.snapshot is None or need.span_seconds > self._span_seconds:
            return False
        return need.namespaces <= self.snapshot.namespaces.keys()

    async def close(self) -> None:
        """End the fetch on its way, if there is one."""
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.wait({self._flight})

    def _is_current(self, need: Need) -> bool:
        if self.snapshot is None or not self.covers(need):
            return False
        behind = self._source.instant() - self.snapshot.at
        return behind <= USABLE_STEPS * self._source.step_seconds

    def _is_down(self) -> bool:
        return self.failure is not None or self._is_slow()

    def _is_slow(self) -> bool:
        return self._is_under_way() and self._clock() - self._launched_at >= SLOW_SECONDS

    def _is_under_way(self) -> bool:
        return self._flight is not None and not self._flight.done()

    def _is_due(self, need: Need) -> bool:
        if self._source.instant() > self._tried:
            return True
        return self.failure is None and not self._is_current(need) and self._until_wider() <= 0

    def _until_wider(self) -> float:
        return self._launched_at + WIDEN_SECONDS - self._clock()

    async def _waited(self, deadline: float) -> bool:
        """Wait for what can be waited for; tell whether there was time for it."""
        left = max(0.0, deadline - self._clock())
        if (flight := self._flight) is None:
            pause = max(0.0, self._until_wider())
            await asyncio.sleep(min(left, pause))
            return left > pause
        slow = max(0.0, self._launched_at + SLOW_SECONDS - self._clock())
        await asyncio.wait({flight}, timeout=min(left, slow))
        return flight.done() or left > slow

    def _launch(self) -> None:
        self._launched_at = self._clock()
        self._flight = asyncio.create_task(
            self._fly(), name=f"fetch {self._key.source} {self._key.signal}"
        )

    def _collect(self) -> None:
        """Take note of a fetch that ended; a fault of ours in it is raised to whoever asks next."""
        if self._flight is not None and self._flight.done():
            flight, self._flight = self._flight, None
            flight.result()

    async def _fly(self) -> None:
        self._tried = self._source.instant()
        try:
            await self._source.synchronize()
            self._tried = self._source.instant()
            need = self._needs.together()
            self.snapshot = await self._collector.take(need, self._tried)
            self._span_seconds = need.span_seconds
        except errors.SourceError as error:
            self._failed(f"source {self._key.source}: {error}")
        else:
            self._succeeded(self.snapshot)

    def _failed(self, reason: str) -> None:
        if self.failure is None:
            self.failure = Failure(reason, self._tried)
            self._changed(works=False, reason=reason)
        else:
            self.failure = Failure(reason, self.failure.since)

    def _succeeded(self, taken: Snapshot) -> None:
        if self.failure is not None:
            self.failure = None
            self._changed(works=True, reason="it answers again")
        self._observe(
            facts.SnapshotTaken(*self._key[:3], taken.at, taken.pod_count, taken.refused_samples)
        )

    def _changed(self, *, works: bool, reason: str) -> None:
        """State it of the source, or of a user's query alone: that says nothing of its source."""
        source, query = self._key.source, self._key.query
        if query is not None:
            self._observe(facts.OwnQueryChanged(source, query.name, works, reason))
        else:
            self._observe(facts.SourceChanged(source, works, reason))
