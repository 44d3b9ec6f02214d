"""Keeps one listing like the API server's: list, then watch, again and again.

A watch that ends in any other way than by its timeout is followed by a new list. Until then the
listing may be out of date, because deletions in between are not seen. Deleted objects are kept for
a while, so that a recent instant can still be explained.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.evidence import PodKey
from keda_gpu_scaler.sources.kubernetes import objects
from keda_gpu_scaler.sources.kubernetes.api import Api, Change, ExpiredError, Resource
from keda_gpu_scaler.telemetry import facts

GONE_SECONDS = 60.0
"""An exporter may show a deleted pod for one more scrape, while another pod takes its place."""
GONE_LIMIT = 10_000
"""More deletions than in that time in a cluster of thousands of nodes; the oldest are dropped."""

Listed = TypeVar("Listed")


class Listing(Generic[Listed]):
    """The known objects of one resource."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with an empty listing.

        Args:
            clock: seconds that never go back.
        """
        self._clock = clock
        self._there: dict[str, dict[str, Listed]] = {}
        self._gone: dict[PodKey, tuple[float, Listed]] = {}
        self.changed = asyncio.Event()
        """Set at the next change, and then replaced by a new event."""

    def replace(self, found: Mapping[PodKey, Listed]) -> None:
        """Replace all known objects by these."""
        for key, known in list(self.items()):
            if key not in found:
                self._went(key, known)
        self._there = {}
        for key, known in found.items():
            self._put(key, known)
        self._tell()

    def put(self, key: PodKey, known: Listed) -> None:
        """Add or update an object."""
        self._put(key, known)
        self._tell()

    def drop(self, key: PodKey, known: Listed) -> None:
        """Remove a deleted object; `known` is its last state."""
        there = self._there.get(key[0], {})
        there.pop(key[1], None)
        if not there:
            self._there.pop(key[0], None)
        self._went(key, known)
        self._tell()

    def get(self, key: PodKey) -> Listed | None:
        """Return an object, if it exists."""
        return self._there.get(key[0], {}).get(key[1])

    def last(self, key: PodKey) -> Listed | None:
        """Return an object, or its last state if it was deleted recently."""
        _, went = self._gone.get(key, (0.0, None))
        there = self.get(key)
        return went if there is None else there

    def of(self, namespace: str) -> Mapping[str, Listed]:
        """Return the objects of one namespace by name."""
        return self._there.get(namespace, {})

    def gone(self) -> Iterator[tuple[PodKey, Listed]]:
        """Yield the objects deleted recently, unless a new one has the same name."""
        since = self._clock() - GONE_SECONDS
        for key, (went_at, known) in self._gone.items():
            if went_at >= since and self.get(key) is None:
                yield key, known

    def items(self) -> Iterator[tuple[PodKey, Listed]]:
        """Yield all existing objects."""
        for namespace, there in self._there.items():
            for name, known in there.items():
                yield (namespace, name), known

    def _put(self, key: PodKey, known: Listed) -> None:
        self._there.setdefault(key[0], {})[key[1]] = known

    def _went(self, key: PodKey, known: Listed) -> None:
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


BELIEVED_SECONDS = 30.0
"""A listing is not trusted after this time without news. A working watch brings news every 15
seconds, and a dead one is noticed after 20."""
PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""The pause after the first failure, after the second, and so on; then the last one."""

T = TypeVar("T")


class Reflector(Generic[T]):
    """Follows one resource of the API server."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        read: Callable[[objects.Json], T],
        observe: facts.Observer,
        clock: Callable[[], float],
    ) -> None:
        """Set up the watch; `run` follows the resource.

        Args:
            api: the API server.
            resource: the resource to follow.
            read: returns the needed data of an object.
            observe: is told when the watch is lost and when it works.
            clock: seconds that never go back.
        """
        self.listing = Listing[T](clock)
        self.tried = asyncio.Event()
        """Set once the first list has succeeded or failed."""
        self._api, self._resource, self._read = api, resource, read
        self._observe, self._clock = observe, clock
        self._heard_at = float("-inf")
        self._trouble: str | None = "nothing was listed yet"

    @property
    def trouble(self) -> str | None:
        """Why the listing may be out of date; None: it is up to date."""
        if self._trouble is None and self.silence_seconds > BELIEVED_SECONDS:
            return f"no word about {self._resource} for {self.silence_seconds:.0f} s"
        return self._trouble

    @property
    def silence_seconds(self) -> float:
        """The time since the listing was last known to match the API server's."""
        return self._clock() - self._heard_at

    async def run(self) -> None:
        """Follow the resource until this is cancelled."""
        failures = 0
        while True:
            try:
                version = await self._list()
                while True:
                    version = await self._watch(version)
                    failures = 0
            except ExpiredError:
                pass  # a client gets this after minutes without changes
            except Exception as error:  # noqa: BLE001 - whatever it was: nothing is sure until the next list
                self._lost(error)
            await asyncio.sleep(PAUSES_SECONDS[min(failures, len(PAUSES_SECONDS) - 1)])
            failures += 1

    async def _list(self) -> str:
        """List all objects; return the resourceVersion of the list."""
        began, following, found = self._clock(), "", dict[PodKey, T]()
        while True:
            page = await self._api.page(self._resource, following)
            found |= self._known(page.items)
            if len(found) > self._resource.most:
                message = f"more than {self._resource.most:,} {self._resource}"
                raise errors.SourceMalformedError(message)
            following = page.following
            if not following:
                self.listing.replace(found)
                self._works(began)
                return page.version

    def _known(self, items: list[objects.Item]) -> Mapping[PodKey, T]:
        return {objects.key(item): self._read(item) for item in items}

    async def _watch(self, version: str) -> str:
        """Follow the changes until the API server ends the watch; return the last version."""
        async with contextlib.aclosing(self._api.watch(self._resource, version)) as changes:
            async for change in changes:
                self._take(change)
                version, self._heard_at = change.version, self._clock()
        self._heard_at = self._clock()
        return version

    def _take(self, change: Change) -> None:
        if change.kind == "BOOKMARK":
            return
        key, known = objects.key(change.item), self._read(change.item)
        if change.kind == "DELETED":
            self.listing.drop(key, known)
        else:
            self.listing.put(key, known)

    def _works(self, since: float) -> None:
        was_lost, self._trouble, self._heard_at = self._trouble is not None, None, since
        self.tried.set()
        if was_lost:
            fact = facts.WatchChanged(str(self._resource), works=True, reason="it is listed")
            self._observe(fact)

    def _lost(self, error: Exception) -> None:
        expected = isinstance(error, errors.SourceError)
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        is_news = self._trouble is None or not self.tried.is_set()
        self._trouble = reason
        self.tried.set()
        if is_news:
            self._observe(facts.WatchChanged(str(self._resource), works=False, reason=reason))
