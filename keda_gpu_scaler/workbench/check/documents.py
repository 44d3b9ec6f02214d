"""A text → its YAML documents: mappings, lists and scalars, each with its position.

Pure: PyYAML turns texts into events here and nothing else. Types are those that Kubernetes sees: a
plain `70` is a number, and "70" a string. The work is bounded for any text, and so is that of all
who walk the documents: an alias counts as all the values that it stands for.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

BYTES_LIMIT = 16 << 20
"""Several times what the largest Helm charts render."""
VALUES_LIMIT = 500_000
"""Of all documents of a text together: a few seconds of work."""
DEPTH_LIMIT = 64
_MOST_SHOWN = 100

_UNREADABLE = re.compile(
    "[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_RESOLVER: Any = yaml.resolver.Resolver()
_NUMBER = re.compile(r"[-+]?(0o[0-7_]+|(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9_]+)?)")
_KINDS = {"int": "number", "float": "number", "bool": "boolean", "null": "null"}


class Position(NamedTuple):
    """A place in a text; lines and columns count from 1, columns in characters."""

    line: int
    column: int


class Entry(NamedTuple):
    """One key of a mapping, and its value."""

    position: Position
    value: "Node"


@dataclass(frozen=True, slots=True)
class Node:
    """A mapping, a list or a scalar."""

    position: Position
    kind: str
    """`mapping`, `list`, `string`, `number`, `boolean` or `null`."""
    scalar: str = ""
    items: "tuple[Node, ...]" = ()
    entries: Mapping[str, Entry] = field(default_factory=dict)

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
        node = self.get(*path)
        return node.scalar if node is not None else ""

    def integer(self, *path: str) -> int | None:
        """Return the whole number at a path, also one in quotes; None: there is none."""
        try:
            return int(self.text(*path), 0)
        except ValueError:
            return None

    def has(self, *path: str) -> bool:
        return self.get(*path) is not None

    @property
    def plain(self) -> object:
        """The same in dictionaries, lists and strings."""
        if self.kind == "mapping":
            return {key: entry.value.plain for key, entry in self.entries.items()}
        return [item.plain for item in self.items] if self.kind == "list" else self.scalar

    def at(self, path: Iterable[str | int]) -> "Entry":
        """Return the value at a path of keys and indexes, all of which are there."""
        found = Entry(self.position, self)
        for step in path:
            node = found.value
            if isinstance(step, int):
                found = Entry(node.items[step].position, node.items[step])
            else:
                found = node.entries[step]
        return found

    def place(self, *path: str) -> Position:
        """Return where a key is; where it is missing, the key above it."""
        node, place = self, self.position
        for key in path:
            if key not in node.entries:
                break
            place, node = node.entries[key]
        return place


class Problem(NamedTuple):
    """Something in a text that cannot be read, or that readers understand differently."""

    rule: str
    position: Position
    what: str


class Documents(NamedTuple):
    """What is in a text."""

    documents: tuple[Node, ...]
    problems: tuple[Problem, ...]


class _ProblemError(Exception):
    def __init__(self, rule: str, position: Position, what: str) -> None:
        super().__init__(what)
        self.problem = Problem(rule, position, what)


def read(text: str, values_limit: int = VALUES_LIMIT) -> Documents:
    """Return the mappings that a text holds, up to the first place that cannot be read.

    Documents that are no mapping are ignored.
    """
    if len(text.encode("utf-8", "replace")) > BYTES_LIMIT:
        what = f"the text is larger than {BYTES_LIMIT >> 20} MiB"
        return Documents((), (Problem("too-large", Position(1, 1), what),))
    unreadable = _UNREADABLE.search(text)
    if unreadable is not None:
        before = text[: unreadable.start()]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        what = "it has a character that YAML does not allow"
        return Documents((), (Problem("yaml-syntax", position, what),))
    builder = _Builder(text, values_limit)
    try:
        builder.read()
    except _ProblemError as error:
        builder.problems.append(error.problem)
    except yaml.MarkedYAMLError as error:
        what, place = error.problem or "it cannot be read", _error_place(text, error)
        if any("\xa0" in line for line in text.split("\n")[max(0, place.line - 2) : place.line]):
            what += "; there is a no-break space in this line or the one before"
        builder.problems.append(Problem("yaml-syntax", place, what))
    return Documents(tuple(builder.documents), tuple(builder.problems))


def _error_place(text: str, error: yaml.MarkedYAMLError) -> Position:
    """Return where a text is wrong: what is not ended is at fault where it begins."""
    content = text.rstrip()
    for mark in (error.problem_mark, error.context_mark):
        if mark is not None and mark.index < len(content):
            return _place(mark)
    return Position(content.count("\n") + 1, 1)


def _place(mark: Any) -> Position:  # noqa: ANN401 - each loader has a mark of its own
    return Position(mark.line + 1, mark.column + 1)


class _Builder:
    def __init__(self, text: str, values_left: int) -> None:
        self.documents: list[Node] = []
        self.problems: list[Problem] = []
        self._values_left = values_left
        self._anchors: dict[str, tuple[Node, int]] = {}
        # Both loaders have the same events; the one in C needs a tenth of the time.
        self._events = yaml.parse(text, yaml.CSafeLoader)

    def read(self) -> None:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
            elif isinstance(event, yaml.NodeEvent):
                document = self._node(event, 0)
                if document.kind == "mapping":
                    self.documents.append(document)

    def _node(self, event: yaml.Event, depth: int) -> Node:
        place, values_before = _place(event.start_mark), self._values_left
        self._spend(1, place)
        if depth > DEPTH_LIMIT:
            what = f"it is nested deeper than {DEPTH_LIMIT} levels"
            raise _ProblemError("too-large", place, what)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                what = "an alias has no complete anchor before it"
                raise _ProblemError("yaml-syntax", place, what)
            node, values = self._anchors[event.anchor]
            self._spend(values, place)
            return node
        if isinstance(event, yaml.ScalarEvent):
            node = Node(place, _kind(event), event.value)
        elif isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(item, depth + 1))
            node = Node(place, "list", items=tuple(items))
        else:
            node = Node(place, "mapping", entries=self._entries(depth))
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = node, values_before - self._values_left
        return node

    def _spend(self, values: int, place: Position) -> None:
        self._values_left -= values
        if self._values_left < 0:
            what = "it has too many values"
            raise _ProblemError("too-large", place, what)

    def _entries(self, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if key.kind in ("list", "mapping"):
                raise _ProblemError("yaml-syntax", key.position, "a key is not a text")
            if key.scalar == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                merged += value.items or (value,)
            elif key.scalar in entries:
                first = entries[key.scalar].position.line
                what = f'the key "{shown(key.scalar)}" is already in line {first}'
                self.problems.append(Problem("duplicate-key", key.position, what))
            else:
                entries[key.scalar] = Entry(key.position, value)
        for block in merged:
            for name, entry in block.entries.items():
                entries.setdefault(name, entry)
        return entries


def shown(text: str) -> str:
    cut = text[:_MOST_SHOWN].encode("unicode_escape").decode("ascii")
    return f"{cut}..." if len(text) > _MOST_SHOWN else cut


def _kind(event: yaml.ScalarEvent) -> str:
    """Return the type that Kubernetes' reader of YAML gives to a scalar."""
    tag: str = event.tag or _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
    # PyYAML takes 1:30 for a number to the base 60, and Kubernetes for a string.
    if event.tag is None and ":" in event.value:
        return "string"
    # And it takes 1e+06, 08 and y for strings, which Kubernetes does not.
    if event.tag is None and event.implicit[0]:
        if _NUMBER.fullmatch(event.value):
            return "number"
        if event.value in {"y", "Y", "n", "N"}:
            return "boolean"
    return _KINDS.get(tag.removeprefix("tag:yaml.org,2002:"), "string")
