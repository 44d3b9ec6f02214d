"""The exporters themselves as a source, without a Prometheus.

Each exporter is asked once per interval, by a task of its own. Once per interval there is a round,
which takes the newest answer of each and waits for none. The samples are kept in memory for the
windows. All other code is the same as with a Prometheus.
"""

import asyncio
import contextlib
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target
from keda_gpu_scaler.sources.scrape.exporter import Exporter
from keda_gpu_scaler.sources.scrape.rounds import MOST_SERIES, History, Scrape
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import resolver

KEEP_SECONDS = 600.0
"""How long samples are kept unless a trigger needs more; the default windows need under half."""
FIRST_SECONDS = 2.0
"""The first round waits this long for exporters that have not answered: calls wait 2.5 s."""


class ScrapeSource:
    """Answers from its own rounds of scrapes."""

    def __init__(
        self,
        name: str,
        settings: ScrapeSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
        look_up: resolver.LookUp = resolver.look_up,
    ) -> None:
        """Take the exporters; `start` begins to scrape. `name` is also the `job` of the targets."""
        self.step_seconds = settings.interval_seconds
        self._name, self._settings, self._observe, self._clock = name, settings, observe, clock
        self._offset = time.time() - clock()
        self._resolver = resolver.Resolver(look_up)
        self._tls = httpx.create_ssl_context()
        self._queries = tuple(
            dict.fromkeys(target.partition("?")[2] for target in settings.targets if "?" in target)
        )
        self._exporters: dict[str, Mapping[Target, str] | str] = {}
        """For each target of the settings, its exporters with their URLs, or why it has none."""
        self._readers: dict[Target, asyncio.Task[None]] = {}
        self._newest: dict[Target, Scrape | str] = {}
        """The newest answer of each exporter, or why it has none."""
        self._changed = asyncio.Event()
        self._history = History(KEEP_SECONDS)
        self._trouble: str | None = None
        self._first_round = asyncio.Event()
        self._tasks: asyncio.Task[None] | None = None

    def ports(self, *evidence_providers: EvidenceProvider) -> Source:
        """Return what can be asked of it: exporters know nothing about pods but their names."""
        return Source(self, evidence_providers)

    def start(self) -> None:
        """Begin to scrape."""
        self._tasks = asyncio.create_task(self._run(), name=f"scrape {self._name}")

    async def close(self) -> None:
        """Stop scraping and close every connection."""
        if self._tasks is not None:
            self._tasks.cancel()
            await asyncio.wait({self._tasks})
        await self._resolver.close()

    async def synchronize(self) -> None:
        """Wait for the first round, but not far longer than such a round should take.

        There is no server's clock to learn.
        """
        try:
            async with asyncio.timeout(2 * FIRST_SECONDS):
                await self._first_round.wait()
        except TimeoutError as error:
            raise errors.SourceTimeoutError("no round of scrapes has ended yet") from error
        if self._tasks is not None and self._tasks.done():
            self._tasks.result()

    @property
    def lag_seconds(self) -> float:
        """None: this process takes the samples itself."""
        return 0.0

    def now(self) -> float:
        """This machine's time, without clock changes since the start."""
        return self._clock() + self._offset

    def instant(self) -> float:
        """The instant of the newest round."""
        return self._history.instants[-1] if self._history.instants else float("-inf")

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the observation of the rounds up to `at`; the newest one must have an answer."""
        self._history.keep_seconds = max(self._history.keep_seconds, snapshot_query.span_seconds)
        if self._trouble is not None:
            raise errors.SourceUnreachableError(self._trouble)
        # The series of thousands of GPUs take longer to read than calls may wait.
        observation = await asyncio.to_thread(
            self._history.copied().observation, snapshot_query, at
        )
        return replace(observation, collection_seconds=self._settings.collection_seconds)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """Return None: there is no data beyond the rounds themselves."""

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the reports of these GPUs in the newest round, whatever `at` is."""
        del at
        return self._history.gpus(uuids)

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for target in self._settings.targets:
                    tasks.create_task(self._follow(target, tasks), name=f"follow {self._name}")
                tasks.create_task(self._hold_rounds(), name=f"rounds {self._name}")
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from faults
        finally:
            self._first_round.set()  # `synchronize` must not wait for a round that will never come

    async def _follow(self, target: str, tasks: asyncio.TaskGroup) -> None:
        """Have the exporters of a target read, for as long as its name stands for them."""
        while True:
            began = self._clock()
            urls = await self._resolver.urls(target, self._settings.timeout_seconds)
            if isinstance(urls, str):
                self._exporters[target] = self._report_failure(
                    self._target_of(target, target), began, urls
                )
            else:
                self._exporters[target] = {self._target_of(url, target): url for url in urls}
            self._update_readers(tasks)
            if not target.startswith(resolver.DNS_PREFIX):
                return
            await asyncio.sleep(self.step_seconds)

    def _update_readers(self, tasks: asyncio.TaskGroup) -> None:
        wanted: dict[Target, str] = {}
        for exporters in self._exporters.values():
            if not isinstance(exporters, str):
                wanted.update(exporters)
        for target in self._readers.keys() - wanted.keys():
            self._readers.pop(target).cancel()
            self._newest.pop(target, None)
        for target in wanted.keys() - self._readers.keys():
            reading = self._read(target, wanted[target])
            self._readers[target] = tasks.create_task(reading, name=f"read {target.instance}")
        self._changed.set()

    async def _read(self, target: Target, url: str) -> None:
        """Ask an exporter once per interval.

        That is in the second half of the time between two rounds: not all at once, and not long
        before the next round.
        """
        phase = self.step_seconds * (0.5 + 0.5 * zlib.crc32(url.encode()) / 2**32)
        exporter = Exporter(url, self._settings, self._tls)
        try:
            while True:
                began = self._clock()
                self._newest[target] = await self._scrape(target, exporter)
                self._changed.set()
                await asyncio.sleep(self._seconds_until(phase, began + 0.9 * self.step_seconds))
        finally:
            await exporter.close()

    async def _scrape(self, target: Target, exporter: Exporter) -> Scrape | str:
        """Return a target's samples, or an error message."""
        began, at = self._clock(), self.now()
        try:
            samples = await exporter.samples()
        except errors.SourceError as error:
            return self._report_failure(target, began, str(error))
        if not self._history.has_room(target, samples):
            words = f"more than {MOST_SERIES} series; are their labels new at each scrape?"
            return self._report_failure(target, began, words)
        seconds = self._clock() - began
        self._observe(facts.Queried(self._name, "scrape", seconds, None, target.instance))
        return Scrape(at, samples)

    async def _hold_rounds(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_SECONDS):
                while (
                    set(self._settings.targets) - self._exporters.keys()
                    or self._readers.keys() - self._newest.keys()
                ):
                    self._changed.clear()
                    await self._changed.wait()
        while True:
            began = self._clock()
            self._hold_round(self.now())
            self._first_round.set()
            await asyncio.sleep(self._seconds_until(0.0, began + 0.5 * self.step_seconds))

    def _hold_round(self, at: float) -> None:
        """Take the newest answer of every exporter, which is at most an interval and a timeout old.

        A name without an address counts as an exporter without an answer.
        """
        answers: dict[Target, Scrape | str] = {}
        for name in self._settings.targets:
            target = self._target_of(name, name)
            exporters = self._exporters.get(name, f"{target.instance}: no address yet")
            if isinstance(exporters, str):
                answers[target] = exporters
        for target in sorted(self._readers):
            answers[target] = self._newest.get(target, f"{target.instance}: no answer yet")
        scrapes = {
            target: None if isinstance(answer, str) else answer
            for target, answer in answers.items()
        }
        self._history.add(at, scrapes)
        troubles = [answer for answer in answers.values() if isinstance(answer, str)]
        self._trouble = None
        if len(troubles) == len(answers):
            self._trouble = f"none of {len(answers)} exporters answers; the first: {troubles[0]}"

    def _seconds_until(self, phase: float, earliest: float) -> float:
        """Return the seconds until the first time from `earliest` on that has this phase."""
        due = earliest + (phase - earliest) % self.step_seconds
        return max(0.0, due - self._clock())

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

    def _report_failure(self, target: Target, began: float, words: str) -> str:
        """Report that a target failed, and return the message."""
        trouble, seconds = f"{target.instance}: {words}", self._clock() - began
        self._observe(facts.Queried(self._name, "scrape", seconds, trouble, target.instance))
        return trouble
