"""Asks what the cluster says of its pods: once per instant, for everybody who wants it.

The Kubernetes API first, where it is asked at all, then the source. That nobody can say, or not
now, is no error: what exporters show is then all there is, and that is stated whenever it changes.
"""

import asyncio
from collections.abc import Collection

from keda_gpu_scaler import errors, facts, roster
from keda_gpu_scaler.cluster import Cluster
from keda_gpu_scaler.evidence import Basis, Evidence
from keda_gpu_scaler.roster import Roster
from keda_gpu_scaler.source import Source

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
            return roster.silenced(self._roster)
        return self._roster if said is None else roster.advance(self._roster, said, wanted, at)

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
