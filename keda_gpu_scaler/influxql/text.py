"""Literals of InfluxQL: the one way by which a name or a string gets into a text.

Pure. The rules are those of InfluxDB's own scanner: after a backslash it takes either quote, a
backslash or `n`, in names and in strings alike.
"""

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "'": r"\'", "\n": r"\n"})
_UNSPEAKABLE = frozenset("\r\0")
"""The scanner takes a carriage return for the end of a line and NUL for the end of everything."""


def name(text: str) -> str:
    """Return the name of a database, a measurement, a field or a tag, as InfluxQL.

    Raises:
        ValueError: InfluxQL cannot express it.
    """
    return f'"{_escaped(text)}"'


def string(text: str) -> str:
    """Return a string literal; raises as `name` does."""
    return f"'{_escaped(text)}'"


def is_speakable(text: str) -> bool:
    """Tell whether InfluxQL can express a text at all."""
    return _UNSPEAKABLE.isdisjoint(text)


def _escaped(text: str) -> str:
    if not is_speakable(text):
        raise ValueError("a text without carriage returns and NUL")
    return text.translate(_ESCAPES)
