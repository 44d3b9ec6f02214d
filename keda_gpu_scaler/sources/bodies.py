"""What an answer's body has to be before anybody reads it. Pure."""

from typing import Any

import orjson

from keda_gpu_scaler import demand, errors
from keda_gpu_scaler.sources.client import OK, Answer
from keda_gpu_scaler.sources.words import printable


def json_object(answer: Answer, expected: str) -> dict[str, Any]:
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
