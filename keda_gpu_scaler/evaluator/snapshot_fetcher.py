"""Takes one snapshot: asks the source and the cluster, and keeps what has to be remembered between.

The queries build on each other: what is there now, what was there in the last hour (only for
namespaces that are new, or were out of sight), and where the GPUs are whose pods are gone.

Beside them the cluster is asked about its pods: once per instant, for all signals of a source; the
Kubernetes API first, where it is asked at all, then the source. That neither can answer is no
error: what exporters show is then all there is, and that is stated whenever it changes.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Cluster, Source
from keda_gpu_scaler.query.snapshot_query import Need
from keda_gpu_scaler.snapshot.build import build_snapshot
from keda_gpu_scaler.snapshot.evidence import Basis, Evidence
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.snapshot.pod_status import Roster, advance_roster, silenced
from keda_gpu_scaler.snapshot.reported_pods import (
    Ledger,
    absent_gpus,
    advance_ledger,
    confined,
    join,
)
from keda_gpu_scaler.snapshot.snapshot import Snapshot
from keda_gpu_scaler.telemetry import facts

ANSWER_SECONDS = 2.0
"""A snapshot waits no longer for evidence: nobody waits longer than 2.5 s for a snapshot."""
FORGET_SECONDS = 600.0
"""Namespaces nobody asked about for this long are no longer asked about."""


class Witness:
    """What the cluster behind one source says; shared by the source's signals."""

    def __init__(
        self,
        name: str,
        source: Source,
        observe: facts.Observer = facts.ignore,
        cluster: Cluster | None = None,
    ) -> None:
        """Know nothing yet.

        Args:
            name: the source's.
            source: whose clock is the right one, and where evidence may come from.
            observe: is told on what decisions rest from now on.
            cluster: the Kubernetes API, where it is asked: its word goes before the source's.
        """
        self._name, self._source, self._observe = name, source, observe
        self._cluster = cluster
        self._roster = Roster()
        self._wanted: dict[str, float] = {}
        self._asked: tuple[float, frozenset[str]] = (float("-inf"), frozenset())
        self._basis: Basis | None = None
        self._lock = asyncio.Lock()

    async def roster(self, namespaces: Collection[str], at: float) -> Roster:
        """Return what is known of the pods of these namespaces at the instant `at`, or before."""
        self._wanted |= dict.fromkeys(namespaces, at)
        async with self._lock:
            asked_at, asked = self._asked
            if at > asked_at or not asked.issuperset(namespaces):
                await self._ask(max(at, asked_at))
        return self._roster

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
        if said is not None and not said.speaks:
            troubles.append("kube-state-metrics shows nothing")
        self._roster = await asyncio.to_thread(self._after, said, wanted, at)
        self._state(at, troubles)

    def _after(self, said: Evidence | None, wanted: frozenset[str], at: float) -> Roster:
        """Return the roster after an answer, or after none."""
        speaks = said is not None and said.speaks
        if self._roster.watch.basis is Basis.KUBERNETES and not speaks:
            return silenced(self._roster)
        return self._roster if said is None else advance_roster(self._roster, said, wanted, at)

    async def _said(
        self, wanted: frozenset[str], at: float, troubles: list[str]
    ) -> Evidence | None:
        """Return the word of the strongest that has one; what is wrong with the others is noted."""
        if self._cluster is not None:
            try:
                return await self._cluster.evidence(wanted, at, self._source.now())
            except errors.SourceError as error:
                troubles.append(f"the Kubernetes API: {error}")
        try:
            said = await self._source.evidence(wanted, at)
        except errors.SourceError as error:
            troubles.append(str(error))
            return None
        if said is None:
            troubles.append("the source has no kube-state-metrics")
        return said

    def _state(self, at: float, troubles: list[str]) -> None:
        """State what decisions rest on, if that has changed."""
        basis = self._roster.basis(at)
        if basis is not self._basis:
            self._basis = basis
            answers = [] if basis is Basis.EXPORTERS else [f"{_NAMES[basis]} answers"]
            reason = "; ".join([*answers, *troubles])
            self._observe(facts.EvidenceChanged(self._name, basis, reason))


_NAMES = {
    Basis.KUBERNETES: "the Kubernetes API",
    Basis.KUBE_STATE_METRICS: "kube-state-metrics",
}


HOUR_SECONDS = 3600.0
"""What is not seen for so long was not there; the sources' history reaches as far back."""
RETRY_SECONDS = 300.0
"""A history that could not be had is asked for again after this time."""


class Collector:
    """Takes the snapshots of one feed, one at a time."""

    def __init__(self, source: Source, witness: Witness, forget_seconds: float) -> None:
        """Start with an empty ledger.

        Args:
            source: where samples come from.
            witness: tells what the cluster says; it is the source's, and shared.
            forget_seconds: how long pods that ended are remembered.
        """
        self._source, self._witness = source, witness
        self._forget_seconds = forget_seconds
        self._ledger = Ledger()
        self._watched: dict[str, float] = {}
        self._past_refused_at = float("-inf")

    async def take(self, need: Need, at: float) -> Snapshot:
        """Return a snapshot of everything in `need` at the instant `at`.

        Raises:
            errors.SourceError: the source gave no usable answer; what was known stays as it was.
        """
        # First what is there now: while the source is away, nobody is asked about the past.
        observation, roster = await self._both(need, at)
        ledger = confined(self._ledger, need.namespaces)
        before = self._watched if self._is_seamless(need, at) else {}
        watched = {name: before.get(name, at) for name in need.namespaces}
        strangers = self._strangers(watched, at)
        past = await self._past(replace(need, namespaces=strangers), at) if strangers else None
        if past is not None:
            ledger = join(ledger, past)
            watched |= dict.fromkeys(strangers, float("-inf"))
        self._ledger, self._watched = await self._advanced(ledger, observation), watched
        recorded = {name for name, since in watched.items() if at - since >= HOUR_SECONDS}
        return await asyncio.to_thread(
            build_snapshot,
            self._ledger,
            roster,
            observation,
            need.namespaces,
            recorded,
            self._source.step_seconds,
        )

    async def _both(self, need: Need, at: float) -> tuple[Observation, Roster]:
        """Ask for samples and for evidence at once; only the samples can fail."""
        asking = asyncio.create_task(
            self._witness.roster(need.namespaces, at), name=f"evidence at {at:g}"
        )
        try:
            return await self._source.fetch(need, at), await asking
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    def _is_seamless(self, need: Need, at: float) -> bool:
        """Tell whether what is fetched now joins what was fetched last."""
        return self._ledger.at is not None and at - self._ledger.at < need.span_seconds

    def _strangers(self, watched: Mapping[str, float], at: float) -> frozenset[str]:
        """Return the namespaces whose last hour is to be asked about now, if there are any."""
        anybody_new = bool(watched.keys() - self._watched.keys())
        if not anybody_new and at - self._past_refused_at < RETRY_SECONDS:
            return frozenset()
        return frozenset(name for name, since in watched.items() if at - since < HOUR_SECONDS)

    async def _past(self, need: Need, at: float) -> Ledger | None:
        """Return the last hour of namespaces that are new here; None if it cannot be had.

        A source that cannot answer this larger question still serves the small ones: what never
        reported is then believed absent only after an hour of watching.
        """
        try:
            history = await self._source.history(need, at)
            return Ledger() if history is None else await self._advanced(Ledger(), history)
        except errors.SourceError:
            self._past_refused_at = at
            return None

    async def _advanced(self, ledger: Ledger, observation: Observation) -> Ledger:
        # A GPU that is reported without a pod says something only where the pod would be shown too.
        selective = observation.is_selective
        lost = frozenset[str]() if selective else absent_gpus(ledger, observation)
        reports = await self._source.locate(lost, observation.at) if lost else GpuReports()
        return await asyncio.to_thread(
            advance_ledger, ledger, observation, reports, self._forget_seconds
        )
