"""JSON of a server → typed values: the one door for it, for all sources that are queried. Pure.

The client that reads a body bounds its bytes. Here the values in it are counted before they are
read, because a few bytes of JSON become a hundred in memory.
"""

from typing import TypeVar

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.transport.client import OK, Answer, printable

T = TypeVar("T")
UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError)
"""What is raised for a part of an answer that is no JSON, or of another type."""
_SHOWN_BYTES = 1024
"""A server's own words are looked for in this much of an answer that is no JSON."""
_FEWEST_BYTES = {b"{": 128, b"[": 32, b":": 16, b",": 8}
"""An answer of the largest size has at most one of these in so many bytes: 130,000 rows of two
objects each, a million points, two million labels. Rows of 15,000 pods in kube-state-metrics, or an
hour of the points of 4,000 GPUs, are fewer; read, they take at most 300 MiB."""


def decoded(answer: Answer, decoder: Decoder[T], expected: str) -> T:
    """Return the value in the body of an answer of any status: servers explain errors in JSON too.

    What becomes large is left as `msgspec.Raw` by the decoder, to be read row by row, so that other
    threads get their turn. `expected` is what the server should have sent, for the message.

    Raises:
        errors.SourceRefusedError: an error that is not explained in JSON, perhaps by a proxy.
        errors.SourceMalformedError: no error, and no such value, or more rows than usual.
    """
    for sign, fewest_bytes in _FEWEST_BYTES.items():
        limit = answer.limit_bytes // fewest_bytes
        if answer.body.count(sign) > limit:
            raise errors.SourceMalformedError(
                f"an answer with more than {limit:,} times {sign.decode()}; expected fewer pods: "
                "spread the triggers over several sources, or raise max_response_bytes and the "
                "limit of memory with it"
            )
    try:
        return decoder.decode(answer.body)
    except UNREADABLE as error:
        if answer.status != OK:
            raise errors.SourceRefusedError(_shown(answer, expected)) from error
        if isinstance(error, msgspec.ValidationError):
            raise wrong_shape(expected, error) from error
        raise errors.SourceMalformedError(_shown(answer, expected)) from error


def wrong_shape(expected: str, error: Exception) -> errors.SourceMalformedError:
    """Return the error for JSON that is not what was expected; the decoder's words say where."""
    return errors.SourceMalformedError(f"{expected} of the wrong shape: {printable(str(error))}")


def _shown(answer: Answer, expected: str) -> str:
    words = printable(answer.body[:_SHOWN_BYTES].decode("utf-8", errors="replace"))
    content_type = printable(answer.content_type)
    return f"HTTP {answer.status} with {content_type} instead of {expected}: {words}"
