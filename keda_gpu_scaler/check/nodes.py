"""What a YAML document consists of: mappings, sequences and scalars, each with its position.

Values only. Types are those that Kubernetes sees: a plain `70` is a number, and "70" a string.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from keda_gpu_scaler.check.findings import Position


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text and the type that it has in JSON."""

    position: Position
    text: str
    kind: str = "string"
    """`string`, `number`, `boolean` or `null`."""

    @property
    def integer(self) -> int | None:
        """The whole number that it is; None: it is none."""
        try:
            return int(self.text, 0) if self.kind == "number" else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    position: Position
    items: "tuple[Node, ...]" = ()
    kind: str = "list"


class Entry(NamedTuple):
    """One key of a mapping, and its value."""

    position: Position
    """Where the key is."""
    value: "Node"


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping."""

    position: Position
    entries: Mapping[str, Entry] = field(default_factory=dict)
    kind: str = "mapping"

    def get(self, *path: str) -> "Node | None":
        """Return the value at a path of keys; None if a part of the path is missing or null."""
        found: Node | None = self
        for key in path:
            entry = found.entries.get(key) if isinstance(found, Block) else None
            found = None if entry is None or entry.value.kind == "null" else entry.value
        return found

    def block(self, *path: str) -> "Block":
        """Return the mapping at a path; an empty one if there is none."""
        found = self.get(*path)
        return found if isinstance(found, Block) else Block(self.place(*path))

    def blocks(self, *path: str) -> "Iterator[Block]":
        """Yield the mappings of the list at a path."""
        found = self.get(*path)
        if isinstance(found, Sequence):
            yield from (item for item in found.items if isinstance(item, Block))

    def text(self, *path: str) -> str:
        """Return the text of the scalar at a path; empty if there is none."""
        found = self.get(*path)
        return found.text if isinstance(found, Scalar) else ""

    def integer(self, *path: str) -> int | None:
        """Return the whole number at a path, if there is one."""
        found = self.get(*path)
        return found.integer if isinstance(found, Scalar) else None

    def has(self, *path: str) -> bool:
        """Tell whether there is a value at a path."""
        return self.get(*path) is not None

    def place(self, *path: str) -> Position:
        """Return where a key is; where it is missing, the key above it."""
        place, found = self.position, self
        for key in path:
            entry = found.entries.get(key)
            if entry is None:
                break
            place = entry.position
            if not isinstance(entry.value, Block):
                break
            found = entry.value
        return place


Node = Scalar | Sequence | Block
