"""Tokens in files, read again whenever they are needed, because tokens rotate."""

import contextlib
import hmac
import math
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import SecretStr

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import values
from keda_gpu_scaler.spec import workload

LOOK_SECONDS = 1.0
"""How soon a token that was changed counts."""
NAMESPACES_LIMIT = 1000
"""To list them takes a few milliseconds."""
LARGEST_BYTES = 4096
"""Of one token's file."""
EXPECTED = "a file that holds one token of visible ASCII"
"""What a setting expects that names a token file."""


def of(token: SecretStr | None, path: Path | None, name: str) -> Callable[[], str] | None:
    """Return a function that returns the current token or raises SettingsError; None: no token.

    Args:
        token: a token in the settings.
        path: a file that holds a token.
        name: the name of the file in messages.
    """
    if path is not None:
        return lambda: held_by(path, name)
    return None if token is None else token.get_secret_value


def held_by(path: Path, name: str) -> str:
    """Return the token that a file holds now.

    Args:
        path: the file.
        name: the name of the file in messages.

    Raises:
        errors.SettingsError: the file cannot be read, or holds no token.
    """
    try:
        return values.token(path.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise errors.SettingsError(f"{name} cannot be read: {error.strerror}") from error
    except ValueError:
        # Not chained: the cause of a decoding error shows the content of the file.
        message = f"{name} does not hold one token of visible ASCII"
        raise errors.SettingsError(message) from None


class OfNamespaces:
    """The tokens in a folder: each file is named after the namespace that it shows.

    They are read again when a file changes, which is looked for once a second at most: a client may
    send wrong tokens at any rate.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a folder; it is read when a token is shown.

        Args:
            path: the folder.
            clock: seconds that never go back.
        """
        self._path, self._clock = path, clock
        self._looked_at = -math.inf
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._tokens: dict[str, bytes] = {}

    def allowed(self, offered: bytes) -> frozenset[str]:
        """Return the namespaces that a token shows; the time it takes tells nothing of any token.

        A file that cannot be read, or holds no token, shows nothing; neither does an empty token.
        """
        now = self._clock()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look()
        found = [
            namespace
            for namespace, token in self._tokens.items()
            if hmac.compare_digest(offered, token)
        ]
        return frozenset(found)

    def _look(self) -> None:
        stamps = dict(self._listed())
        self._tokens = {
            namespace: token
            for namespace, stamp in stamps.items()
            if (token := self._token(namespace, stamp)) is not None
        }
        self._stamps = stamps

    def _listed(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        try:
            names = sorted(path.name for path in self._path.iterdir())
        except OSError:
            return
        for name in [name for name in names if workload.is_namespace(name)][:NAMESPACES_LIMIT]:
            with contextlib.suppress(OSError):
                found = (self._path / name).stat()
                if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_BYTES:
                    yield name, (found.st_mtime_ns, found.st_ino, found.st_size)

    def _token(self, namespace: str, stamp: tuple[int, ...]) -> bytes | None:
        if self._stamps.get(namespace) == stamp:
            return self._tokens.get(namespace)
        try:
            return held_by(self._path / namespace, namespace).encode()
        except errors.SettingsError:
            return None
