"""The numbers of a query, judged before the parser sees them. Pure.

The parser panics at a duration that is below 0, infinite or above 2^64 seconds, and at a time
before 1970; it takes a part of a duration above 2^32 for 0.
"""

import math
import re
from collections.abc import Sequence

from keda_gpu_scaler.query.promql.tokens import MisplacedError, Token

_SECONDS = re.compile(r"(?!0[0-9])[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?")
"""Without a unit. Behind a leading 0 servers read octal digits."""
_UNITS = {
    "y": 31_536_000_000,
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
"""In milliseconds, in the order in which they have to be written."""
_DURATION = re.compile("".join(f"(?:([0-9]+){unit}(?![a-z]))?" for unit in _UNITS))
_LARGEST_DURATION = 100 * 365 * 86_400.0
_LARGEST_TIME = 253_402_300_799.0
"""The last second of the year 9999."""
_NOT_FINITE = frozenset({"inf", "nan"})


def check(found: Sequence[Token]) -> None:
    """Refuse numbers that do not fit their place.

    Raises:
        MisplacedError: a duration is no number of whole milliseconds or longer than a century, a
            time is not one from 1970 to 9999, or another number is beyond the largest float.
    """
    in_brackets, place, sign = False, "", ""
    for token in found:
        text = token.text
        if token.kind == "number" or (place == "offset" and text.lower() in _NOT_FINITE):
            _check(token, "[" if in_brackets else place, sign)
        if text in {"+", "-"}:
            sign = text
        else:
            in_brackets = text == "[" or (in_brackets and text != "]")
            place, sign = text.lower(), ""


def _check(token: Token, place: str, sign: str) -> None:
    seconds = _seconds(token.text)
    if place in {"[", "offset"}:
        shortest = 0.001 if place == "[" else 0.0
        if not shortest <= seconds <= _LARGEST_DURATION or seconds != round(seconds, 3):
            words = "a duration has to be whole milliseconds, at most 100y, such as 5m or 1500ms"
            raise MisplacedError(token.start, words)
    elif place == "@":
        if not 0 <= seconds <= _LARGEST_TIME or (sign == "-" and seconds):
            words = "a time has to be in seconds since 1970, and before the year 10000"
            raise MisplacedError(token.start, words)
    elif math.isinf(seconds):
        raise MisplacedError(token.start, "a number has to be below 1.8e308")


def _seconds(text: str) -> float:
    """Return a duration or number as a float; NaN: it is neither, or not in decimal digits."""
    parts = _DURATION.fullmatch(text)
    if parts is not None:
        counts = zip(parts.groups(default="0"), _UNITS.values(), strict=True)
        return sum(float(count) * milliseconds for count, milliseconds in counts) / 1000
    return float(text) if _SECONDS.fullmatch(text) else math.nan
