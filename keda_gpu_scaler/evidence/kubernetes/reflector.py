"""Keeps one listing like the API server's: list, then watch, again and again.

A watch that ends in any other way than by its timeout is followed by a new list. Until then the
listing may be out of date, because deletions in between are not seen. Deleted objects are kept for
a while, so that a recent instant can still be explained.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kubernetes.api import WATCH_SECONDS, Api, ExpiredError
from keda_gpu_scaler.evidence.kubernetes.objects import Item, Resource
from keda_gpu_scaler.snapshot.evidence import PodKey
from keda_gpu_scaler.telemetry import facts

GONE_SECONDS = 60.0
"""An exporter may show a deleted pod for one more scrape, while another pod takes its place."""
GONE_LIMIT = 10_000
"""More deletions than in that time in a cluster of thousands of nodes."""
BELIEVED_SECONDS = 30.0
"""A listing is not trusted after this time without news. A working watch brings news every 15
seconds, and a dead one is noticed after 20."""
PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""The pause after the first failure, after the second, and so on; then the last one."""

T = TypeVar("T")


class Listing(Generic[T]):
    """The known objects of one resource, by namespace and name."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._existing = defaultdict[str, dict[str, T]](dict)
        self.size = 0
        """How many objects exist."""
        self._gone: TTLCache[PodKey, T] = TTLCache(GONE_LIMIT, GONE_SECONDS, clock)

    def replace(self, listed: Mapping[PodKey, T]) -> None:
        before, self._existing, self.size = self._existing, defaultdict(dict), 0
        for key, known in listed.items():
            self.put(key, known)
        for namespace, objects in before.items():
            for name, known in objects.items():
                if (namespace, name) not in listed:
                    self._gone[namespace, name] = known

    def put(self, key: PodKey, known: T) -> None:
        namespace, name = key
        self.size += name not in self._existing[namespace]
        self._existing[namespace][name] = known

    def drop(self, key: PodKey, known: T) -> None:
        """Remove a deleted object; `known` is its last state."""
        namespace, name = key
        self.size -= name in self._existing[namespace]
        self._existing[namespace].pop(name, None)
        if not self._existing[namespace]:
            del self._existing[namespace]
        self._gone[key] = known

    def get(self, key: PodKey) -> T | None:
        return self.of(key[0]).get(key[1])

    def last(self, key: PodKey) -> T | None:
        """Return an object, or its last state if it was deleted recently."""
        existing = self.get(key)
        return self._gone.get(key) if existing is None else existing

    def of(self, namespace: str) -> Mapping[str, T]:
        return self._existing.get(namespace, {})

    def gone(self) -> Iterator[tuple[PodKey, T]]:
        for key in self._gone:
            known = self._gone.get(key)
            if known is not None and self.get(key) is None:
                yield key, known


class Reflector(Generic[T]):
    """Follows one resource of the API server."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        read: Callable[[Item], T],
        observe: facts.Observer,
        clock: Callable[[], float],
    ) -> None:
        """Set up the watch; `run` follows the resource, and `read` returns what is kept of it."""
        self.listing = Listing[T](clock)
        self._api, self._resource, self._read = api, resource, read
        self._observe, self._clock = observe, clock
        self._changed = asyncio.Event()
        self._was_tried = False
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

    async def wait_for_first_list(self) -> None:
        while not self._was_tried:
            await self._changed.wait()

    async def wait_for(self, key: PodKey) -> T | None:
        """Wait until an object is listed and return it; None: the resource cannot be followed."""
        await self.wait_for_first_list()
        while self.listing.get(key) is None and self.trouble is None:
            await self._changed.wait()
        return self.listing.get(key)

    async def run(self) -> None:
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
                expected = isinstance(error, errors.SourceError)
                self._report(str(error) if expected else f"{type(error).__name__}: {error}")
            await asyncio.sleep(PAUSES_SECONDS[min(failures, len(PAUSES_SECONDS) - 1)])
            failures += 1

    async def _list(self) -> str:
        """List all objects; return the resourceVersion of the list."""
        began, listed = self._clock(), dict[PodKey, T]()
        async with contextlib.aclosing(self._api.pages(self._resource)) as pages:
            async for page in pages:
                listed |= {item.key: self._read(item) for item in page.items or ()}
                self._check_size(len(listed))
                version = page.metadata.version
        self.listing.replace(listed)
        self._heard_at = began
        self._report(None)
        return version

    async def _watch(self, version: str) -> str:
        """Follow the changes until the API server ends the watch; return the last version.

        A watch without a word is news only if it lasted: what is between answers empty ones at
        once, and client-go takes that for an error too.
        """
        began, has_news = self._clock(), False
        async with contextlib.aclosing(self._api.watch(self._resource, version)) as changes:
            async for change in changes:
                version, item, self._heard_at = change.version, change.item, self._clock()
                has_news = True
                if item is not None:
                    update = self.listing.drop if change.is_deleted else self.listing.put
                    update(item.key, self._read(item))
                    self._check_size(self.listing.size)
                    self._wake()
        ended = self._clock()
        if not has_news and ended - began < WATCH_SECONDS - 1:
            message = f"cannot watch {self._resource}: it ended early, without a word"
            raise errors.SourceMalformedError(message)
        self._heard_at = ended
        return version

    def _check_size(self, size: int) -> None:
        if size > self._resource.most:
            message = f"more than {self._resource.most:,} {self._resource}"
            raise errors.SourceMalformedError(message)

    def _report(self, trouble: str | None) -> None:
        """Report whether the resource is followed, if that has changed or is the first news."""
        works = trouble is None
        is_news = not self._was_tried or works is not (self._trouble is None)
        self._was_tried, self._trouble = True, trouble
        if is_news:
            reason = trouble or "it is listed"
            self._observe(facts.WatchChanged(str(self._resource), works=works, reason=reason))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
