"""Where a container is: its address and its files here, in place of those that its pod says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_EVERY_ADDRESS = re.compile(r"(?<![\d.])0\.0\.0\.0(?=:)|\[::\]")


@dataclass(frozen=True, slots=True)
class Place:
    """One container's view of this machine."""

    host: str
    """The loopback address that its pod has to itself."""
    mounts: Mapping[str, Path]
    """What is really at each `mountPath`."""

    def here(self, text: str) -> str:
        """Return a text of the pod with local addresses and paths."""
        for path in sorted(self.mounts, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", str(self.mounts[path]), text)
        return _EVERY_ADDRESS.sub(self.host, text)

    def content_here(self, content: bytes) -> bytes:
        """Return a file's content with local addresses and paths; binary content is unchanged."""
        try:
            return self.here(content.decode()).encode()
        except UnicodeDecodeError:
            return content
