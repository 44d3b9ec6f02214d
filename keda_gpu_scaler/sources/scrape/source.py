"""The exporters themselves as a source, without a Prometheus.

Each interval has one round that scrapes all targets at once. The samples are kept in memory for the
windows. All other code is the same as with a Prometheus.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.scrape import exposition
from keda_gpu_scaler.sources.scrape.exposition import Sample
from keda_gpu_scaler.sources.scrape.rounds import History
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.client import USER_AGENT, Client

KEEP_SECONDS = 600.0
"""How long samples are kept unless a trigger needs more; the default windows need under half."""
AT_ONCE = 64
"""The limit of scrapes at the same time."""


class ScrapeSource:
    """Answers from its own rounds of scrapes."""

    def __init__(
        self,
        name: str,
        settings: ScrapeSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the client; `start` begins to scrape.

        Args:
            name: the source's name in triggers; also the `job` of its targets.
            settings: the exporters, and how often to scrape them.
            observe: is told of every scrape.
            clock: seconds that never go back.
        """
        self.step_seconds = settings.interval_seconds
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

    def ports(self, *evidence_providers: EvidenceProvider) -> Source:
        """Return what can be asked of it: exporters know nothing about pods but their names."""
        return Source(self, evidence_providers)

    def start(self) -> None:
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
        """Wait for the first round; there is no server's clock to learn.

        Raises:
            errors.SourceTimeoutError: it takes longer than the time limits of lookups and scrapes.
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
        """This machine's time, without clock changes since the start."""
        return self._clock() + self._offset

    def instant(self) -> float:
        """The instant of the newest round."""
        return self._history.instants[-1] if self._history.instants else float("-inf")

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the observation of the rounds up to `at`.

        Raises:
            errors.SourceUnreachableError: no target answered in the newest round.
        """
        self._history.keep_seconds = max(self._history.keep_seconds, snapshot_query.span_seconds)
        if self._trouble is not None:
            raise errors.SourceUnreachableError(self._trouble)
        observation = self._history.observation(snapshot_query, at)
        return replace(observation, collection_seconds=self._settings.collection_seconds)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """Return None: there is no data beyond the rounds themselves."""

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the reports of these GPUs in the newest round, whatever `at` is."""
        del at
        return self._history.gpus(uuids)

    async def _run(self) -> None:
        try:
            while True:
                began = self._clock()
                await self._round(self.now())
                self._first_round.set()
                await asyncio.sleep(max(0.0, began + self.step_seconds - self._clock()))
        finally:
            self._first_round.set()  # `synchronize` must not wait for a round that will never come

    async def _round(self, at: float) -> None:
        """Scrape every exporter once; an unresolved name counts as a target without an answer."""
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
        """Return a target's samples, or an error message."""
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
        """Report that a target failed, and return the message."""
        trouble = f"{target}: {words}"
        self._observe(facts.Queried(self._name, "scrape", self._clock() - began, trouble, target))
        return trouble


def _trouble(shown: Mapping[str, list[Sample] | str]) -> str | None:
    """Return the error message if not one target answered."""
    troubles = [words for words in shown.values() if isinstance(words, str)]
    if len(troubles) < len(shown):
        return None
    return f"none of {len(shown)} exporters answers; the first: {troubles[0]}"
