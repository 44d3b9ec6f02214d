"""Queries to one server: sends them, reads the answers, and reports each as a fact."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import orjson

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import OK, Answer, printable


def json_body(answer: Answer, expected: str) -> dict[str, Any]:
    """Return the JSON object in an answer.

    Args:
        answer: an answer of any status: servers explain errors in JSON too.
        expected: what the server should have sent, for the message.

    Raises:
        errors.SourceRefusedError: an error that is not explained in JSON, perhaps by a proxy.
        errors.SourceMalformedError: no error, and no JSON object.
    """
    try:
        content = orjson.loads(answer.body)
    except orjson.JSONDecodeError as error:
        raise _other(answer, expected) from error
    if not isinstance(content, dict):
        raise _other(answer, expected)
    return content


def countable(number: float) -> float:
    """Return the number if KEDA and the HPA can count with it.

    Raises:
        errors.SourceMalformedError: they cannot.
    """
    if not demand.is_countable(number):
        message = f"{number:g} instead of a number from 0 to below 2^53"
        raise errors.SourceMalformedError(message)
    return number


def _other(answer: Answer, expected: str) -> errors.SourceError:
    words = printable(answer.body[:1024].decode("utf-8", errors="replace"))
    kind = printable(answer.content_type)
    fault = errors.SourceMalformedError if answer.status == OK else errors.SourceRefusedError
    return fault(f"HTTP {answer.status} with {kind} instead of {expected}: {words}")


Result = TypeVar("Result")


class Endpoint(Protocol):
    """Takes the queries."""

    def ask(self, text: str, at: float | None, /) -> Awaitable[Answer]:
        """Send a query; raises `errors.SourceError` if there is no whole answer."""


class QueryClient:
    """Queries one endpoint, and reports each query's time or error as a fact."""

    def __init__(
        self, name: str, endpoint: Endpoint, observe: facts.Observer, clock: Callable[[], float]
    ) -> None:
        """Query one endpoint on behalf of a source.

        Args:
            name: the source's name in triggers.
            endpoint: where to send queries.
            observe: is told of every query.
            clock: seconds that never go back.
        """
        self._name, self._endpoint, self._observe, self._clock = name, endpoint, observe, clock

    async def asked(
        self, kind: str, text: str, at: float | None, parse: Callable[[Answer], Result]
    ) -> Result:
        """Send a query and return the parsed answer.

        Args:
            kind: the name of the query in the log and in the metrics.
            text: the query in the server's language.
            at: the instant; None: the server's present time.
            parse: reads the answer.

        Raises:
            errors.SourceError: there is no whole answer.
        """
        began = self._clock()

        def state(trouble: str | None) -> None:
            self._observe(facts.Queried(self._name, kind, self._clock() - began, trouble))

        try:
            answer = await self._endpoint.ask(text, at)
            result = await asyncio.to_thread(parse, answer)
        except errors.SourceError as error:
            state(str(error))
            raise
        except asyncio.CancelledError:
            state(facts.GIVEN_UP)
            raise
        state(None)
        return result
