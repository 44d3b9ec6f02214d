"""The chart's values, one by one, with their defaults and with what the comments above them say.

Only the comment right above a value is about it. A map of values may have no comment.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from testbed.charts import CHART

VALUES = CHART / "values.yaml"
PAGE_MARK = "chart-values"


class Value(NamedTuple):
    """One value: its path, its default, and its meaning, empty where no comment gives it."""

    path: str
    default: str
    meaning: str


def values() -> list[Value]:
    """Return every value, in the order of the file; a map with a comment is one value."""
    text = VALUES.read_text()
    root = yaml.compose(text)
    if not isinstance(root, yaml.MappingNode):
        raise TypeError(f"{VALUES} is no map")
    return list(_below(root, text.splitlines(), ""))


def table() -> list[str]:
    """Return the lines of the table that the chart's README shows."""
    rows = (f"| `{value.path}` | `{value.default}` | {value.meaning} |" for value in values())
    return ["| value | default | meaning |", "| --- | --- | --- |", *rows]


def _below(node: yaml.MappingNode, lines: list[str], path: str) -> Iterator[Value]:
    for key, value in node.value:
        name = f"{path}{key.value}"
        meaning = _comment(lines, key.start_mark.line)
        if isinstance(value, yaml.MappingNode) and value.value and not meaning:
            yield from _below(value, lines, f"{name}.")
        else:
            yield Value(name, _default(value), meaning)


def _comment(lines: list[str], below: int) -> str:
    found: list[str] = []
    while below and (match := re.fullmatch(r" *# ?(.*)", lines[below - 1])):
        found.insert(0, match[1])
        below -= 1
    return " ".join(found)


def _default(node: yaml.Node) -> str:
    default: Any = yaml.safe_load(yaml.serialize(node))
    return default if default and isinstance(default, str) else json.dumps(default)
