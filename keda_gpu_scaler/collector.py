"""Takes one snapshot: asks the source what is needed, and keeps the ledger between snapshots.

The questions build on each other: who was there in the last hour (only for namespaces that are
new), what is there now, and where the GPUs of the pods are that are not.
"""

import asyncio
from dataclasses import replace

from keda_gpu_scaler import digest, errors, presence
from keda_gpu_scaler.observation import Demand, GpuReports, Observation
from keda_gpu_scaler.presence import Ledger
from keda_gpu_scaler.snapshot import Snapshot
from keda_gpu_scaler.source import Source


class Collector:
    """Takes the snapshots of one feed, one at a time."""

    def __init__(self, source: Source, forget_seconds: float) -> None:
        """Start with an empty ledger.

        Args:
            source: where samples come from.
            forget_seconds: how long pods that ended are remembered.
        """
        self._source, self._forget_seconds = source, forget_seconds
        self._ledger = Ledger()
        self._recorded: frozenset[str] = frozenset()

    async def take(self, demand: Demand, at: float) -> Snapshot:
        """Return a snapshot of everything in `demand` at the instant `at`.

        Raises:
            errors.SourceError: the source gave no usable answer; what was known stays as it was.
        """
        ledger = presence.confined(self._ledger, demand.namespaces)
        recorded = self._recorded & demand.namespaces
        strangers = demand.namespaces - recorded
        past = await self._past(replace(demand, namespaces=strangers), at) if strangers else None
        if past is not None:
            ledger, recorded = presence.join(ledger, past), demand.namespaces
        observation = await self._source.fetch(demand, at)
        ledger = await self._advanced(ledger, observation)
        self._ledger, self._recorded = ledger, recorded
        step = self._source.step_seconds
        return digest.snapshot(ledger, observation, demand, recorded, step)

    async def _past(self, demand: Demand, at: float) -> Ledger | None:
        """Return the last hour of namespaces that are new here; None if it cannot be had.

        A server that answers but refuses this larger question still serves the small ones: the
        absence of what never reported is then not believed.
        """
        try:
            history = await self._source.history(demand, at)
        except (errors.SourceRefusedError, errors.SourceMalformedError):
            return None
        return Ledger() if history is None else await self._advanced(Ledger(), history)

    async def _advanced(self, ledger: Ledger, observation: Observation) -> Ledger:
        lost = presence.absent_gpus(ledger, observation)
        reports = await self._source.locate(lost, observation.at) if lost else GpuReports()
        return await asyncio.to_thread(
            presence.advance, ledger, observation, reports, self._forget_seconds
        )
