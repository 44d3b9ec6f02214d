"""What a YAML document consists of: mappings, lists and scalars, each with its position.

Values only. Types are those that Kubernetes sees: a plain `70` is a number, and "70" a string.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from keda_gpu_scaler.check.findings import Position


class Entry(NamedTuple):
    """One key of a mapping, and its value."""

    position: Position
    """Where the key is."""
    value: "Node"


@dataclass(frozen=True, slots=True)
class Node:
    """A mapping, a list or a scalar."""

    position: Position
    kind: str
    """`mapping`, `list`, `string`, `number`, `boolean` or `null`."""
    scalar: str = ""
    """The text of a scalar."""
    items: "tuple[Node, ...]" = ()
    """What is in a list."""
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """What is in a mapping."""

    def get(self, *path: str) -> "Node | None":
        """Return the value at a path of keys; None if a part of the path is missing or null."""
        node = self
        for key in path:
            entry = node.entries.get(key)
            if entry is None or entry.value.kind == "null":
                return None
            node = entry.value
        return node

    def block(self, *path: str) -> "Node":
        """Return the mapping at a path; an empty one if there is none."""
        node = self.get(*path)
        return node if node is not None and node.entries else Node(self.place(*path), "mapping")

    def blocks(self, *path: str) -> "list[Node]":
        """Return the mappings of the list at a path."""
        node = self.get(*path)
        return [item for item in node.items if item.kind == "mapping"] if node is not None else []

    def text(self, *path: str) -> str:
        """Return the text of the scalar at a path; empty if there is none."""
        node = self.get(*path)
        return node.scalar if node is not None else ""

    def integer(self, *path: str) -> int | None:
        """Return the whole number at a path; None: there is none."""
        node = self.get(*path)
        try:
            return int(node.scalar, 0) if node is not None and node.kind == "number" else None
        except ValueError:
            return None

    def has(self, *path: str) -> bool:
        """Tell whether there is a value at a path."""
        return self.get(*path) is not None

    def place(self, *path: str) -> Position:
        """Return where a key is; where it is missing, the key above it."""
        node, place = self, self.position
        for key in path:
            if key not in node.entries:
                break
            place, node = node.entries[key]
        return place
