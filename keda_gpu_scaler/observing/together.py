"""The triggers that KEDA asks about and those that are observed beside them, for people."""

from collections.abc import Sequence
from typing import Protocol

from keda_gpu_scaler.observing.observing import Observing
from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.spec.spec import ScaledObject


class Decisions(Protocol):
    """Knows which triggers KEDA asks about, and what is decided of them."""

    def summaries(self, namespace: str | None, /) -> Sequence[Summary]:
        """Return what was answered lately, of one namespace or of all."""

    async def records(self, scaled_object: ScaledObject, /) -> Sequence[Record]:
        """Decide each trigger of a ScaledObject."""


class Together:
    """Both; where KEDA asks about a ScaledObject, its triggers alone are shown."""

    def __init__(self, asked: Decisions, observed: Observing) -> None:
        """Take both."""
        self._asked, self._observed = asked, observed

    def summaries(self, namespace: str | None) -> list[Summary]:
        """Return what was answered or observed lately, by the names of the ScaledObjects."""
        found = [*self._asked.summaries(namespace), *self._observed.summaries(namespace)]
        return sorted(found, key=lambda one: one.scaled_object.split("/"))

    async def records(self, scaled_object: ScaledObject) -> Sequence[Record]:
        """Decide each trigger of a ScaledObject."""
        found = await self._asked.records(scaled_object)
        return found or await self._observed.records(scaled_object)
