"""The one ladder from errors to gRPC status codes, and what a status message may hold.

A message ends up in KEDA's log: it is bounded, on one line, and never repeats the text of an error
that nobody wrote for the caller.
"""

from itertools import accumulate
from typing import NamedTuple

import grpc

from keda_gpu_scaler import errors

# gRPC peers drop answers whose trailers pass 8 KiB; other trailers need their share of that.
MAX_MESSAGE_BYTES = 4096
INTERNAL_TEXT = "internal error of the scaler; its log has the details"
DEADLINE_TEXT = "the caller's deadline passed before the load was known"
_ELLIPSIS = "…"

CODES = {
    errors.SpecError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.RequestError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnknownLoadError: grpc.StatusCode.UNAVAILABLE,
    # These two are dealt with before an answer is made; here they can only be our own fault.
    errors.SettingsError: grpc.StatusCode.INTERNAL,
    errors.SourceError: grpc.StatusCode.INTERNAL,
}


class Status(NamedTuple):
    """How a call ends that does not end with an answer."""

    code: grpc.StatusCode
    text: str


BUSY = Status(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls at once; try again later")


def of(error: Exception) -> Status:
    """Choose the status for an error, by whose fault it is."""
    if isinstance(error, TimeoutError):
        return Status(grpc.StatusCode.DEADLINE_EXCEEDED, DEADLINE_TEXT)
    mapped = (CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    code = next(mapped, grpc.StatusCode.INTERNAL)
    if code is grpc.StatusCode.INTERNAL:
        return Status(code, INTERNAL_TEXT)
    return Status(code, message(str(error)))


def message(text: str) -> str:
    """Return the text on one line, cut to what fits into a status message."""
    line = "".join(char if char.isprintable() else " " for char in text)
    if _wire_bytes(line) <= MAX_MESSAGE_BYTES:
        return line
    room = MAX_MESSAGE_BYTES - _wire_bytes(_ELLIPSIS)
    sizes = accumulate(_wire_bytes(char) for char in line)
    return line[: sum(size <= room for size in sizes)] + _ELLIPSIS


def _wire_bytes(text: str) -> int:
    """Count the bytes of a message on the wire, where gRPC writes `%` and non-ASCII as %XX."""
    data = text.encode()
    return len(data) + 2 * sum(byte > ord("~") or byte == ord("%") for byte in data)
