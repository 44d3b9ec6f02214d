"""Small files that the operator names, such as those of tokens and certificates."""

import errno
import os
import stat
from pathlib import Path

LIMIT_BYTES = 2**20
"""Several times the CAs of a system."""


def read(path: Path) -> bytes:
    """Return the content of a regular file without waiting, or raise OSError with the reason."""
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        content = file.read(LIMIT_BYTES + 1)
    if len(content) > LIMIT_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {LIMIT_BYTES} bytes")
    return content


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for a writer, should it be a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
