"""The tokens of a query, as Prometheus' lexer finds them, and where they stand. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space> [ \t\r\n\f]++ | \#[^\r\n]*+ )
    | (?P<literal>
        " [^"\\\n]*+ (?:\\.[^"\\\n]*+)*+ " | ' [^'\\\n]*+ (?:\\.[^'\\\n]*+)*+ ' | ` [^`]*+ ` )
    | (?P<number> (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[0-9A-Za-z_]* )
    | (?P<name> [A-Za-z_][A-Za-z0-9_:]* )
    | (?P<sign> [=!<>]= | [=!]~ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
"""A comment ends where a line does, with either character. Never fewer tokens than the parser's own
lexer finds, but for `==` between braces, which it refuses."""
_QUOTES = frozenset("\"'`")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(_CLOSING.values())


class Token(NamedTuple):
    """A part of a query that is neither blank nor a comment."""

    kind: str
    """literal, number, name or sign."""
    text: str
    start: int
    """The position of its first character."""

    @property
    def end(self) -> int:
        """The position behind its last character."""
        return self.start + len(self.text)


class MisplacedError(ValueError):
    """Something at one place of a text is wrong; the words say what."""

    def __init__(self, position: int, words: str) -> None:
        super().__init__(words)
        self.position = position


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text.

    Raises:
        MisplacedError: a quote is never closed, or a character outside quotes is not ASCII.
    """
    found = []
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "sign" and match[0] in _QUOTES:
            raise MisplacedError(match.start(), "unterminated quoted string")
        if kind == "sign" and not match[0].isascii():
            raise MisplacedError(match.start(), "unexpected character")
        if kind != "space":
            found.append(Token(kind, match[0], match.start()))
    return found


def unmatched(found: Sequence[Token]) -> int | None:
    """Return the position of a bracket that lacks its other half; None: there is none."""
    left_open: list[Token] = []
    for token in found:
        if token.text in _CLOSING:
            left_open.append(token)
        elif token.text in _ENDS and (
            not left_open or _CLOSING[left_open.pop().text] != token.text
        ):
            return token.start
    return left_open[-1].start if left_open else None
