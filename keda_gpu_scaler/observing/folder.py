"""The files of a folder, read again when one of them changes.

Bounded in files and bytes. What cannot be read is refused file by file; hidden files are ignored,
as Kubernetes keeps its own in a mounted ConfigMap.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keda_gpu_scaler.observing.manifests import Refused

FILES_LIMIT = 200
BYTES_LIMIT = 4 << 20
"""Of all files together: four times what a ConfigMap may hold."""
_ENDINGS = (".yaml", ".yml", ".json")

_Stamp = tuple[str, int, int, int]


class Contents(NamedTuple):
    """What a folder holds."""

    texts: dict[str, str]
    """By the names of the files."""
    refused: tuple[Refused, ...]


class Folder:
    """A folder with files in YAML."""

    def __init__(self, path: Path) -> None:
        """Take a folder; nothing is read yet."""
        self._path = path
        self._read: tuple[_Stamp, ...] | str | None = None
        """What there was when the files were read: their stamps, or why there are none."""

    def changed(self) -> Contents | None:
        """Return what the files hold now; None: the same as before. It waits for the disk."""
        try:
            found: tuple[_Stamp, ...] | str = tuple(self._stamps())
        except OSError as error:
            found = f"the folder cannot be read: {error.strerror}"
        if found == self._read:
            return None
        self._read = found
        if isinstance(found, str):
            return Contents({}, (Refused(str(self._path), 0, found),))
        return self._contents(found)

    def _stamps(self) -> Iterator[_Stamp]:
        """Yield each file with what changes when it does."""
        with os.scandir(self._path) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name.endswith(_ENDINGS) and not entry.name.startswith(".")
            )
        for name in names[: FILES_LIMIT + 1]:
            try:
                found = (self._path / name).stat()
            except OSError:
                yield name, 0, 0, 0
                continue
            # A pipe would not end: its size counts as none, and nothing is read of it.
            size = found.st_size if stat.S_ISREG(found.st_mode) else -1
            yield name, found.st_mtime_ns, found.st_ino, size

    def _contents(self, stamps: tuple[_Stamp, ...]) -> Contents:
        texts: dict[str, str] = {}
        refused: list[Refused] = []
        room = BYTES_LIMIT
        for number, (name, _, _, size) in enumerate(stamps):
            if number >= FILES_LIMIT:
                refused.append(Refused(name, 0, f"there are more than {FILES_LIMIT} files"))
                break
            if size < 0:
                refused.append(Refused(name, 0, "it is no file"))
                continue
            try:
                with (self._path / name).open("rb") as file:
                    content = file.read(room + 1)
                if len(content) > room:
                    why = f"all files together are larger than {BYTES_LIMIT >> 20} MiB"
                    refused.append(Refused(name, 0, why))
                    continue
                texts[name] = content.decode()
                room -= len(content)
            except OSError as error:
                refused.append(Refused(name, 0, f"it cannot be read: {error.strerror}"))
            except UnicodeDecodeError:
                refused.append(Refused(name, 0, "it is not UTF-8"))
        return Contents(texts, tuple(refused))
