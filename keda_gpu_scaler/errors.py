"""The errors of the scaler, named by their cause.

    ScalerError
    ├── SettingsError     the operator's settings are wrong: exit 2; or a port or a cluster that
    │                     they name cannot be used: exit 1
    ├── SpecError         the user's trigger is wrong                 → INVALID_ARGUMENT
    ├── RequestError      the caller's request is wrong               → INVALID_ARGUMENT
    ├── UnknownLoadError  the load is unknown and the answer is error → UNAVAILABLE
    └── SourceError       a source gave no usable answer; becomes the reason of an `unknown`
        ├── SourceTimeoutError      nothing within the time allowed
        ├── SourceUnreachableError  no connection, or it was cut
        ├── SourceRefusedError      an HTTP or API error, in the server's own words
        └── SourceMalformedError    an answer of the wrong shape, partial, or too large

`service/interceptor.py` alone maps errors to gRPC statuses. Every message is written for the reader
of KEDA's log: it names what was wrong and never shows a secret or a stack.
"""

from typing import NamedTuple


class Mistake(NamedTuple):
    """One mistake in a trigger."""

    key: str
    """The key as the user wrote it, or the one that is missing; empty if it is about no key."""
    what: str
    """What is wrong: the key and its value, quoted, and never one that may be a secret."""
    advice: str
    """What was expected, or what to do."""


class ScalerError(Exception):
    """Base of all errors that this package raises on purpose."""


class SettingsError(ScalerError):
    """A setting is wrong, or what it names cannot be used; the message says what was expected."""


class SpecError(ScalerError):
    """A trigger is wrong; the message lists its mistakes, as many as KEDA's log has room for."""

    def __init__(self, message: str, mistakes: tuple[Mistake, ...] = ()) -> None:
        super().__init__(message)
        self.mistakes = mistakes


class RequestError(ScalerError):
    """A request is wrong and cannot be answered."""


class UnknownLoadError(ScalerError):
    """The load is unknown, and no number or activity may be invented for it."""


class SourceError(ScalerError):
    """A source gave no usable answer."""


class SourceTimeoutError(SourceError):
    """A source did not answer in time."""


class SourceUnreachableError(SourceError):
    """There is no connection to a source, or it ended in the middle of an answer."""


class SourceRefusedError(SourceError):
    """A source answered with its own error."""


class SourceMalformedError(SourceError):
    """A source's answer is not complete or of the wrong shape."""
