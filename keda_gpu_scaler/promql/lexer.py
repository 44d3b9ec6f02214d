"""The tokens of a query, as Prometheus' lexer finds them, and what its strings say. Pure.

Numbers are judged before the parser sees them: it panics at a duration that is below 0, infinite or
above 2^64 seconds, and at a time before 1970, and takes a part of a duration above 2^32 for 0.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from keda_gpu_scaler.query.promql_texts import quoted

_TOKEN = re.compile(
    r"""
    (?P<space> [ \t\r\n\f]+ | \#[^\r\n]* )
    | (?P<literal>
        " [^"\\\n]* (?:\\.[^"\\\n]*)* " | ' [^'\\\n]* (?:\\.[^'\\\n]*)* ' | ` [^`]* ` )
    | (?P<number> (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[0-9A-Za-z_]* )
    | (?P<name> [A-Za-z_][A-Za-z0-9_:]* )
    | (?P<sign> [=!<>]= | [=!]~ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
"""A comment ends where a line does, with either character. Never fewer tokens than the parser's own
lexer finds, but for `==` between braces, which it refuses."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A part of a query that is neither blank nor a comment."""

    kind: str
    """literal, number, name or sign."""
    text: str
    start: int
    """The position of its first character."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class MisplacedError(ValueError):
    """Something at one place of a text is wrong; the words say what."""

    def __init__(self, position: int, words: str) -> None:
        super().__init__(words)
        self.position = position


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text; refuse an open quote, and non-ASCII text outside quotes."""
    query_tokens = []
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "sign" and match[0] in {'"', "'", "`"}:
            raise MisplacedError(match.start(), "unterminated quoted string")
        if kind == "sign" and not match[0].isascii():
            raise MisplacedError(match.start(), "unexpected character")
        if kind != "space":
            query_tokens.append(Token(kind, match[0], match.start()))
    return query_tokens


def unmatched(query_tokens: Sequence[Token]) -> int | None:
    open_brackets: list[Token] = []
    for token in query_tokens:
        if token.text in _CLOSING:
            open_brackets.append(token)
        elif token.text in _CLOSING.values() and (
            not open_brackets or _CLOSING[open_brackets.pop().text] != token.text
        ):
            return token.start
    return open_brackets[-1].start if open_brackets else None


_KEYWORD = "(?i:inf|nan|smoothed|anchored|without)"
"""What is no label in a list of them, unless it is quoted."""
_PLAIN_LABEL = re.compile(rf"(?!{_KEYWORD}$)[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(
    rb"""\\(?: (?P<letter>[abfnrtv'"]) | (?P<octal>[0-7]{3}) | x(?P<byte>[0-9A-Fa-f]{2})
    | u(?P<short>[0-9A-Fa-f]{4}) | U(?P<long>[0-9A-Fa-f]{8}) | )""",
    re.VERBOSE,
)
_LETTERS = dict(zip(b"abfnrtv'\"", b"\a\b\f\n\r\t\v'\"", strict=True))
_WRONG = "an escape that is not Prometheus', or a text that is not UTF-8"


def label(name: str) -> str:
    """Return the name of a label: as it is, or quoted where only Prometheus 3 allows it."""
    return name if _PLAIN_LABEL.fullmatch(name) else quoted(name)


def unquoted(literal: str) -> str:
    r"""Return the text that a literal stands for.

    Go's rules, as Prometheus applies them: between backquotes nothing is escaped; elsewhere `\x`
    and three octal digits are bytes, `\u` and `\U` characters, and of the quotes only its own.
    ValueError if Prometheus reads no text in it.
    """
    quote, inside = literal[0], literal[1:-1]
    try:
        written = inside.encode()
        if quote != "`":
            # Taken apart first: the patterns of the scaler's own queries have thousands of these.
            pieces = written.split(rb"\\")
            written = b"\\".join(
                _ESCAPE.sub(lambda escape: _unescaped(escape, quote.encode()), piece)
                if b"\\" in piece
                else piece
                for piece in pieces
            )
        return written.decode()
    except ValueError:
        raise ValueError(_WRONG) from None


def _unescaped(escape: re.Match[bytes], quote: bytes) -> bytes:
    kind, digits = escape.lastgroup, escape[escape.lastindex or 0]
    match kind:
        case "letter" if digits not in {b"'", b'"'} or digits == quote:
            return bytes([_LETTERS[digits[0]]])
        case "octal":
            return bytes([int(digits, 8)])
        case "byte":
            return bytes([int(digits, 16)])
        case "short" | "long":
            return chr(int(digits, 16)).encode()
        case _:
            raise ValueError(_WRONG)


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


def check_numbers(query_tokens: Sequence[Token]) -> None:
    """Refuse numbers that do not fit their place, such as a duration of less than a millisecond."""
    in_brackets, place, sign = False, "", ""
    for token in query_tokens:
        text = token.text
        if token.kind == "number" or (place == "offset" and text.lower() in {"inf", "nan"}):
            _check_number(token, "[" if in_brackets else place, sign)
        if text in {"+", "-"}:
            sign = text
        else:
            in_brackets = text == "[" or (in_brackets and text != "]")
            place, sign = text.lower(), ""


def _check_number(token: Token, place: str, sign: str) -> None:
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
