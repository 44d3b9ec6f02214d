"""Where a text stops to be PromQL, and what could have stood there.

Pure. The parser says only that a text is none. The longest beginning that can still be completed
ends where the mistake is; what completes it is what was expected.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `[^`]*`
    | [0-9][0-9A-Za-z_.]* | [A-Za-z_][A-Za-z0-9_:]*
    | [=!<>]= | [=!]~ | .
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ENDS = frozenset(_CLOSING.values())
_LONE = frozenset("\"'`")
"""A quote is a token of its own only where its text does not end."""
_COMPLETIONS = (
    ("the end", ""),
    ("an operator", " + x"),
    ("an expression", " x"),
    ("a parenthesis", "(x)"),
    ("a parenthesis", "(x) (x)"),
    ("a parenthesis", ") (x"),
    ("a label matcher", ' x="x"'),
    ("= and a quoted text", '="x"'),
    ("a quoted text", '"x"'),
    ("a number", " 1m"),
    ("a comma", ", x"),
    ("a comma", ", x) (x"),
)


def tokens(text: str) -> list[tuple[int, int]]:
    """Return where each token of a text begins and ends, spaces and comments left out."""
    found = _TOKEN.finditer(text)
    return [match.span() for match in found if match["space"] is None]


def of_mistake(text: str, is_written_well: Callable[[str], bool]) -> tuple[int, str]:
    """Return the position of the first token that cannot stand there, and what could.

    Args:
        text: what no parser can read.
        is_written_well: tells whether a text can be read, whatever it then means.
    """
    spans = tokens(text)
    fitting = bisect_left(
        range(1, len(spans) + 1),
        True,  # noqa: FBT003 - what the key returns
        key=lambda count: not any(_fitting(text[: spans[count - 1][1]], is_written_well)),
    )
    position = spans[fitting][0] if fitting < len(spans) else len(text)
    beginning = text[: spans[fitting - 1][1]] if fitting else ""
    words = list(dict.fromkeys(_fitting(beginning, is_written_well)))
    return position, _listed(words)


def unmatched(text: str) -> int | None:
    """Return the position of a bracket or quote that lacks its other half; None: there is none."""
    left_open, misplaced = _open(text)
    if misplaced is not None:
        return misplaced
    return left_open[-1][0] if left_open else None


def in_words(text: str, position: int) -> str:
    """Return a position as people count: lines and columns from 1."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return f"line {line}, column {column}"


def _fitting(beginning: str, is_written_well: Callable[[str], bool]) -> Iterator[str]:
    closing = _closing(beginning)
    for words, completion in _COMPLETIONS:
        if is_written_well(beginning + completion + closing):
            yield f"{closing[0]} or {words}" if closing and not completion else words


def _closing(beginning: str) -> str:
    """Return what closes the brackets that are open at the end of a beginning."""
    return "".join(closing for _, closing in reversed(_open(beginning)[0]))


def _open(text: str) -> tuple[list[tuple[int, str]], int | None]:
    """Return what brackets are open at the end, each with what closes it, and what fits none."""
    found: list[tuple[int, str]] = []
    for start, end in tokens(text):
        token = text[start:end]
        if token in _CLOSING:
            found.append((start, _CLOSING[token]))
        elif token in _ENDS and found and found[-1][1] == token:
            found.pop()
        elif token in _ENDS or token in _LONE:
            return found, start
    return found, None


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
