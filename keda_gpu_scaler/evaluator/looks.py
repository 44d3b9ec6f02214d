"""What each source shows of accelerators: asked while something is not read, once for all triggers.

A trigger that is not read asks at each poll. So one answer is used for two minutes, a refusal too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.evaluator.single_flight import SingleFlight
from keda_gpu_scaler.record.causes import Look
from keda_gpu_scaler.times import FORGET_SECONDS, LOOK_AGAIN_SECONDS, LOOK_SECONDS

KEPT = 1_000
"""Sources that are asked by namespace have one for each."""


class _SourceLook:
    def __init__(
        self, accelerators: Callable[[], Awaitable[Look]], clock: Callable[[], float]
    ) -> None:
        self._accelerators = accelerators
        self.flight = SingleFlight(clock)
        self.look: Look | None = None

    async def ask(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                self.look = await self._accelerators()
        except TimeoutError:
            self.look = Look(refused=f"no answer within {LOOK_SECONDS:g} s")
        except errors.SourceError as error:
            self.look = Look(refused=str(error))


class Looks:
    """Looks at sources by the names that triggers use."""

    def __init__(self, sources: Mapping[str, Source], clock: Callable[[], float]) -> None:
        self._sources, self._clock = sources, clock
        self._by_key: TTLCache[str, _SourceLook] = TTLCache(KEPT, FORGET_SECONDS, clock)

    async def of(self, source: str, namespace: str, deadline: float) -> Look | None:
        """Return what a source shows, waiting until `deadline`; None: not known, or never asked."""
        key = self._sources[source].key(source, namespace)
        kept = self._by_key.get(key)
        if kept is None:
            accelerators = self._sources[source].within(namespace).accelerators
            if accelerators is None:
                return None
            kept = _SourceLook(accelerators, self._clock)
        self._by_key[key] = kept
        if self._clock() - kept.flight.launched_at >= LOOK_AGAIN_SECONDS:
            kept.flight.launch(kept.ask, f"look {key}")
        await kept.flight.wait(deadline)
        return kept.look

    async def close(self) -> None:
        for kept in self._by_key.values():
            await kept.flight.close()
