"""Takes one snapshot: asks the source what is needed, and keeps the ledger between snapshots.

The questions build on each other: what is there now, who was there in the last hour (only for
namespaces that are new, or were out of sight), and where the GPUs of the pods are that are gone.
Beside them the cluster is asked what it says of its pods.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from keda_gpu_scaler import digest, errors, presence
from keda_gpu_scaler.observation import GpuReports, Need, Observation
from keda_gpu_scaler.presence import Ledger
from keda_gpu_scaler.roster import Roster
from keda_gpu_scaler.snapshot import Snapshot
from keda_gpu_scaler.source import Source
from keda_gpu_scaler.witness import Witness

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
        ledger = presence.confined(self._ledger, need.namespaces)
        before = self._watched if self._is_seamless(need, at) else {}
        watched = {name: before.get(name, at) for name in need.namespaces}
        strangers = self._strangers(watched, at)
        past = await self._past(replace(need, namespaces=strangers), at) if strangers else None
        if past is not None:
            ledger = presence.join(ledger, past)
            watched |= dict.fromkeys(strangers, float("-inf"))
        self._ledger, self._watched = await self._advanced(ledger, observation), watched
        recorded = {name for name, since in watched.items() if at - since >= HOUR_SECONDS}
        step = self._source.step_seconds
        return await asyncio.to_thread(
            digest.snapshot, self._ledger, roster, observation, need, recorded, step
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
        lost = frozenset[str]() if selective else presence.absent_gpus(ledger, observation)
        reports = await self._source.locate(lost, observation.at) if lost else GpuReports()
        return await asyncio.to_thread(
            presence.advance, ledger, observation, reports, self._forget_seconds
        )
