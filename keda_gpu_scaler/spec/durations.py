"""Amounts in words: durations as Go and Prometheus write them, and numbers with their noun.

Pure text and numbers: `30s`, `2m`, `1h30m`, `1.5h`. Units stand from the largest to the smallest,
each at most once, so that one duration has one reading.
"""

import re

_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
DURATION = re.compile("".join(rf"(?:([0-9]+(?:\.[0-9]+)?){unit})?" for unit in _MILLISECONDS))
DAY_SECONDS = 86_400


def parse(text: str) -> float:
    """Return the seconds that `text` stands for; infinity when they are beyond a float."""
    match = DURATION.fullmatch(text)
    if match is None or not text:
        hint = " (a number needs a unit: s, m or h)" if text.isdecimal() else ""
        raise ValueError(f"a duration such as 30s, 2m or 1h30m{hint}")
    amounts = zip(match.groups(default="0"), _MILLISECONDS.values(), strict=True)
    return sum(float(amount) * milliseconds for amount, milliseconds in amounts) / 1000


def bounded(name: str, written: str, most: float, least: float = 0.0) -> float:
    """Return the seconds of a duration within bounds; ValueError names it and what is expected."""
    try:
        seconds = parse(written)
    except ValueError as error:
        raise ValueError(f"{name} {written!r}: expected {error}") from error
    if seconds > most:
        raise ValueError(f"{name} {written!r}: expected at most {text(most)}")
    if seconds < least:
        raise ValueError(f"{name} {written!r}: expected at least {text(least)}")
    return seconds


def text(seconds: float) -> str:
    """Return the shortest form of a duration, to the millisecond: `15s`, `2m`, `1h30m`."""
    if seconds < 0:
        return f"-{text(-seconds)}"
    left = round(seconds * 1000)
    parts = []
    for unit, milliseconds in _MILLISECONDS.items():
        count, left = divmod(left, milliseconds)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
