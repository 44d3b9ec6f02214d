"""The feeds of all sources: which one answers for a trigger.

A feed serves every trigger of its source, signal and profile. Of a source that has to be asked
about each namespace by itself, every namespace has feeds of its own; so has every query that a
user wrote. A feed begins with the first trigger that asks for it, and ends when nobody has for ten
minutes.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from keda_gpu_scaler import facts
from keda_gpu_scaler.cluster import Cluster
from keda_gpu_scaler.collector import Collector
from keda_gpu_scaler.feed import Feed
from keda_gpu_scaler.observation import Need
from keda_gpu_scaler.snapshot import Key
from keda_gpu_scaler.source import Source
from keda_gpu_scaler.spec import TriggerSpec
from keda_gpu_scaler.witness import Witness

WIDE_SECONDS = 900.0
"""Triggers that look back further share a snapshot of their own: theirs is many times the size."""


class _Side(NamedTuple):
    """A source as one group of feeds sees it, with what the cluster says there."""

    source: Source
    witness: Witness


class Feeds:
    """Every feed of this process, each made when it is first asked for."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        observe: facts.Observer = facts.ignore,
        *,
        cluster: Cluster | None = None,
        give_up_seconds: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the sources over; `close` closes them.

        Args:
            sources: by the name that triggers call them.
            observe: is told of every snapshot and change of a source.
            cluster: the Kubernetes API, where it is asked.
            give_up_seconds: how long a pod that vanished with its exporter counts as missing.
            clock: seconds that never go back.
        """
        self._sources, self._cluster, self._observe = sources, cluster, observe
        self._give_up_seconds, self._clock = give_up_seconds, clock
        self._feeds: dict[Key, Feed] = {}
        self._sides: dict[str, _Side] = {}

    async def start(self) -> None:
        """Start every source."""
        for source in self._sources.values():
            await source.start()

    async def close(self) -> None:
        """End what is on its way and close every source."""
        for shared in self._feeds.values():
            await shared.close()
        for source in self._sources.values():
            await source.close()

    def step_seconds(self, source: str) -> float:
        """Return how often a source can have something new."""
        return self._sources[source].step_seconds

    def of(self, spec: TriggerSpec, need: Need) -> Feed:
        """Return the feed that answers for a trigger."""
        wide = need.span_seconds > WIDE_SECONDS
        key = Key(self._side_name(spec), spec.shared_signal, spec.profile, wide, spec.query)
        if key not in self._feeds:
            self._let_go()
            self._feeds[key] = self._made(key, spec)
        return self._feeds[key]

    def _side_name(self, spec: TriggerSpec) -> str:
        """Name the source, and the namespace with it where that is asked about by itself."""
        alone = self._sources[spec.source].is_per_namespace
        return f"{spec.source}/{spec.pods.namespace}" if alone else spec.source

    def _made(self, key: Key, spec: TriggerSpec) -> Feed:
        side = self._sides.get(key.source)
        if side is None:
            source = self._sources[spec.source].within(spec.pods.namespace)
            side = _Side(source, Witness(key.source, source, self._observe, self._cluster))
            self._sides[key.source] = side
        collector = Collector(side.source, side.witness, self._give_up_seconds)
        return Feed(key, side.source, self._observe, collector, self._clock)

    def _let_go(self) -> None:
        """Forget what nobody asks for any more: namespaces and queries come and go."""
        self._feeds = {key: shared for key, shared in self._feeds.items() if not shared.is_idle}
        named = {key.source for key in self._feeds}
        self._sides = {name: side for name, side in self._sides.items() if name in named}
