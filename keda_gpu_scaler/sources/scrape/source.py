"""The exporters themselves as a source: no Prometheus at all.

One round per interval scrapes every target at once; what the rounds showed is kept in memory for
the windows. Everything above it is the same code as with a Prometheus.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.scrape import exposition
from keda_gpu_scaler.sources.scrape.exposition import Sample
from keda_gpu_scaler.sources.scrape.rounds import History
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.client import USER_AGENT, Client

KEEP_SECONDS = 600.0
"""The samples kept before anybody asks for more; the windows' defaults need less than half."""
AT_ONCE = 64
"""Scrapes under way at the same time."""


class ScrapeSource:
    """Answers from the rounds it has scraped itself."""

    def __init__(
        self,
        name: str,
        settings: ScrapeSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Scrape nothing yet.

        Args:
            name: how triggers call this source; also the `job` of its targets.
            settings: which exporters, and how often.
            observe: is told of every scrape.
            clock: seconds that never go back.
        """
        self.step_seconds, self.is_per_namespace = settings.interval_seconds, False
        self._name, self._settings, self._observe, self._clock = name, settings, observe, clock
        self._offset = time.time() - clock()
        self._client = Client(
            httpx.AsyncClient(timeout=settings.timeout_seconds, headers={"User-Agent": USER_AGENT}),
            timeout_seconds=settings.timeout_seconds,
            max_response_bytes=settings.max_response_bytes,
        )
        self._resolver = resolver.Resolver()
        self._history = History(KEEP_SECONDS)
        self._trouble: str | None = None
        self._first_round = asyncio.Event()
        self._rounds: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(AT_ONCE)

    def within(self, namespace: str) -> "ScrapeSource":  # noqa: ARG002 - exporters show them all
        """Return itself: one round of scrapes is for every namespace."""
        return self

    async def start(self) -> None:
        """Begin to scrape."""
        self._rounds = asyncio.create_task(self._run(), name=f"scrape {self._name}")

    async def close(self) -> None:
        """Stop scraping and close every connection."""
        if self._rounds is not None:
            self._rounds.cancel()
            await asyncio.wait({self._rounds})
        await self._resolver.close()
        await self._client.close()

    async def synchronize(self) -> None:
        """Wait for the first round: there is no other clock than this machine's.

        Raises:
            errors.SourceTimeoutError: it takes longer than names and exporters may together.
        """
        try:
            async with asyncio.timeout(2 * self._settings.timeout_seconds):
                await self._first_round.wait()
        except TimeoutError as error:
            message = "not every exporter has answered or timed out yet"
            raise errors.SourceTimeoutError(message) from error
        if self._rounds is not None and self._rounds.done():
            self._rounds.result()

    def now(self) -> float:
        """This machine's time, without its jumps."""
        return self._clock() + self._offset

    def instant(self) -> float:
        """The instant of the newest round."""
        return self._history.instants[-1] if self._history.instants else float("-inf")

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return what the rounds up to `at` showed.

        Raises:
            errors.SourceUnreachableError: in the newest round no target answered at all.
        """
        self._history.keep_seconds = max(self._history.keep_seconds, snapshot_query.span_seconds)
        if self._trouble is not None:
            raise errors.SourceUnreachableError(self._trouble)
        observation = self._history.observation(snapshot_query, at)
        return replace(observation, collection_seconds=self._settings.collection_seconds)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """There is no memory beyond the rounds themselves."""

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return where these GPUs are in the newest round, which is what `at` can only mean."""
        del at
        return self._history.gpus(uuids)

    async def evidence(self, namespaces: Collection[str], at: float) -> Evidence | None:
        """Exporters know nothing of pods but their names."""

    async def number(self, text: str) -> float | None:  # noqa: ARG002 - there is nobody to ask
        """Refuse: exporters understand no expressions, and no trigger gets here with one."""
        raise errors.SourceRefusedError("exporters understand no demandQuery")

    async def _run(self) -> None:
        try:
            while True:
                began = self._clock()
                await self._round(self.now())
                self._first_round.set()
                await asyncio.sleep(max(0.0, began + self.step_seconds - self._clock()))
        finally:
            self._first_round.set()  # nobody waits for a round that will never be

    async def _round(self, at: float) -> None:
        """Scrape every exporter once; a name that is not resolved is one that does not answer."""
        began = self._clock()
        found = await self._resolver.resolve(self._settings.targets, self._settings.timeout_seconds)
        shown: dict[str, list[Sample] | str] = {}
        for target, words in found.troubles.items():
            shown[target] = self._stated(target, began, words)
        urls = sorted(found.urls)
        shown.update(zip(urls, await asyncio.gather(*map(self._scraped, urls)), strict=True))
        self._history.add(
            at,
            {
                Target(self._name, target): None if isinstance(samples, str) else samples
                for target, samples in shown.items()
            },
        )
        self._trouble = _trouble(shown)

    async def _scraped(self, url: str) -> list[Sample] | str:
        """Return a target's samples, or in words what went wrong."""
        began = self._clock()
        try:
            async with self._slots:
                answer = await self._client.get(url)
                samples = await asyncio.to_thread(exposition.samples, answer)
        except errors.SourceError as error:
            return self._stated(url, began, str(error))
        self._observe(facts.Queried(self._name, "scrape", self._clock() - began, None, url))
        return samples

    def _stated(self, target: str, began: float, words: str) -> str:
        """State that a target failed, and return why."""
        trouble = f"{target}: {words}"
        self._observe(facts.Queried(self._name, "scrape", self._clock() - began, trouble, target))
        return trouble


def _trouble(shown: Mapping[str, list[Sample] | str]) -> str | None:
    """Say why nothing is known, if not one target answered."""
    troubles = [words for words in shown.values() if isinstance(words, str)]
    if len(troubles) < len(shown):
        return None
    return f"none of {len(shown)} exporters answers; the first: {troubles[0]}"
