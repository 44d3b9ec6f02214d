"""Literals of PromQL: the one way by which a string gets into a text.

Pure.
"""

import re
from collections.abc import Iterable

_PLAIN_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(text: str) -> str:
    """Return `text` as a PromQL string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def label(name: str) -> str:
    """Return the name of a label: as it is, or quoted where it is one of Prometheus 3's."""
    return name if _PLAIN_LABEL.fullmatch(name) else quoted(name)


def labels(names: Iterable[str]) -> str:
    """Return a list of labels in parentheses."""
    return f"({', '.join(label(name) for name in names)})"


def duration(seconds: float) -> str:
    """Return a duration in one unit, as every server reads it: whole seconds or milliseconds."""
    return f"{seconds:.0f}s" if seconds == round(seconds) else f"{round(seconds * 1000)}ms"
