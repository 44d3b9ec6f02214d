"""Queries to one server: sent, read, and stated as facts, with how long each took."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import orjson

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec import demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import OK, Answer, printable


def json_body(answer: Answer, expected: str) -> dict[str, Any]:
    """Return the JSON object that an answer is.

    Args:
        answer: of any status: servers explain errors in JSON too.
        expected: what the server should have sent, for the message.

    Raises:
        errors.SourceRefusedError: an error that is explained in another way, by a proxy perhaps.
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
    """Return a number that KEDA and the HPA can count with.

    Raises:
        errors.SourceMalformedError: it is none.
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
    """Where questions go."""

    def ask(self, text: str, at: float | None, /) -> Awaitable[Answer]:
        """Send a text; raises `errors.SourceError` where there is no whole answer."""


class QueryClient:
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
