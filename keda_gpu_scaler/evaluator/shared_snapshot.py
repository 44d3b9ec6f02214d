"""The snapshots that triggers share: one per source, signal and profile, and how it is fetched.

Answering does not fetch: a call starts a fetch if a newer instant exists and none is running, and
decides itself how long it waits (`evaluator.suffices`). So a thousand triggers cost one query per
step, and none while no trigger is evaluated.

The queries of a fetch build on each other: the present samples, then the last hour (only for
namespaces that are new, or were not watched), then where the GPUs of disappeared pods are. The
evidence about the cluster's pods is fetched at the same time.

A source that is queried by namespace has its own snapshots for each namespace; every user's own
query has its own snapshot too. A snapshot that no trigger asked for in ten minutes is dropped when
a new one is needed.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Samples, Source
from keda_gpu_scaler.evaluator.shared_source import (
    EvidenceFetcher,
    SharedSource,
    SourceDown,
    SourceState,
)
from keda_gpu_scaler.evaluator.single_flight import SingleFlight
from keda_gpu_scaler.snapshot.attribution import attributed
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.snapshot.pod_status import PodStatuses, build_snapshot
from keda_gpu_scaler.snapshot.reported_pods import (
    ABSENT_ELEMENTS_KEPT,
    ABSENT_PODS_KEPT,
    ReportedPods,
    absent_gpus,
    advance_reported_pods,
    busy_before,
    confined,
    join,
)
from keda_gpu_scaler.snapshot.snapshot import Snapshot, SnapshotKey
from keda_gpu_scaler.spec.spec import SnapshotQuery, TriggerSpec, merged, snapshot_query_of
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import (
    FORGET_SECONDS,
    RECENT_SECONDS,
    REMEMBERED_SECONDS,
    RETRY_SECONDS,
    USABLE_STEPS,
    WIDE_SECONDS,
    WIDEN_SECONDS,
)


class Reading(NamedTuple):
    """What is known of a shared snapshot at one moment, for one trigger."""

    snapshot: Snapshot | None
    """None: there is none with everything that the trigger asks for."""
    now: float
    """The time on the source's clock."""
    lag_seconds: float
    """How far that clock is behind, because all samples of the source arrive so late."""
    trouble: str | None
    """Why there is no newer snapshot, in the source's words; None: there is no trouble."""
    is_usable: bool
    """Whether there is a snapshot of at most two steps ago."""
    is_fetching: bool
    """Whether a fetch is under way that is not slow yet."""
    lost_at: float
    """Since when fetches fail, on the source's clock; `now` if they do not."""
    clock_seconds: float
    """The time on this process's clock."""
    step_seconds: float
    """How often the source can have new samples."""

    def now_for(self, spec: TriggerSpec) -> float:
        """Return the time up to which ages count; a lag beyond `maxAge` counts as age."""
        return self.now if self.lag_seconds <= spec.max_age_seconds else self.present

    @property
    def present(self) -> float:
        """The time that calls are made at, also where the samples are of an earlier one."""
        return self.now + self.lag_seconds

    @property
    def age_seconds(self) -> float | None:
        return None if self.snapshot is None else self.now - self.snapshot.at

    def is_cut_off(self, spec: TriggerSpec) -> bool:
        """Tell whether the source does not answer, and its last samples are too old to be used."""
        if self.trouble is None:
            return False
        return self.snapshot is None or self.now_for(spec) - self.snapshot.at > spec.max_age_seconds


class SharedSnapshot:
    """The snapshots of one (source, signal, profile)."""

    def __init__(
        self,
        key: SnapshotKey,
        owner: tuple[str, str],
        source: SharedSource,
        flight: SingleFlight,
        refusal: str | None,
    ) -> None:
        self.owner = owner
        """The source, and the namespace of the ScaledObject that asked first."""
        self.snapshot: Snapshot | None = None
        self._refusal = refusal
        """Why nothing is fetched; None: it may be."""
        self._key = key
        self._samples, self._state = source.samples, source.state
        self._snapshot_fetcher = SnapshotFetcher(source.samples, source.evidence_fetcher)
        self.flight, self._clock = flight, flight.clock
        self._failure: str | None = None
        """Why the newest fetch failed; None: it did not."""
        self._failing_since = float("-inf")
        """The first instant that could not be fetched then, on the source's clock."""
        self._wanted: TTLCache[SnapshotQuery, None] = TTLCache(
            math.inf, FORGET_SECONDS, flight.clock
        )
        """What triggers ask for."""
        self._span_seconds = 0.0
        self._tried = float("-inf")
        """The newest instant of which a fetch was tried."""

    async def read(
        self, snapshot_query: SnapshotQuery, deadline: float, suffices: Callable[[Reading], bool]
    ) -> Reading:
        """Return what is known as soon as it suffices, and otherwise at the deadline."""
        self._wanted[snapshot_query] = None
        has_time = True
        while True:
            reading = self._reading(snapshot_query)
            if suffices(reading) or not has_time:
                return reading
            has_time = await self._wait(deadline)

    def _reading(self, snapshot_query: SnapshotQuery) -> Reading:
        """Return what is known now, after a fetch was started if one is due."""
        samples, covers = self._samples, self._covers(snapshot_query)
        instant = samples.instant()
        is_usable = covers and abs(self._ahead_steps(instant)) <= USABLE_STEPS
        is_under_way = self.flight.is_under_way
        if not is_under_way and self._is_due(instant, is_usable=is_usable):
            self.flight.launch(self._fetch, f"fetch {self._key.source} {self._key.signal}")
            self._tried, is_under_way = instant, True
        now, slow = samples.now(), self.flight.trouble
        trouble = self._refusal or self._failure
        if trouble is None and slow is not None:
            trouble = f"source {self._key.source}: {slow}"
        return Reading(
            snapshot=self.snapshot if covers else None,
            now=now,
            lag_seconds=samples.lag_seconds,
            trouble=trouble,
            is_usable=is_usable,
            is_fetching=is_under_way and slow is None,
            lost_at=now if self._failure is None else self._failing_since,
            clock_seconds=self._clock(),
            step_seconds=samples.step_seconds,
        )

    @property
    def due_seconds(self) -> float:
        """The time until there can be a newer snapshot.

        A fetch that is slow is looked at again when it has taken twice the time.
        """
        if self.flight.is_under_way:
            return max(self._clock(), self.flight.slow_at) - self.flight.launched_at
        samples = self._samples
        return samples.instant() + samples.step_seconds + samples.settled_seconds - samples.now()

    @property
    def is_idle(self) -> bool:
        """Whether no trigger has asked for long, so that it can be dropped with all its data."""
        return not self.flight.is_under_way and not self._wanted

    def _covers(self, snapshot_query: SnapshotQuery) -> bool:
        """Tell whether the snapshot holds everything that `snapshot_query` is about."""
        if self.snapshot is None or snapshot_query.span_seconds > self._span_seconds:
            return False
        return snapshot_query.namespaces <= self.snapshot.namespaces.keys()

    def _is_due(self, instant: float, *, is_usable: bool) -> bool:
        """Tell whether there is a newer instant, or this one for a query that is not covered."""
        if self._refusal is not None:
            return False
        if instant > self._tried or self._is_set_back(instant):
            return True
        return self._failure is None and not is_usable and self._until_wider() <= 0

    def _is_set_back(self, instant: float) -> bool:
        """Tell whether the clock is farther behind the snapshot than it is worth waiting for."""
        return self._ahead_steps(instant) > USABLE_STEPS

    def _ahead_steps(self, instant: float) -> float:
        at = -math.inf if self.snapshot is None else self.snapshot.at
        return (at - instant) / self._samples.step_seconds

    def _until_wider(self) -> float:
        return self.flight.launched_at + WIDEN_SECONDS - self._clock()

    async def _wait(self, deadline: float) -> bool:
        """Wait for the running fetch or the next start; tell whether there was time for it."""
        if self.flight.is_under_way:
            return await self.flight.wait(deadline) or deadline > self.flight.slow_at
        left_seconds = max(0.0, deadline - self._clock())
        pause_seconds = max(0.0, self._until_wider())
        await asyncio.sleep(min(left_seconds, pause_seconds))
        return left_seconds > pause_seconds

    async def _fetch(self) -> None:
        try:
            await self._samples.synchronize()
            self._tried = self._samples.instant()
            # The first one may find evidence that was kept while no trigger asked.
            if self.snapshot is None or self._is_set_back(self._tried):
                self._snapshot_fetcher.forget_after(self._tried)
            elif self._tried < self.snapshot.at:
                return  # until the clock has caught up with the snapshot
            snapshot_query = merged(list(self._wanted))
            self.snapshot = await self._snapshot_fetcher.fetch(snapshot_query, self._tried)
            self._span_seconds = snapshot_query.span_seconds
        except errors.SourceError as error:
            if self._failure is None:
                self._failing_since = self._tried
            self._failure = f"source {self._key.source}: {error}"
            self._state.failed(self._key, error)
        else:
            self._failure = None
            self._state.succeeded(self._key, self.snapshot)


LOOKS = 20
"""At so many instants of a new namespace's past GPUs without their pods are looked for at most:
small queries, and only for pods that are not shown any more."""


class SnapshotFetcher:
    """Fetches the snapshots of one shared snapshot, one at a time."""

    def __init__(self, samples: Samples, evidence_fetcher: EvidenceFetcher) -> None:
        self._samples, self._evidence_fetcher = samples, evidence_fetcher
        self._reported_pods = ReportedPods()
        self._watched: dict[str, float] = {}
        self._past_refused_at = float("-inf")

    def forget_after(self, at: float) -> None:
        """Forget what was learnt at later instants: the source's clock was set back."""
        self._reported_pods, self._watched = ReportedPods(), {}
        self._past_refused_at = float("-inf")
        self._evidence_fetcher.forget_after(at)

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Snapshot:
        """Return a snapshot of everything in `snapshot_query` at the instant `at`.

        Raises:
            errors.SourceError: the source gave no usable answer; what is remembered is kept.
        """
        # The present first: while the source is away, the past is not queried.
        observation, pod_statuses = await self._fetch_both(snapshot_query, at)
        observation, invented = await asyncio.to_thread(attributed, observation, pod_statuses)
        reported_pods = self._reported_pods
        is_seamless = at - reported_pods.at < snapshot_query.span_seconds
        before = self._watched if is_seamless else {}
        watched = {name: before.get(name, at) for name in snapshot_query.namespaces}
        new_namespaces = self._new_namespaces(watched, at)
        of_new = replace(snapshot_query, namespaces=new_namespaces)
        if new_namespaces:
            try:
                reported_pods = await self._with_past(reported_pods, of_new, at)
                watched |= dict.fromkeys(new_namespaces, float("-inf"))
            except errors.SourceError:
                # A source that cannot answer this larger query still answers the small ones. A pod
                # that never reported is then believed absent only after an hour of watching.
                self._past_refused_at = at
        reported_pods = confined(reported_pods, snapshot_query.namespaces, invented)
        reported_pods = await self._advance(reported_pods, observation, snapshot_query)
        if new_namespaces:
            reported_pods = await self._look_back(reported_pods, observation, of_new)
        self._reported_pods, self._watched = reported_pods, watched
        recorded = {name for name, since in watched.items() if at - since >= REMEMBERED_SECONDS}
        return await asyncio.to_thread(
            build_snapshot,
            reported_pods,
            pod_statuses,
            observation,
            snapshot_query.namespaces,
            recorded,
        )

    async def _fetch_both(
        self, snapshot_query: SnapshotQuery, at: float
    ) -> tuple[Observation, PodStatuses]:
        """Fetch samples and evidence at the same time; only the samples can fail."""
        evidence_task = asyncio.create_task(
            self._evidence_fetcher.pod_statuses(snapshot_query.namespaces, at),
            name=f"evidence at {at:g}",
        )
        try:
            return await self._samples.fetch(snapshot_query, at), await evidence_task
        finally:
            evidence_task.cancel()
            await asyncio.wait({evidence_task})

    def _new_namespaces(self, watched: Mapping[str, float], at: float) -> frozenset[str]:
        """Return the namespaces of which the last hour must be queried now."""
        any_new = bool(watched.keys() - self._watched.keys())
        if not any_new and at - self._past_refused_at < RETRY_SECONDS:
            return frozenset()
        return frozenset(name for name, since in watched.items() if at - since < REMEMBERED_SECONDS)

    async def _with_past(
        self, reported_pods: ReportedPods, snapshot_query: SnapshotQuery, at: float
    ) -> ReportedPods:
        """Return the pods, with those of the last hour of new namespaces."""
        history = await self._samples.history(snapshot_query, at)
        if history is None:
            return reported_pods
        past_pods = await self._advance(ReportedPods(), history, snapshot_query)
        last_two = history.instants[-2:]
        return join(reported_pods, past_pods, last_two[-1] - last_two[0])

    async def _look_back(
        self,
        reported_pods: ReportedPods,
        observation: Observation,
        snapshot_query: SnapshotQuery,
    ) -> ReportedPods:
        """Return the pods with what a process that watched new namespaces would have noticed.

        Where an exporter has lost its map of pods, a bursty GPU is busy at some instants only.
        """
        if observation.is_selective:
            return reported_pods
        lost = absent_gpus(confined(reported_pods, snapshot_query.namespaces), observation)
        *earlier, newest = observation.instants
        since = newest - snapshot_query.window_seconds
        instants = [time for time in earlier if lost and time > since]
        for at in instants[:: math.ceil(len(instants) / LOOKS) or 1]:
            reported_pods = busy_before(reported_pods, await self._samples.locate(lost, at), at)
        return reported_pods

    async def _advance(
        self, reported_pods: ReportedPods, observation: Observation, snapshot_query: SnapshotQuery
    ) -> ReportedPods:
        # A GPU reported without a pod means something only if the source would show the pod too.
        lost = frozenset[str]()
        if not observation.is_selective:
            lost = await asyncio.to_thread(absent_gpus, reported_pods, observation)
        reports = await self._samples.locate(lost, observation.at) if lost else GpuReports()
        kept = ABSENT_PODS_KEPT if snapshot_query.query is None else ABSENT_ELEMENTS_KEPT
        return await asyncio.to_thread(
            advance_reported_pods, reported_pods, observation, reports, kept
        )


OWN_QUERIES = 100
"""To one source: each is two or three queries per step, and 3 MiB of samples at most."""
OWN_QUERIES_PER_NAMESPACE = 20
"""One tenant does not take them all."""


class Snapshots:
    """All shared snapshots of this process; each is created when it is first asked for."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        observe: facts.Observer,
        clock: Callable[[], float],
        slow_seconds: float,
    ) -> None:
        """Take the sources to fetch from, by the name that triggers use.

        `slow_seconds` is how long callers wait for a fetch.
        """
        self._sources, self._observe = sources, observe
        self._clock, self._slow_seconds = clock, slow_seconds
        self._shared_snapshots: dict[SnapshotKey, SharedSnapshot] = {}
        self._shared_sources = {
            name: self._shared_source(name, source)
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
                _look(source, self._shared_sources[name].state)
                for name, source in self._sources.items()
                if source.of_namespace is None
            )
        )

    async def down(self, wait_seconds: float) -> list[SourceDown]:
        """Return the sources that do not answer, or of which nothing is known after this time."""
        states = [shared.state for shared in self._shared_sources.values()]
        with contextlib.suppress(TimeoutError):
            waiting = asyncio.gather(*(state.known.wait() for state in states))
            await asyncio.wait_for(waiting, wait_seconds)
        return [down for state in states if (down := state.down()) is not None]

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
        source = self._shared_sources.get(key.source)
        if source is None:
            of_namespace = self._sources[spec.source].within(spec.pods.namespace)
            source = self._shared_source(key.source, of_namespace)
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

    def _shared_source(self, name: str, source: Source) -> SharedSource:
        state = SourceState(name, source.url, self._observe, self._clock)
        return SharedSource(source.samples, state, EvidenceFetcher(name, source, self._observe))

    def _drop_idle(self) -> None:
        """Drop snapshots that are not asked for any more: namespaces and queries come and go.

        Only where a new one takes their place. A snapshot remembers which pods there were, and KEDA
        may ask again after a pause.
        """
        idle = [key for key, shared in self._shared_snapshots.items() if shared.is_idle]
        for key in idle:
            del self._shared_snapshots[key]
            self._shared_sources[key.source].state.let_go(key)
        named = self._sources.keys() | {key.source for key in self._shared_snapshots}
        self._shared_sources = {
            name: shared for name, shared in self._shared_sources.items() if name in named
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
