"""The string literals of PromQL: a text → a literal, and back as Prometheus reads it. Pure.

Every string gets into a query by `quoted`.
"""

import re

_KEYWORD = "(?i:inf|nan|smoothed|anchored|without)"
"""What is no label in a list of them, unless it is quoted."""
_PLAIN_LABEL = re.compile(rf"(?!{_KEYWORD}$)[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(
    rb"""\\(?: (?P<letter>[abfnrtv'"]) | (?P<octal>[0-7]{3}) | x(?P<byte>[0-9A-Fa-f]{2})
    | u(?P<short>[0-9A-Fa-f]{4}) | U(?P<long>[0-9A-Fa-f]{8}) | )""",
    re.VERBOSE,
)
_BACKSLASH = rb"\\"
_LETTERS = dict(zip(b"abfnrtv'\"", b"\a\b\f\n\r\t\v'\"", strict=True))
_WRONG = "an escape that is not Prometheus', or a text that is not UTF-8"


def quoted(text: str) -> str:
    """Return `text` as a PromQL string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def label(name: str) -> str:
    """Return the name of a label: as it is, or quoted where only Prometheus 3 allows it."""
    return name if _PLAIN_LABEL.fullmatch(name) else quoted(name)


def unquoted(literal: str) -> str:
    r"""Return the text that a literal stands for.

    Go's rules, as Prometheus applies them: between backquotes nothing is escaped; elsewhere `\x`
    and three octal digits are bytes, `\u` and `\U` characters, and of the quotes only its own.

    Raises:
        ValueError: Prometheus reads no text in it.
    """
    quote, inside = literal[0], literal[1:-1]
    try:
        written = inside.encode()
        if quote != "`":
            # Taken apart first: the patterns of the scaler's own queries have thousands of these.
            pieces = written.split(_BACKSLASH)
            written = b"\\".join(_unescaped(piece, quote.encode()) for piece in pieces)
        return written.decode()
    except ValueError:
        raise ValueError(_WRONG) from None


def _unescaped(written: bytes, quote: bytes) -> bytes:
    if b"\\" not in written:
        return written
    return _ESCAPE.sub(lambda found: _meant(found, quote), written)


def _meant(found: re.Match[bytes], quote: bytes) -> bytes:
    kind, digits = found.lastgroup, found[found.lastindex or 0]
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
