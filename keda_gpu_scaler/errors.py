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


class ScalerError(Exception):
    """Base of all errors that this package raises on purpose."""


class SettingsError(ScalerError):
    """A setting is wrong, or what it names cannot be used; the message says what was expected."""


class SpecError(ScalerError):
    """A trigger is wrong; the message lists every mistake in it."""


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
