"""The objects of one resource, by namespace and name: those there are, and those that lately went.

No I/O. What went is kept for a while, so that whoever looks at an instant still learns of it.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from keda_gpu_scaler.evidence import PodKey

GONE_SECONDS = 60.0
"""An exporter may show a pod that went for a scrape more, and another pod may take its place."""
GONE_LIMIT = 10_000
"""More than go within that time in a cluster of thousands of nodes; the oldest are let go."""

T = TypeVar("T")


class Listing(Generic[T]):
    """What is known of each object of one resource."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Know of none.

        Args:
            clock: seconds that never go back.
        """
        self._clock = clock
        self._there: dict[str, dict[str, T]] = {}
        self._gone: dict[PodKey, tuple[float, T]] = {}
        self.changed = asyncio.Event()
        """Set at the next change, and replaced by another one then."""

    def replace(self, found: Mapping[PodKey, T]) -> None:
        """Know of these and of no others."""
        for key, known in list(self.items()):
            if key not in found:
                self._went(key, known)
        self._there = {}
        for key, known in found.items():
            self._put(key, known)
        self._tell()

    def put(self, key: PodKey, known: T) -> None:
        """Know this of an object from now on."""
        self._put(key, known)
        self._tell()

    def drop(self, key: PodKey, known: T) -> None:
        """Learn that an object went, and how it was at the end."""
        there = self._there.get(key[0], {})
        there.pop(key[1], None)
        if not there:
            self._there.pop(key[0], None)
        self._went(key, known)
        self._tell()

    def get(self, key: PodKey) -> T | None:
        """Return what is known of an object, if it is there."""
        return self._there.get(key[0], {}).get(key[1])

    def last(self, key: PodKey) -> T | None:
        """Return what is known of an object, or was before it went."""
        _, went = self._gone.get(key, (0.0, None))
        there = self.get(key)
        return went if there is None else there

    def of(self, namespace: str) -> Mapping[str, T]:
        """Return the objects of one namespace by name."""
        return self._there.get(namespace, {})

    def gone(self) -> Iterator[tuple[PodKey, T]]:
        """Yield those that lately went, unless there is another of the name by now."""
        since = self._clock() - GONE_SECONDS
        for key, (went_at, known) in self._gone.items():
            if went_at >= since and self.get(key) is None:
                yield key, known

    def items(self) -> Iterator[tuple[PodKey, T]]:
        """Yield all that are there."""
        for namespace, there in self._there.items():
            for name, known in there.items():
                yield (namespace, name), known

    def _put(self, key: PodKey, known: T) -> None:
        self._there.setdefault(key[0], {})[key[1]] = known

    def _went(self, key: PodKey, known: T) -> None:
        now = self._clock()
        self._gone.pop(key, None)
        self._gone[key] = now, known
        while len(self._gone) > GONE_LIMIT or self._oldest() < now - GONE_SECONDS:
            del self._gone[next(iter(self._gone))]

    def _oldest(self) -> float:
        went_at, _ = next(iter(self._gone.values()))
        return went_at

    def _tell(self) -> None:
        told, self.changed = self.changed, asyncio.Event()
        told.set()
