"""Fetches snapshots from the source and the cluster, and keeps what is remembered between fetches.

The queries build on each other: the present samples, then the last hour (only for namespaces that
are new, or were not watched), then where the GPUs of disappeared pods are.

The evidence about the cluster's pods is fetched at the same time: once per instant, for all signals
of a source, from the first provider that answers. If none does, that is no error: then only the
exporters' evidence is used. Each change of the evidence source is reported.
"""

import asyncio
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Samples, Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.build import build_snapshot
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.snapshot.pod_status import PodStatuses, advance_pod_statuses, silenced
from keda_gpu_scaler.snapshot.reported_pods import (
    ReportedPods,
    absent_gpus,
    advance_reported_pods,
    busy_before,
    confined,
    join,
)
from keda_gpu_scaler.snapshot.snapshot import Snapshot
from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.telemetry import facts

ANSWER_SECONDS = 2.0
"""How long a snapshot waits for evidence; callers wait at most 2.5 s for a snapshot."""


class EvidenceFetcher:
    """Fetches what the cluster behind one source says; shared by the source's signals."""

    def __init__(self, name: str, source: Source, observe: facts.Observer = facts.ignore) -> None:
        """Take the source to fetch evidence for.

        Args:
            name: the source's name.
            source: its clock is the valid one, and it has the providers of evidence.
            observe: is called when the evidence source changes.
        """
        self._name, self._observe = name, observe
        self._clock, self._providers = source.samples.now, source.evidence_providers
        self._pod_statuses = PodStatuses()
        self._wanted: dict[str, float] = {}
        self._asked: tuple[float, frozenset[str]] = (float("-inf"), frozenset())
        self._evidence_source: EvidenceSource | None = None
        self._lock = asyncio.Lock()

    async def pod_statuses(self, namespaces: Collection[str], at: float) -> PodStatuses:
        """Return what is known of the pods of these namespaces at or before the instant `at`."""
        self._wanted |= dict.fromkeys(namespaces, at)
        async with self._lock:
            asked_at, asked = self._asked
            if at > asked_at or not asked.issuperset(namespaces):
                await self._ask(max(at, asked_at))
        return self._pod_statuses

    def forget_after(self, at: float) -> None:
        """Forget everything if it was asked about later instants: the clock was set back."""
        if self._asked[0] > at:
            self._pod_statuses = PodStatuses()
            self._asked = float("-inf"), frozenset()

    async def _ask(self, at: float) -> None:
        self._wanted = {
            name: when for name, when in self._wanted.items() if at - when <= FORGET_SECONDS
        }
        wanted, troubles = frozenset(self._wanted), list[str]()
        self._asked = at, wanted
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                said = await self._said(wanted, at, troubles)
        except TimeoutError:
            said, troubles = None, [*troubles, f"no answer within {ANSWER_SECONDS:g} s"]
        if said is not None and not said.is_available:
            troubles.append("kube-state-metrics shows nothing")
        self._pod_statuses = await asyncio.to_thread(self._after, said, wanted, at)
        self._state(at, troubles)

    def _after(self, said: Evidence | None, wanted: frozenset[str], at: float) -> PodStatuses:
        """Return the statuses after an answer, or after no answer."""
        is_available = said is not None and said.is_available
        if (
            self._pod_statuses.watch.evidence_source is EvidenceSource.KUBERNETES
            and not is_available
        ):
            return silenced(self._pod_statuses)
        return (
            self._pod_statuses
            if said is None
            else advance_pod_statuses(self._pod_statuses, said, wanted, at)
        )

    async def _said(
        self, wanted: frozenset[str], at: float, troubles: list[str]
    ) -> Evidence | None:
        """Return the strongest available evidence; add the errors of others to `troubles`."""
        for provider in self._providers:
            try:
                said = await provider.evidence(wanted, at, self._clock())
            except errors.SourceError as error:
                troubles.append(f"{provider.name}: {error}")
            else:
                if said is not None:
                    return said
                troubles.append(f"the source has no {provider.name}")
        if not self._providers:
            troubles.append("the source has no evidence of pods")
        return None

    def _state(self, at: float, troubles: list[str]) -> None:
        """Report the evidence source, if it has changed."""
        evidence_source = self._pod_statuses.evidence_source(at)
        if evidence_source is not self._evidence_source:
            self._evidence_source = evidence_source
            answers = (
                []
                if evidence_source is EvidenceSource.EXPORTERS
                else [f"{_NAMES[evidence_source]} answers"]
            )
            reason = "; ".join([*answers, *troubles])
            self._observe(facts.EvidenceChanged(self._name, evidence_source, reason))


_NAMES = {
    EvidenceSource.KUBERNETES: "the Kubernetes API",
    EvidenceSource.KUBE_STATE_METRICS: "kube-state-metrics",
}


HOUR_SECONDS = 3600.0
"""A pod not seen for this long did not exist; the sources' history reaches as far back."""
RETRY_SECONDS = 300.0
"""A failed history query is repeated after this time."""
LOOKS = 20
"""At so many instants of a new namespace's past GPUs without their pods are looked for at most:
small queries, and only for pods that are not shown any more."""


class _Past(NamedTuple):
    """What was before a namespace was watched."""

    reported_pods: ReportedPods
    step_seconds: float = 0.0
    """The time between two of its instants."""


def _step_seconds(history: Observation) -> float:
    return history.at - min(history.instants[-2:])


class SnapshotFetcher:
    """Fetches the snapshots of one shared snapshot, one at a time."""

    def __init__(
        self, samples: Samples, evidence_fetcher: EvidenceFetcher, forget_seconds: float
    ) -> None:
        """Take the samples of a source and the fetcher of its evidence.

        Args:
            samples: the samples of a source.
            evidence_fetcher: fetches what the cluster says; shared by the source's signals.
            forget_seconds: how long pods that ended are remembered.
        """
        self._samples, self._evidence_fetcher = samples, evidence_fetcher
        self._forget_seconds = forget_seconds
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
        observation, pod_statuses = await self._both(snapshot_query, at)
        reported_pods = confined(self._reported_pods, snapshot_query.namespaces)
        before = self._watched if self._is_seamless(snapshot_query, at) else {}
        watched = {name: before.get(name, at) for name in snapshot_query.namespaces}
        new_namespaces = self._new_namespaces(watched, at)
        if new_namespaces:
            past = await self._past(replace(snapshot_query, namespaces=new_namespaces), at)
            if past is not None:
                reported_pods = join(reported_pods, past.reported_pods, past.step_seconds)
                watched |= dict.fromkeys(new_namespaces, float("-inf"))
        reported_pods = await self._advanced(reported_pods, observation)
        if new_namespaces:
            reported_pods = await self._looked_back(
                reported_pods, observation, replace(snapshot_query, namespaces=new_namespaces)
            )
        self._reported_pods = reported_pods
        self._watched = watched
        recorded = {name for name, since in watched.items() if at - since >= HOUR_SECONDS}
        return await asyncio.to_thread(
            build_snapshot,
            self._reported_pods,
            pod_statuses,
            observation,
            snapshot_query.namespaces,
            recorded,
        )

    async def _both(
        self, snapshot_query: SnapshotQuery, at: float
    ) -> tuple[Observation, PodStatuses]:
        """Fetch samples and evidence at the same time; only the samples can fail."""
        asking = asyncio.create_task(
            self._evidence_fetcher.pod_statuses(snapshot_query.namespaces, at),
            name=f"evidence at {at:g}",
        )
        try:
            return await self._samples.fetch(snapshot_query, at), await asking
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    def _is_seamless(self, snapshot_query: SnapshotQuery, at: float) -> bool:
        """Tell whether this fetch overlaps the last one, without a gap."""
        return (
            self._reported_pods.at is not None
            and at - self._reported_pods.at < snapshot_query.span_seconds
        )

    def _new_namespaces(self, watched: Mapping[str, float], at: float) -> frozenset[str]:
        """Return the namespaces of which the last hour must be queried now."""
        any_new = bool(watched.keys() - self._watched.keys())
        if not any_new and at - self._past_refused_at < RETRY_SECONDS:
            return frozenset()
        return frozenset(name for name, since in watched.items() if at - since < HOUR_SECONDS)

    async def _past(self, snapshot_query: SnapshotQuery, at: float) -> _Past | None:
        """Return the last hour of new namespaces; None if the query fails.

        A source that cannot answer this larger query still answers the small ones. A pod that never
        reported is then believed absent only after an hour of watching.
        """
        try:
            history = await self._samples.history(snapshot_query, at)
            if history is None:
                return _Past(ReportedPods())
            return _Past(await self._advanced(ReportedPods(), history), _step_seconds(history))
        except errors.SourceError:
            self._past_refused_at = at
            return None

    async def _looked_back(
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
        since = observation.at - snapshot_query.window_seconds
        instants = [time for time in observation.instants[:-1] if lost and time > since]
        for at in instants[:: math.ceil(len(instants) / LOOKS) or 1]:
            reported_pods = busy_before(reported_pods, await self._samples.locate(lost, at), at)
        return reported_pods

    async def _advanced(
        self, reported_pods: ReportedPods, observation: Observation
    ) -> ReportedPods:
        # A GPU reported without a pod means something only if the source would show the pod too.
        lost = frozenset[str]()
        if not observation.is_selective:
            lost = await asyncio.to_thread(absent_gpus, reported_pods, observation)
        reports = await self._samples.locate(lost, observation.at) if lost else GpuReports()
        return await asyncio.to_thread(
            advance_reported_pods, reported_pods, observation, reports, self._forget_seconds
        )
