"""Queries to one server: sends them, reads the answers, and reports each as a fact."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.spec import demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import Answer


def countable(number: float) -> float:
    """Return the number if KEDA and the HPA can count with it.

    Raises:
        errors.SourceMalformedError: they cannot.
    """
    if not demand.is_countable(number):
        message = f"{number:g} instead of a number from 0 to below 2^53"
        raise errors.SourceMalformedError(message)
    if number in dcgm.BLANKS:
        message = f"{number:.0f}, which is what DCGM shows instead of a number that it lacks"
        raise errors.SourceMalformedError(message)
    return number


Result = TypeVar("Result")
NUMBER_BYTES = 256 * 1024
"""The limit of an answer with one number; some hundred elements fit, to be told how many."""


NUMBERS_AT_ONCE = 40
OWN_QUERIES_AT_ONCE = 10
OWN_QUERIES_OF_A_NAMESPACE_AT_ONCE = 3
"""What users wrote can be slow. A client has a hundred connections, and the shared queries need
some of them."""


class OwnTurns:
    """Lets a few custom queries be under way at a time, and fewer of one namespace among them."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(OWN_QUERIES_AT_ONCE)
        self._by_namespace: dict[Hashable, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(OWN_QUERIES_OF_A_NAMESPACE_AT_ONCE)
        )

    @asynccontextmanager
    async def turn(self, namespaces: Hashable) -> AsyncIterator[None]:
        """Wait for a turn, first among those of the same namespaces, and keep it in the context."""
        async with self._by_namespace[namespaces], self._all:
            yield


class Endpoint(Protocol):
    """Takes the queries."""

    def ask(self, text: str, at: float | None, /) -> Awaitable[Answer]:
        """Send a query; raises `errors.SourceError` if there is no whole answer."""

    def turn(self) -> AbstractContextManager[None]:
        """Read the large answers of one context at a time (`transport.client.Client.turn`)."""


class QueryClient:
    """Queries one endpoint, and reports each query's time or error as a fact."""

    def __init__(
        self, name: str, endpoint: Endpoint, observe: facts.Observer, clock: Callable[[], float]
    ) -> None:
        self._name, self._endpoint, self._observe, self._clock = name, endpoint, observe, clock

    def turn(self) -> AbstractContextManager[None]:
        """Read the large answers of one context at a time, until it ends."""
        return self._endpoint.turn()

    async def fetch(
        self, kind: str, text: str, at: float | None, parse: Callable[[Answer], Result]
    ) -> Result:
        """Send a query, and return the answer as `parse` reads it.

        Args:
            kind: the name of the query in the log and in the metrics.
            text: the query in the server's language.
            at: the instant; None: the server's present time.
            parse: runs in a thread; its errors are the query's.
        """
        began = self._clock()

        def report(trouble: str | None) -> None:
            self._observe(facts.Queried(self._name, kind, self._clock() - began, trouble))

        try:
            answer = await self._endpoint.ask(text, at)
            result = await asyncio.to_thread(parse, answer)
        except errors.SourceError as error:
            report(str(error))
            raise
        except asyncio.CancelledError:
            report(facts.GIVEN_UP)
            raise
        report(None)
        return result
