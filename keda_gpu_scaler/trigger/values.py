"""Parses single values of a trigger: from the user's string to a value of the spec.

Pure. Each parser raises ValueError with what it expected, in words that follow "expected". It never
repeats the value, which may have come out of a Secret.
"""

import re
from collections.abc import Callable, Collection
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from keda_gpu_scaler.spec import durations, workload
from keda_gpu_scaler.spec.demand import TOO_LARGE, is_countable

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SMALLEST_TARGET = 0.001
"""KEDA rounds targets to thousandths; a smaller one would become 0."""
_LARGEST_WINDOW_SECONDS = 3600.0
"""A snapshot holds every point of its longest window for every GPU."""
_LARGEST_TIMEOUT_SECONDS = 86_400.0
METRIC_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_INDEXED_NAME = re.compile(r"s[0-9]+-.*")
_METRIC_NAME_LIMIT = 200
_LISTED_NAMES = 20
_MODEL_LIMIT = 256

ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


def target(text: str) -> float:
    """Return a threshold that KEDA can pass on: above 0, also after it rounds to thousandths."""
    number = _number(text)
    if not _SMALLEST_TARGET <= number < TOO_LARGE:
        raise ValueError("a number from 0.001 to below 2^53, such as 70")
    return number


def level(text: str) -> float:
    """Return a level to compare activity with: 0 or above."""
    number = _number(text)
    if not is_countable(number):
        raise ValueError("a number from 0 to below 2^53, such as 5")
    return number


def window(text: str) -> float:
    """Return the seconds of a window of samples."""
    return _duration(text, 1, _LARGEST_WINDOW_SECONDS)


def warmup(text: str) -> float:
    """Return the seconds of a warmup, which may be 0."""
    return _duration(text, 0, _LARGEST_WINDOW_SECONDS)


def timeout(text: str) -> float:
    """Return the seconds of a timeout; it may be long, as it needs no samples in memory."""
    return _duration(text, 1, _LARGEST_TIMEOUT_SECONDS)


def choice(kind: type[ChoiceT]) -> Callable[[str], ChoiceT]:
    """Return the parser of one member of an enumeration."""

    def parse(text: str) -> ChoiceT:
        return kind(one_of(tuple(kind))(text))

    return parse


def one_of(names: Collection[str], note: str = "") -> Callable[[str], str]:
    """Return the parser of one of these names; the note is for who writes another."""

    def parse(text: str) -> str:
        if text in names:
            return text
        more = len(names) - _LISTED_NAMES
        listed = ", ".join(list(names)[:_LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")
        nearest = get_close_matches(text[:100].lower(), names, n=1)
        hint = f" (did you mean {nearest[0]}?)" if nearest else ""
        raise ValueError(f"one of {listed}{hint}{note}")

    return parse


def model(text: str) -> str:
    """Return the name of a model, as requests and labels write it."""
    if not (text.isprintable() and 0 < len(text) <= _MODEL_LIMIT):
        raise ValueError(
            f"the name of a model as requests write it, at most {_MODEL_LIMIT} characters"
        )
    return text


def namespace(text: str) -> str:
    """Return the name of a namespace."""
    if not workload.is_namespace(text):
        raise ValueError("a namespace: lower-case letters, digits and '-', at most 63 characters")
    return text


def metric_name(text: str) -> str:
    """Return a name that the external metrics API and KEDA accept unchanged."""
    if len(text) > _METRIC_NAME_LIMIT or not METRIC_NAME.fullmatch(text):
        raise ValueError(
            "letters, digits, '-', '_' and '.', a letter or digit at both ends, "
            f"at most {_METRIC_NAME_LIMIT} characters, such as gpu-load"
        )
    if _INDEXED_NAME.fullmatch(text):
        raise ValueError("a name without an index such as s0- before it: KEDA adds that itself")
    return text


def _number(text: str) -> float:
    """Return a decimal number; refuse what else `float` accepts, such as nan and 1_0."""
    if not NUMBER.fullmatch(text):
        raise ValueError("a number without a unit, such as 70")
    return float(text)


def _duration(text: str, smallest: float, largest: float) -> float:
    seconds = durations.parse(text)
    if not smallest <= seconds <= largest:
        limits = f"from {durations.text(smallest)} to {durations.text(largest)}"
        raise ValueError(f"a duration {limits}, such as 2m")
    return seconds
