"""The exporters themselves as a source, without a Prometheus.

Once per interval there is a round, in which every exporter is asked. Its samples are kept in memory
for the windows. All other code is the same as with a Prometheus.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.evaluation_times import LEAP_SECONDS
from keda_gpu_scaler.sources.scrape import page_samples
from keda_gpu_scaler.sources.scrape.rounds import Rounds, Scrape
from keda_gpu_scaler.spec.spec import SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import proxies, resolver
from keda_gpu_scaler.transport.http_client import OK, Client, printable

KEEP_SECONDS = 600.0
"""How long samples are kept unless a trigger needs more; the default windows need under half."""


async def fetch_page(url: str, settings: ScrapeSettings, tls: ssl.SSLContext) -> bytes | bytearray:
    """Return the page of an exporter; `tls` is shared, because reading the CAs takes long.

    Each page has a connection of its own: no exporter waits for another, and none has closed it
    while it was idle.
    """
    client = Client(
        timeout_seconds=settings.timeout_seconds,
        max_response_bytes=settings.max_response_bytes,
        verify=tls,
        limits=httpx.Limits(max_keepalive_connections=0),
        proxy=proxies.of(url),
    )
    try:
        answer = await client.fetch(url)
    finally:
        await client.close()
    if answer.status == OK:
        return answer.body
    if "?" in url:
        # Servers repeat the URL in their words, and its query can be a token.
        raise errors.SourceRefusedError(f"HTTP {answer.status}")
    words = printable(answer.body[:1024].decode("utf-8", errors="replace"))
    raise errors.SourceRefusedError(f"HTTP {answer.status}: {words}")


class ScrapeSource:
    """Answers from its own rounds of scrapes."""

    lag_seconds = settled_seconds = 0.0

    def __init__(  # noqa: PLR0913 - the clocks and the lookup only for tests
        self,
        name: str,
        settings: ScrapeSettings,
        observe: facts.Observer = facts.ignore,
        *,
        clock: Callable[[], float] = time.monotonic,
        look_up: resolver.LookUp = resolver.look_up,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the exporters; `start` begins to scrape. `name` is also the `job` of the targets."""
        self.step_seconds = settings.interval_seconds
        self._name, self._settings, self._observe, self._clock = name, settings, observe, clock
        self._wall_clock, self._offset = wall_clock, wall_clock() - clock()
        self._resolver = resolver.Resolver(look_up)
        self._tls = ssl.create_default_context()
        self._queries = tuple(
            dict.fromkeys(target.partition("?")[2] for target in settings.targets if "?" in target)
        )
        self._parsing = asyncio.Lock()
        """One page at a time is parsed: more threads would take their time from calls."""
        self._history = Rounds(KEEP_SECONDS, settings.collection_seconds)
        self._trouble: str | None = None
        self._first_round = asyncio.Event()
        self._rounds: asyncio.Task[None] | None = None

    def ports(self, *evidence_providers: EvidenceProvider) -> Source:
        """Return what can be asked of it: exporters know nothing about pods but their names."""
        urls = (target.partition("?")[0] for target in self._settings.targets)
        return Source(self, evidence_providers, url=", ".join(urls), look=self.look)

    def start(self) -> None:
        self._rounds = asyncio.create_task(self._run(), name=f"scrape {self._name}")

    async def close(self) -> None:
        if self._rounds is not None:
            self._rounds.cancel()
            await asyncio.wait({self._rounds})
        await self._resolver.close()

    async def synchronize(self) -> None:
        """Wait for the first round: there is no server's clock to learn."""
        try:
            async with asyncio.timeout(2 * self._settings.timeout_seconds):
                await self._first_round.wait()
        except TimeoutError as error:
            raise errors.SourceTimeoutError("no round of scrapes has ended yet") from error

    async def look(self) -> None:
        await self.synchronize()
        self._raise_trouble()

    def _raise_trouble(self) -> None:
        if self._trouble is not None:
            raise errors.SourceUnreachableError(self._trouble)

    def now(self) -> float:
        """This machine's time; a clock that is set counts from the end of a round on."""
        return self._clock() + self._offset

    def instant(self) -> float:
        return self._history.rounds[-1].at if self._history.rounds else float("-inf")

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the observation of the rounds up to `at`; the newest one must have an answer."""
        self._history.keep_seconds = max(self._history.keep_seconds, snapshot_query.span_seconds)
        self._raise_trouble()
        # The series of thousands of GPUs take longer to read than calls may wait.
        copied = replace(self._history)
        return await asyncio.to_thread(copied.observation, snapshot_query, at)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """Return None: there is no data beyond the rounds themselves."""

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the reports of these GPUs in the newest round, whatever `at` is."""
        del at
        return self._history.gpus(uuids)

    async def _run(self) -> None:
        while True:
            began = self._clock()
            try:
                await self.hold_round()
            except Exception as error:  # noqa: BLE001 - whatever it was, the next round can work
                fault = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
                self._history.add(self.now(), {})
                self._trouble = f"a round of scrapes failed: {type(fault).__name__}: {fault}"
            self._first_round.set()
            await asyncio.sleep(max(0.0, began + self.step_seconds - self._clock()))

    async def hold_round(self) -> None:
        """Ask every exporter once, and wait until each has answered or its time is over."""
        answers: dict[Target, Scrape | str] = {}
        async with asyncio.TaskGroup() as tasks:
            for name in self._settings.targets:
                tasks.create_task(self._ask(name, answers, tasks), name=f"ask {self._name}")
        scrapes = {
            target: None if isinstance(answer, str) else answer
            for target, answer in answers.items()
        }
        leap_seconds = self._wall_clock() - self.now()
        if abs(leap_seconds) > LEAP_SECONDS:
            # The samples before have times that no other clock has: of pods, of the cluster.
            self._offset += leap_seconds
            self._history = Rounds(self._history.keep_seconds, self._settings.collection_seconds)
            scrapes = {
                target: scrape and scrape._replace(began=scrape.began + leap_seconds)
                for target, scrape in scrapes.items()
            }
        self._history.add(self.now(), scrapes)
        self._trouble = None
        first = answers[min(answers)]
        if isinstance(first, str) and not any(scrapes.values()):
            self._trouble = f"none of {len(answers)} exporters answers; the first: {first}"

    async def _ask(
        self, name: str, answers: dict[Target, Scrape | str], tasks: asyncio.TaskGroup
    ) -> None:
        """Add the answers of the exporters that a name in the settings stands for.

        A name without an address counts as an exporter without an answer.
        """
        began = self._clock()
        urls = await self._resolver.urls(name, self._settings.timeout_seconds)
        if isinstance(urls, str):
            target = self._target_of(name, name)
            answers[target] = self._reported(target, began, urls)
            return
        for url in urls:
            target = self._target_of(url, name)
            tasks.create_task(self._scrape(target, url, answers), name=f"read {target.instance}")

    async def _scrape(self, target: Target, url: str, answers: dict[Target, Scrape | str]) -> None:
        """Add a target's samples, or why there are none."""
        began, at = self._clock(), self.now()
        answer: Scrape | str
        try:
            page = await fetch_page(url, self._settings, self._tls)
            async with self._parsing:
                samples = await asyncio.to_thread(
                    page_samples.parse, page, time.time(), self._history.newest_series(target)
                )
            answer = Scrape(at, samples)
        except errors.SourceError as error:
            answer = str(error)
        answers[target] = self._reported(target, began, answer)

    def _reported(self, target: Target, began: float, answer: Scrape | str) -> Scrape | str:
        """Report an answer and return it; the reason of a failure begins with the target's name."""
        trouble = f"{target.instance}: {answer}" if isinstance(answer, str) else None
        seconds = self._clock() - began
        self._observe(facts.Queried(self._name, "scrape", seconds, trouble, target.instance))
        return trouble or answer

    def _target_of(self, url: str, name: str) -> Target:
        """Name an exporter by its URL, without the query, which can hold a token.

        Where the targets of the settings have several queries, a number tells them apart.
        """
        shown, mark, _ = url.partition("?")
        if mark:
            _, _, query = name.partition("?")
            number = self._queries.index(query) + 1 if len(self._queries) > 1 else ""
            shown = f"{shown}?***{number}"
        return Target(self._name, shown)
