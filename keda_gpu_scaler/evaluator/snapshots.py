"""All shared snapshots of this process, and their sources.

A source that is queried by namespace has its own snapshots for each namespace; every user's own
query has its own snapshot too. A snapshot that no trigger asked for in ten minutes is dropped when
a new one is needed.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.evaluator.shared_snapshot import SharedSnapshot
from keda_gpu_scaler.evaluator.shared_source import (
    EvidenceFetcher,
    SharedSource,
    SourceDown,
    SourceState,
)
from keda_gpu_scaler.evaluator.single_flight import SingleFlight
from keda_gpu_scaler.snapshot.snapshot import SnapshotKey
from keda_gpu_scaler.spec.spec import SnapshotQuery, TriggerSpec, snapshot_query_of
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import RECENT_SECONDS, SLOW_SECONDS, WIDE_SECONDS

OWN_QUERIES = 100
"""To one source: each is two or three queries per step, and 3 MiB of samples at most."""
OWN_QUERIES_PER_NAMESPACE = 20
"""One tenant does not take them all."""


class Snapshots:
    """All shared snapshots of this process; each is created when it is first asked for."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        observe: facts.Observer = facts.ignore,
        *,
        clock: Callable[[], float] = time.monotonic,
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        """Take the sources to fetch from, by the name that triggers use.

        `slow_seconds` is how long callers wait for a fetch.
        """
        self._sources, self._observe = sources, observe
        self._clock, self._slow_seconds = clock, slow_seconds
        self._shared_snapshots: dict[SnapshotKey, SharedSnapshot] = {}
        self._shared_sources: dict[str, SharedSource] = {}
        self._states = {
            name: SourceState(name, source.url, observe, clock)
            for name, source in sources.items()
            if source.of_namespace is None
        }
        """By the name in facts; where each namespace has a source, those that triggers asked."""

    async def look(self) -> None:
        """Ask each source while no trigger does, so that what is wrong with it shows; never ends.

        One that is asked by namespace has to wait for a trigger, which names one.
        """
        await asyncio.gather(
            *(
                _look(source, self._states[name])
                for name, source in self._sources.items()
                if name in self._states
            )
        )

    async def down(self, wait_seconds: float) -> list[SourceDown]:
        """Return the sources that do not answer, or of which nothing is known after this time."""
        waiting = [state.known.wait() for state in self._states.values()]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*waiting), wait_seconds)
        return [down for state in self._states.values() if (down := state.down()) is not None]

    async def close(self) -> None:
        for shared in self._shared_snapshots.values():
            await shared.flight.close()

    def needs(self, spec: TriggerSpec) -> tuple[SnapshotQuery, SnapshotKey]:
        """Return what a trigger asks of its source, and the snapshot that it shares."""
        source = self._sources[spec.source]
        snapshot_query = snapshot_query_of(spec, source.samples.step_seconds)
        is_long_range = snapshot_query.span_seconds > WIDE_SECONDS
        source_key = source.key(spec.source, spec.pods.namespace)
        key = SnapshotKey(source_key, spec.shared_signal, spec.profile, is_long_range, spec.query)
        return snapshot_query, key

    def of(self, key: SnapshotKey, spec: TriggerSpec, namespace: str) -> SharedSnapshot:
        """Return the shared snapshot for a trigger of a ScaledObject in `namespace`.

        One that is refused, because there are too many own queries, holds nothing.
        """
        shared = self._shared_snapshots.get(key)
        if shared is not None:
            return shared
        self._drop_idle()
        owner = spec.source, namespace
        refusal = None if key.query is None else self._refusal(*owner)
        source = self._shared_sources.get(key.source) or self._shared_source(key.source, spec)
        flight = SingleFlight(self._clock, self._slow_seconds)
        shared = SharedSnapshot(key, owner, source, flight, refusal)
        if refusal is None:
            self._shared_sources[key.source] = source
            self._shared_snapshots[key] = shared
        return shared

    def _refusal(self, source: str, namespace: str) -> str | None:
        """Return why one more own query of a namespace is refused; None: it is not."""
        owners = [shared.owner for key, shared in self._shared_snapshots.items() if key.query]
        for count, limit, whose in [
            (sum(name == source for name, _ in owners), OWN_QUERIES, "one source"),
            (
                owners.count((source, namespace)),
                OWN_QUERIES_PER_NAMESPACE,
                f"namespace {namespace} to one source",
            ),
        ]:
            if count >= limit:
                return (
                    f"source {source}: more than {limit} different custom queries of {whose}; "
                    f"expected at most {limit}: use a signal, or the same query in several triggers"
                )
        return None

    def _shared_source(self, name: str, spec: TriggerSpec) -> SharedSource:
        source = self._sources[spec.source].within(spec.pods.namespace)
        if name not in self._states:
            self._states[name] = SourceState(name, source.url, self._observe, self._clock)
        evidence_fetcher = EvidenceFetcher(name, source, self._observe)
        return SharedSource(source.samples, self._states[name], evidence_fetcher)

    def _drop_idle(self) -> None:
        """Drop snapshots that are not asked for any more: namespaces and queries come and go.

        Only where a new one takes their place. A snapshot remembers which pods there were, and KEDA
        may ask again after a pause.
        """
        idle = [key for key, shared in self._shared_snapshots.items() if shared.is_idle]
        for key in idle:
            del self._shared_snapshots[key]
            self._shared_sources[key.source].state.let_go(key)
        named = {key.source for key in self._shared_snapshots}
        self._shared_sources = {
            name: shared for name, shared in self._shared_sources.items() if name in named
        }
        self._states = {
            name: state
            for name, state in self._states.items()
            if name in self._shared_sources or name in self._sources
        }


async def _look(source: Source, state: SourceState) -> None:
    look = source.look or source.samples.synchronize
    while True:
        if not state.is_fetched:
            error = None
            try:
                await look()
            except errors.SourceError as failure:
                error = failure
            state.looked(error)
        is_up = state.down() is None
        await asyncio.sleep(RECENT_SECONDS if is_up else source.samples.step_seconds)
