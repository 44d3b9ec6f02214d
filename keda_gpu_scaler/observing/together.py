"""The triggers that KEDA asks about and those that are observed beside them, for people."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from keda_gpu_scaler.observing.observing import Observing
from keda_gpu_scaler.record.record import Record, Summary
from keda_gpu_scaler.spec.spec import ScaledObject


class Decisions(Protocol):
    """Knows which triggers KEDA asks about, and what is decided of them."""

    @property
    def step_seconds(self) -> float:
        """How often there can be something new."""

    def summaries(self, namespace: str | None, /) -> Iterable[Summary]:
        """Yield the recent answers of one namespace or of all, by their names."""

    async def records(self, scaled_object: ScaledObject, /) -> Sequence[Record]:
        """Decide each trigger of a ScaledObject."""


class Together:
    """Both; where KEDA asks about a ScaledObject, its triggers alone are shown."""

    def __init__(self, asked: Decisions, observed: Observing) -> None:
        """Take both."""
        self._asked, self._observed = asked, observed

    @property
    def step_seconds(self) -> float:
        """How often there can be something new."""
        return self._asked.step_seconds

    def summaries(self, namespace: str | None) -> Iterator[Summary]:
        """Yield the recent answers and observations, by the names of the ScaledObjects."""
        both = self._asked.summaries(namespace), self._observed.summaries(namespace)
        return heapq.merge(*both, key=lambda one: one.scaled_object.split("/"))

    async def records(self, scaled_object: ScaledObject) -> Sequence[Record]:
        """Decide each trigger of a ScaledObject."""
        found = await self._asked.records(scaled_object)
        return found or await self._observed.records(scaled_object)
