"""A text → its YAML documents with positions, and what of it cannot be read.

Pure: PyYAML turns texts into events here and nothing else. One document that is wrong hides no
other: each is read by itself. The work is bounded for any text, and so is that of all who walk
the documents: an alias counts as all the values that it stands for.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from keda_gpu_scaler.check.findings import Position
from keda_gpu_scaler.check.nodes import Entry, Node

BYTES_LIMIT = 16 << 20
"""Several times what the largest Helm charts render."""
DOCUMENTS_LIMIT = 10_000
VALUES_LIMIT = 500_000
"""Of all documents of a text together: a few seconds of work."""
DEPTH_LIMIT = 64
_KEYS_SHOWN = 100

_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NOTHING = re.compile(r"(?:[ \t]*(?:[#%][^\n]*)?(?:\n|\Z))*+")
"""Blank lines, comments and directives before the first marker."""
_RESOLVER: Any = yaml.resolver.Resolver()
_KINDS = {"int": "number", "float": "number", "bool": "boolean", "null": "null"}


class Problem(NamedTuple):
    """Something in a text that cannot be read, or that readers understand differently."""

    rule: str
    """The name of the rule that finds it."""
    position: Position
    what: str


class Reading(NamedTuple):
    """What is in a text."""

    documents: tuple[Node, ...]
    problems: tuple[Problem, ...]


class _ProblemError(Exception):
    def __init__(self, rule: str, position: Position, what: str) -> None:
        super().__init__(what)
        self.problem = Problem(rule, position, what)


def read(text: str, values_limit: int = VALUES_LIMIT) -> Reading:
    """Return the mappings that a text holds, and its problems; other documents say nothing."""
    if len(text.encode("utf-8", "replace")) > BYTES_LIMIT:
        what = f"the text is larger than {BYTES_LIMIT >> 20} MiB"
        return Reading((), (Problem("too-large", Position(1, 1), what),))
    documents, problems, values_left = [], [], values_limit
    for number, (line, piece) in enumerate(_pieces(text)):
        if number == DOCUMENTS_LIMIT:
            what = f"there are more than {DOCUMENTS_LIMIT:,} documents"
            problems.append(Problem("too-large", Position(line, 1), what))
            break
        builder = _Builder(piece, line, values_left)
        try:
            document = builder.document()
        except _ProblemError as error:
            problems.append(error.problem)
        else:
            problems += builder.duplicates
            if document is not None and document.kind == "mapping":
                documents.append(document)
        values_left = builder.values_left
        if values_left < 0:
            break
    return Reading(tuple(documents), tuple(problems))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield each document's text with the number of its first line, which is its marker's.

    A marker at the start of a line ends a document wherever it stands, also within a string.
    """
    start, line = 0, 1
    for end in (*(marker.start() for marker in _MARKER.finditer(text)), len(text)):
        piece = text[start:end]
        if _NOTHING.fullmatch(without_end := piece.removeprefix("...")) is None:
            yield line, without_end
        line += piece.count("\n")
        start = end


class _Builder:
    """Makes the nodes of one document from PyYAML's events."""

    def __init__(self, text: str, line: int, values_left: int) -> None:
        self.duplicates: list[Problem] = []
        self.values_left = values_left
        """How many more values are read; below 0: there were more."""
        self._text = text
        self._line = line
        self._anchors: dict[str, tuple[Node, int]] = {}

    def document(self) -> Node | None:
        """Return the root of the document; None: it is empty."""
        root: Node | None = None
        try:
            # Both loaders have the same events; the one in C needs a tenth of the time.
            self._events = yaml.parse(self._text, yaml.CSafeLoader)
            for event in self._events:
                if isinstance(event, yaml.NodeEvent):
                    root = self._node(event, 0)
        except yaml.MarkedYAMLError as error:
            what = error.problem or "it cannot be read"
            raise _ProblemError("yaml-syntax", self._error_place(error), what) from error
        except (yaml.YAMLError, UnicodeError) as error:
            what = "it has characters that YAML does not allow"
            raise _ProblemError("yaml-syntax", Position(self._line, 1), what) from error
        return root

    def _error_place(self, error: yaml.MarkedYAMLError) -> Position:
        """Return where a text is wrong: what is not ended is at fault where it begins."""
        text = self._text.rstrip()
        for mark in (error.problem_mark, error.context_mark):
            if mark is not None and mark.index < len(text):
                return self._place(mark)
        return Position(self._line + text.count("\n"), 1)

    def _place(self, mark: Any) -> Position:  # noqa: ANN401 - each loader has a mark of its own
        return Position(self._line + mark.line, mark.column + 1)

    def _node(self, event: yaml.Event, depth: int) -> Node:
        place, values_before = self._place(event.start_mark), self.values_left
        self._spend(1, place)
        if depth > DEPTH_LIMIT:
            what = f"it is nested deeper than {DEPTH_LIMIT} levels"
            raise _ProblemError("too-large", place, what)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                what = "an alias stands for nothing before it that is complete"
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
            self._anchors[event.anchor] = node, values_before - self.values_left
        return node

    def _spend(self, values: int, place: Position) -> None:
        self.values_left -= values
        if self.values_left < 0:
            what = "there are more values than are read"
            raise _ProblemError("too-large", place, what)

    def _entries(self, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if key.kind in ("list", "mapping"):
                raise _ProblemError("yaml-syntax", key.position, "a key is no text")
            if key.scalar == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                merged += value.items or (value,)
            elif key.scalar in entries:
                shown = key.scalar[:_KEYS_SHOWN].encode("unicode_escape").decode()
                first = entries[key.scalar].position.line
                what = f'the key "{shown}" is there already, in line {first}'
                self.duplicates.append(Problem("duplicate-key", key.position, what))
            else:
                entries[key.scalar] = Entry(key.position, value)
        for block in merged:
            for name, entry in block.entries.items():
                entries.setdefault(name, entry)
        return entries


def _kind(event: yaml.ScalarEvent) -> str:
    """Return the type that Kubernetes' reader of YAML gives to a scalar."""
    tag: str = event.tag or _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
    # PyYAML takes 1:30 for a number to the base 60, and Kubernetes for a string.
    if event.tag is None and ":" in event.value:
        return "string"
    return _KINDS.get(tag.removeprefix("tag:yaml.org,2002:"), "string")
