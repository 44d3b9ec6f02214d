"""Pipes where a file is expected."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def pipe(path: Path, content: bytes) -> Iterator[None]:
    """Make a pipe; whoever waits for a writer gets this good content after two seconds."""
    os.mkfifo(path)
    writer = threading.Timer(2, path.write_bytes, [content])
    writer.start()
    try:
        yield
    finally:
        writer.cancel()
