"""Asks one source what the cluster says of its pods: once per instant, for everybody who wants it.

A source that cannot say, or not now, is no error: what exporters show is then all there is, and
that is stated whenever it changes.
"""

import asyncio
from collections.abc import Collection

from keda_gpu_scaler import errors, facts, roster
from keda_gpu_scaler.evidence import Basis
from keda_gpu_scaler.roster import Roster
from keda_gpu_scaler.source import Source

ANSWER_SECONDS = 2.0
"""A snapshot waits no longer for evidence: nobody waits longer than 2.5 s for a snapshot."""
FORGET_SECONDS = 600.0
"""Namespaces nobody asked about for this long are no longer asked about."""


class Witness:
    """What the cluster behind one source says; shared by the source's signals."""

    def __init__(self, name: str, source: Source, observe: facts.Observer = facts.ignore) -> None:
        """Know nothing yet.

        Args:
            name: the source's.
            source: where the evidence comes from.
            observe: is told on what decisions rest from now on.
        """
        self._name, self._source, self._observe = name, source, observe
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
        wanted = frozenset(self._wanted)
        self._asked = at, wanted
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                said = await self._source.evidence(wanted, at)
        except TimeoutError:
            return self._stated(at, f"no answer within {ANSWER_SECONDS:g} s")
        except errors.SourceError as error:
            return self._stated(at, str(error))
        if said is None:
            return self._stated(at, "the source has no kube-state-metrics")
        self._roster = await asyncio.to_thread(roster.advance, self._roster, said, wanted, at)
        return self._stated(at, "kube-state-metrics shows nothing")

    def _stated(self, at: float, trouble: str) -> None:
        """State what decisions rest on, if that has changed."""
        current = self._roster.is_current(at)
        basis = Basis.KUBE_STATE_METRICS if current else Basis.EXPORTERS
        if basis is not self._basis:
            self._basis = basis
            reason = "kube-state-metrics answers" if current else trouble
            self._observe(facts.EvidenceChanged(self._name, basis, reason))
