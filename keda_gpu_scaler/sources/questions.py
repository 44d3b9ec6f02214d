"""Questions to one server: sent, read and stated as facts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from keda_gpu_scaler import errors, facts
from keda_gpu_scaler.observation import Row
from keda_gpu_scaler.sources import prometheus_api
from keda_gpu_scaler.sources.client import Answer

Result = TypeVar("Result")


class Endpoint(Protocol):
    """Where questions go."""

    def ask(self, text: str, at: float | None, /) -> Awaitable[Answer]:
        """Send a text; raises `errors.SourceError` where there is no whole answer."""


class Questions:
    """Asks one endpoint; how long each answer took, or why there was none, is a fact."""

    def __init__(
        self, name: str, endpoint: Endpoint, observe: facts.Observer, clock: Callable[[], float]
    ) -> None:
        """Ask nothing yet.

        Args:
            name: how triggers call the source.
            endpoint: where to ask.
            observe: is told of every query.
            clock: seconds that never go back.
        """
        self._name, self._endpoint, self._observe, self._clock = name, endpoint, observe, clock

    async def vector(self, kind: str, text: str, at: float, /) -> list[Row]:
        """Ask for an instant vector."""
        return await self.asked(kind, text, at, prometheus_api.vector)

    async def matrix(self, kind: str, text: str, at: float, /) -> list[Row]:
        """Ask for ranges of points."""
        return await self.asked(kind, text, at, prometheus_api.matrix)

    async def asked(
        self, kind: str, text: str, at: float | None, parse: Callable[[Answer], Result]
    ) -> Result:
        """Ask for whatever `parse` reads.

        Args:
            kind: what the question is called in the log and in the metrics.
            text: in the server's language.
            at: the instant; None: the server's now.
            parse: the answer's reader.

        Raises:
            errors.SourceError: there is no whole answer.
        """
        began, trouble = self._clock(), None
        try:
            answer = await self._endpoint.ask(text, at)
            return await asyncio.to_thread(parse, answer)
        except errors.SourceError as error:
            trouble = str(error)
            raise
        except asyncio.CancelledError:
            trouble = facts.GIVEN_UP
            raise
        finally:
            self._observe(facts.Queried(self._name, kind, self._clock() - began, trouble))
