"""What a command has read of the past, kept in a file to go on from."""

from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec


class CachedPart(Protocol):
    """What was read of one stretch of time."""

    @property
    def begin(self) -> float: ...


P = TypeVar("P", bound=CachedPart)


class _Line(msgspec.Struct):
    """One line of the file: a part, and what it is of."""

    key: str
    chunk: msgspec.Raw


class Cache(Generic[P]):
    """The parts that were read before, in a file with a line for each."""

    def __init__(self, path: Path | None, kind: type[P]) -> None:
        """Read the file, if there is one; ValueError: it is no such file."""
        self._path = path
        self._parts: dict[tuple[str, float], P] = {}
        if path is None or not path.exists():
            return
        for number, text in enumerate(path.read_bytes().splitlines(), 1):
            try:
                line = msgspec.json.decode(text, type=_Line)
                part = msgspec.json.decode(line.chunk, type=kind)
            except msgspec.MsgspecError as error:
                message = f"{path}:{number}: not a line that --cache writes, delete it: {error}"
                raise ValueError(message) from error
            self._parts[line.key, part.begin] = part

    def get(self, key: str, begin: float) -> P | None:
        return self._parts.get((key, begin))

    def add(self, key: str, part: P) -> None:
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode({"key": key, "chunk": part}) + b"\n")
