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

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Samples, Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.attribution import attributed
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource
from keda_gpu_scaler.snapshot.joining import build_snapshot
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.snapshot.pod_status import PodStatuses, advance_pod_statuses, silenced
from keda_gpu_scaler.snapshot.reported_pods import (
    ABSENT_PODS_KEPT,
    ReportedPods,
    absent_gpus,
    advance_reported_pods,
    busy_before,
    confined,
    join,
    without,
)
from keda_gpu_scaler.snapshot.snapshot import Snapshot
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.tracked import FORGET_SECONDS
from keda_gpu_scaler.times import EVIDENCE_SECONDS, REMEMBERED_SECONDS, RETRY_SECONDS

_NAMES = {
    EvidenceSource.KUBERNETES: "the Kubernetes API",
    EvidenceSource.KUBE_STATE_METRICS: "kube-state-metrics",
}


class EvidenceFetcher:
    """Fetches what the cluster behind one source says; shared by the source's signals."""

    def __init__(self, name: str, source: Source, observe: facts.Observer = facts.ignore) -> None:
        self._name, self._observe = name, observe
        self._clock, self._providers = source.samples.now, source.evidence_providers
        self._pod_statuses = PodStatuses()
        self._wanted_at: dict[str, float] = {}
        """When each namespace was last asked for."""
        self._fetched_at = float("-inf")
        self._fetched_namespaces: frozenset[str] = frozenset()
        self._evidence_source: EvidenceSource | None = None
        self._lock = asyncio.Lock()

    async def pod_statuses(self, namespaces: Collection[str], at: float) -> PodStatuses:
        """Return what is known of the pods of these namespaces at or before the instant `at`."""
        self._wanted_at |= dict.fromkeys(namespaces, at)
        async with self._lock:
            if at > self._fetched_at or not self._fetched_namespaces.issuperset(namespaces):
                await self._fetch(max(at, self._fetched_at))
        return self._pod_statuses

    def forget_after(self, at: float) -> None:
        """Forget everything if it was asked about later instants: the clock was set back."""
        if self._fetched_at > at:
            self._pod_statuses = PodStatuses()
            self._fetched_at, self._fetched_namespaces = float("-inf"), frozenset()

    async def _fetch(self, at: float) -> None:
        self._wanted_at = {
            name: when for name, when in self._wanted_at.items() if at - when <= FORGET_SECONDS
        }
        namespaces, troubles = frozenset(self._wanted_at), list[str]()
        evidence = None
        try:
            async with asyncio.timeout(EVIDENCE_SECONDS):
                evidence = await self._strongest_evidence(namespaces, at, troubles)
        except TimeoutError:
            troubles.append(f"no answer within {EVIDENCE_SECONDS:g} s")
        is_available = evidence is not None and evidence.is_available
        if evidence is not None and not is_available:
            troubles.append("kube-state-metrics shows nothing")
        watched = self._pod_statuses.watch.evidence_source
        if watched is EvidenceSource.KUBERNETES and not is_available:
            self._pod_statuses = silenced(self._pod_statuses)
        elif evidence is not None:
            self._pod_statuses = await asyncio.to_thread(
                advance_pod_statuses, self._pod_statuses, evidence, namespaces, at
            )
        # Not before: if the samples of the one who asks cannot be had, this is cancelled.
        self._fetched_at, self._fetched_namespaces = at, namespaces
        evidence_source = self._pod_statuses.evidence_source(at)
        if evidence_source is not self._evidence_source:
            self._evidence_source = evidence_source
            if evidence_source is not EvidenceSource.EXPORTERS:
                troubles.insert(0, f"{_NAMES[evidence_source]} answers")
            reason = "; ".join(troubles)
            self._observe(facts.EvidenceChanged(self._name, evidence_source, reason))

    async def _strongest_evidence(
        self, namespaces: frozenset[str], at: float, troubles: list[str]
    ) -> Evidence | None:
        """Return the strongest available evidence; add the errors of others to `troubles`."""
        for provider in self._providers:
            try:
                evidence = await provider.evidence(namespaces, at, self._clock())
            except errors.SourceError as error:
                troubles.append(f"{provider.name}: {error}")
            else:
                if evidence is not None:
                    return evidence
                troubles.append(f"the source has no {provider.name}")
        if not self._providers:
            troubles.append("the source has no evidence of pods")
        return None


LOOKS = 20
"""At so many instants of a new namespace's past GPUs without their pods are looked for at most:
small queries, and only for pods that are not shown any more."""


class SnapshotFetcher:
    """Fetches the snapshots of one shared snapshot, one at a time."""

    def __init__(
        self,
        samples: Samples,
        evidence_fetcher: EvidenceFetcher,
        absent_kept: int = ABSENT_PODS_KEPT,
    ) -> None:
        """Fetch from both, and remember so many pods that are not shown any more."""
        self._samples, self._evidence_fetcher = samples, evidence_fetcher
        self._absent_kept = absent_kept
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
        reported_pods = confined(self._reported_pods, snapshot_query.namespaces)
        is_seamless = at - reported_pods.at < snapshot_query.span_seconds
        before = self._watched if is_seamless else {}
        watched = {name: before.get(name, at) for name in snapshot_query.namespaces}
        new_namespaces = self._new_namespaces(watched, at)
        if new_namespaces:
            of_new = replace(snapshot_query, namespaces=new_namespaces)
            try:
                reported_pods = await self._with_past(reported_pods, of_new, at)
                watched |= dict.fromkeys(new_namespaces, float("-inf"))
            except errors.SourceError:
                # A source that cannot answer this larger query still answers the small ones. A pod
                # that never reported is then believed absent only after an hour of watching.
                self._past_refused_at = at
            reported_pods = await self._advance(without(reported_pods, invented), observation)
            reported_pods = await self._look_back(reported_pods, observation, of_new)
        else:
            reported_pods = await self._advance(without(reported_pods, invented), observation)
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
        past_pods = await self._advance(ReportedPods(), history)
        step_seconds = history.at - min(history.instants[-2:])
        return join(reported_pods, past_pods, step_seconds)

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
        since = observation.at - snapshot_query.window_seconds
        instants = [time for time in observation.instants[:-1] if lost and time > since]
        for at in instants[:: math.ceil(len(instants) / LOOKS) or 1]:
            reported_pods = busy_before(reported_pods, await self._samples.locate(lost, at), at)
        return reported_pods

    async def _advance(self, reported_pods: ReportedPods, observation: Observation) -> ReportedPods:
        # A GPU reported without a pod means something only if the source would show the pod too.
        lost = frozenset[str]()
        if not observation.is_selective:
            lost = await asyncio.to_thread(absent_gpus, reported_pods, observation)
        reports = await self._samples.locate(lost, observation.at) if lost else GpuReports()
        return await asyncio.to_thread(
            advance_reported_pods, reported_pods, observation, reports, self._absent_kept
        )
