"""The errors of the scaler, named by whose fault they are.

    ScalerError
    ├── SettingsError     the operator's settings are wrong: exit 2; or what they name is not to be
    │                     had, a port or a cluster: exit 1
    ├── SpecError         the user's trigger is wrong                 → INVALID_ARGUMENT
    ├── RequestError      the caller's request is wrong               → INVALID_ARGUMENT
    ├── UnknownLoadError  the load is unknown and the answer is error → UNAVAILABLE
    └── SourceError       a source gave no usable answer; becomes the reason of an `unknown`
        ├── SourceTimeoutError      nothing within the time allowed
        ├── SourceUnreachableError  no connection, or it was cut
        ├── SourceRefusedError      an HTTP or API error, in the server's own words
        └── SourceMalformedError    an answer of the wrong shape, partial, or too large

`service/interceptor.py` has the one ladder from here to gRPC statuses. Every message is written
for the person who reads KEDA's log: it names what was wrong and never shows a secret or a stack.
"""


class ScalerError(Exception):
    """Base of every error this package raises on purpose."""


class SettingsError(ScalerError):
    """A setting is wrong, or what it names cannot be had; the message says what was expected."""


class SpecError(ScalerError):
    """A trigger is wrong; the message lists every mistake in it."""


class RequestError(ScalerError):
    """A request cannot be answered as it was asked."""


class UnknownLoadError(ScalerError):
    """The load is unknown and neither a number nor an activity may be made up for it."""


class SourceError(ScalerError):
    """A source gave no usable answer."""


class SourceTimeoutError(SourceError):
    """A source did not answer within the time it was given."""


class SourceUnreachableError(SourceError):
    """No connection to a source, or it ended in the middle of an answer."""


class SourceRefusedError(SourceError):
    """A source answered with an error of its own."""


class SourceMalformedError(SourceError):
    """A source answered something that is not a complete answer."""
