"""The errors of the scaler, named by their cause.

`service/interceptor.py` alone maps errors to gRPC statuses. Every message is written for the reader
of KEDA's log: it names what was wrong and never shows a secret or a stack.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

_LONGEST_CHARACTERS = 100
"""As much of a word is compared: longer ones are no slips of the pen, and take long."""
_ALIKE = 0.75
"""How much two words have in common where one is meant for the other: `workloadname` is for
`workload`, and not `space` for `namespace`."""


def without_controls(text: str, kept: str = "") -> str:
    """Return others' text for people: ? in place of what does not print, but for those kept."""
    return "".join(char if char.isprintable() or char in kept else "?" for char in text)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that an unknown one is probably meant for; None: there is none."""
    return next(iter(get_close_matches(word[:_LONGEST_CHARACTERS], known, 1, _ALIKE)), None)


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
    """The operator's settings are wrong: exit 2; or what they name cannot be used: exit 1."""


class SpecError(ScalerError):
    """The user's trigger is wrong, with as many mistakes as KEDA's log has room for."""

    def __init__(self, message: str, mistakes: tuple[Mistake, ...] = ()) -> None:
        super().__init__(message)
        self.mistakes = mistakes


class RequestError(ScalerError):
    """The caller's request is wrong."""


class UnknownLoadError(ScalerError):
    """The load is unknown and the answer is to be an error."""


class SourceError(ScalerError):
    """A source gave no usable answer; it becomes the reason of an unknown load."""


class SourceTimeoutError(SourceError):
    """A source did not answer in time."""


class SourceUnreachableError(SourceError):
    """There is no connection to a source, or it ended in the middle of an answer."""


class SourceRefusedError(SourceError):
    """A source answered with an HTTP or API error, which is in its own words."""


class SourceMalformedError(SourceError):
    """A source's answer is partial, too large or of the wrong shape."""
