"""A text → its YAML documents with positions, and what of it cannot be read.

Pure: PyYAML turns texts into events here and nothing else. One document that is wrong hides no
other: each is read by itself. The work is bounded for any text, and so is that of all who walk
the documents: an alias counts as all that it stands for, and what is too large, too deep or refers
to itself is refused.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from keda_gpu_scaler.check.findings import Position
from keda_gpu_scaler.check.nodes import Block, Entry, Node, Scalar, Sequence

BYTES_LIMIT = 16 << 20
"""Several times what the largest Helm charts render."""
DOCUMENT_LIMIT = 4 << 20
"""Bytes of one document; etcd takes objects of 1.5 MiB."""
DOCUMENTS_LIMIT = 10_000
VALUES_LIMIT = 500_000
"""Of all documents of a text together: a few seconds of work."""
DEPTH_LIMIT = 64
ALIASES_LIMIT = 100
"""Of one document; what Helm renders has none."""
_KEYS_SHOWN = 100

_DEFINITION = (0, "kind", "CustomResourceDefinition")
"""The depth, the key and the value by which a document is one."""
_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NOTHING = re.compile(r"(?:[ \t]*(?:[#%][^\n]*)?(?:\n|\Z))*+")
"""Blank lines, comments and directives before the first marker."""
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = re.compile(r"[yYnN]|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[Tt]rue|TRUE|[Ff]alse|FALSE")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0o[0-7_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9]+)?"
    r"|\.[0-9][0-9_]*(?:[eE][+-]?[0-9]+)?|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
_TAGS = {"int": "number", "float": "number", "bool": "boolean", "null": "null"}


class Problem(NamedTuple):
    """Something in a text that cannot be read, or that readers understand differently."""

    rule: str
    """The name of the rule that finds it."""
    position: Position
    what: str


class Reading(NamedTuple):
    """What is in a text."""

    documents: tuple[Block, ...]
    problems: tuple[Problem, ...]


def read(text: str, values_limit: int = VALUES_LIMIT) -> Reading:
    """Return the mappings that a text holds, and its problems; other documents say nothing."""
    if len(text) > BYTES_LIMIT or len(text.encode("utf-8", "replace")) > BYTES_LIMIT:
        what = f"the text is larger than {BYTES_LIMIT >> 20} MiB"
        return Reading((), (Problem("too-large", Position(1, 1), what),))
    documents, problems, budget = [], [], _Budget(values_limit)
    for number, (line, piece) in enumerate(_pieces(text)):
        place = Position(line, 1)
        if number >= DOCUMENTS_LIMIT:
            what = f"there are more than {DOCUMENTS_LIMIT} documents"
            problems.append(Problem("too-large", place, what))
            break
        if len(piece.encode("utf-8", "replace")) > DOCUMENT_LIMIT:
            what = f"the document is larger than {DOCUMENT_LIMIT >> 20} MiB"
            problems.append(Problem("too-large", place, what))
            continue
        builder = _Builder(piece, line, budget)
        try:
            document = builder.document()
        except _ProblemError as error:
            problems.append(error.problem)
            continue
        problems.extend(builder.duplicates)
        if isinstance(document, Block):
            documents.append(document)
    return Reading(tuple(documents), tuple(problems))


class _ProblemError(Exception):
    def __init__(self, rule: str, position: Position, what: str) -> None:
        super().__init__(what)
        self.problem = Problem(rule, position, what)


class _DefinitionError(Exception):
    """The rest need not be read: charts bring ten thousand lines of it, which scale nothing."""


@dataclass
class _Budget:
    """How many more values are read."""

    values: int


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield each document's text with the number of its first line, which is its marker's.

    A marker at the start of a line ends a document wherever it stands, also within a string.
    """
    start, line = 0, 1
    for end in (*(found.start() for found in _MARKER.finditer(text)), len(text)):
        piece = text[start:end]
        if _NOTHING.fullmatch(without_end := piece.removeprefix("...")) is None:
            yield line, without_end
        line += piece.count("\n")
        start = end


class _Builder:
    """Makes the nodes of one document from PyYAML's events."""

    def __init__(self, text: str, line: int, budget: _Budget) -> None:
        self.duplicates: list[Problem] = []
        self._text = text
        self._line = line
        # PyYAML has other ends of lines beside these, and editors have not.
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._budget = budget
        self._aliases = 0
        self._anchors: dict[str, tuple[Node, int]] = {}

    def document(self) -> Node | None:
        """Return the root of the document; None: it is empty, or a CustomResourceDefinition.

        Raises:
            _ProblemError: it is no YAML, or beyond a limit.
        """
        try:
            # Both loaders have the same events; the one in C needs a tenth of the time.
            self._events = yaml.parse(self._text, yaml.CSafeLoader)
            root: Node | None = None
            for event in self._events:
                if isinstance(event, yaml.NodeEvent):
                    if root is not None:
                        what = "a document begins within a line, as far as editors show it"
                        raise _ProblemError("yaml-syntax", self._place(event.start_mark), what)
                    root = self._node(event, 0)
        except _DefinitionError:
            return None
        except yaml.MarkedYAMLError as error:
            # What is not ended is at fault where it begins, and not behind the end of the text.
            read = self._text.rstrip()
            marks = [
                mark
                for mark in (error.problem_mark, error.context_mark)
                if mark is not None and mark.index < len(read)
            ]
            last = Position(self._line + read.count("\n"), 1)
            place = self._place(marks[0]) if marks else last
            raise _ProblemError(
                "yaml-syntax", place, error.problem or "it cannot be read"
            ) from error
        except (yaml.YAMLError, UnicodeError) as error:
            what = "it has characters that YAML does not allow"
            raise _ProblemError("yaml-syntax", Position(self._line, 1), what) from error
        return root

    def _place(self, mark: Any) -> Position:  # noqa: ANN401 - each loader has a mark of its own
        number = bisect_right(self._starts, mark.index) - 1
        return Position(self._line + number, mark.index - self._starts[number] + 1)

    def _node(self, event: yaml.Event, depth: int) -> Node:
        place, before = self._place(event.start_mark), self._budget.values
        self._spend(1, place)
        if depth > DEPTH_LIMIT:
            raise _ProblemError(
                "too-large", place, f"it is nested deeper than {DEPTH_LIMIT} levels"
            )
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, place)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = Scalar(place, event.value, _kind(event))
        elif isinstance(event, yaml.SequenceStartEvent):
            node = Sequence(place, tuple(self._items(depth)))
        else:
            node = Block(place, self._entries(depth))
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = node, before - self._budget.values
        return node

    def _spend(self, values: int, place: Position) -> None:
        if values > self._budget.values:
            raise _ProblemError("too-large", place, "there are more values than are read")
        self._budget.values -= values

    def _alias(self, event: yaml.AliasEvent, place: Position) -> Node:
        self._aliases += 1
        if self._aliases > ALIASES_LIMIT:
            raise _ProblemError("too-large", place, f"there are more than {ALIASES_LIMIT} aliases")
        if event.anchor not in self._anchors:
            what = "an alias stands for nothing before it that is complete"
            raise _ProblemError("yaml-syntax", place, what)
        node, values = self._anchors[event.anchor]
        self._spend(values, place)
        return node

    def _items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            yield self._node(event, depth + 1)

    def _entries(self, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        merged: list[Block] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if not isinstance(key, Scalar):
                raise _ProblemError("yaml-syntax", key.position, "a key is no text")
            if key.text == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                candidates = value.items if isinstance(value, Sequence) else (value,)
                merged += [one for one in candidates if isinstance(one, Block)]
            elif key.text in entries:
                shown = key.text[:_KEYS_SHOWN].encode("unicode_escape").decode()
                what = f'the key "{shown}" is there already, in line '
                what += str(entries[key.text].position.line)
                self.duplicates.append(Problem("duplicate-key", key.position, what))
            else:
                entries[key.text] = Entry(key.position, value)
                if isinstance(value, Scalar) and (depth, key.text, value.text) == _DEFINITION:
                    raise _DefinitionError
        for block in merged:
            for name, entry in block.entries.items():
                entries.setdefault(name, entry)
        return entries


def _kind(event: yaml.ScalarEvent) -> str:
    """Return the type that Kubernetes' reader of YAML gives to a scalar."""
    if event.tag is not None:
        return _TAGS.get(event.tag.removeprefix("tag:yaml.org,2002:"), "string")
    if not event.implicit[0]:
        return "string"
    if event.value in _NULL:
        return "null"
    if _BOOLEAN.fullmatch(event.value):
        return "boolean"
    return "number" if _NUMBER.fullmatch(event.value) else "string"
