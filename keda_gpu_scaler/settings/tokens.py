"""Tokens in files, read again whenever they are needed, because tokens rotate."""

import contextlib
import hmac
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, SecretStr, TypeAdapter

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import values
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.transport import files

LOOK_SECONDS = 1.0
"""How soon a token that was changed counts. A client may send wrong tokens at any rate."""
_TOKEN = TypeAdapter[SecretStr](values.Token)


def of(token: SecretStr | None, path: Path | None, name: str) -> Callable[[], str] | None:
    """Return a function that returns the current token or raises SettingsError; None: no token.

    `name` is what messages call the file.
    """
    if path is not None:
        return lambda: _held_by(path, name)
    return None if token is None else token.get_secret_value


def _held_by(path: Path, name: str) -> str:
    try:
        return _TOKEN.validate_python(files.read(path).decode().strip()).get_secret_value()
    except OSError as error:
        raise errors.SettingsError(f"{name} cannot be read: {error.strerror}") from error
    except ValueError:
        # Not chained: the cause shows the content of the file.
        message = f"{name} does not hold one token of visible ASCII"
        raise errors.SettingsError(message) from None


def _check_holds_token(path: Path) -> Path:
    try:
        _held_by(path, "it")
    except errors.SettingsError as error:
        raise ValueError(f"a file with a token, but {error}") from error
    return path


TokenFile = Annotated[Path, AfterValidator(_check_holds_token)]


class OfNamespaces:
    """The tokens in a folder: each file is named after the namespace that it shows."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a folder; it is read when a token is shown, at most once a second."""
        self._path, self._clock = path, clock
        self._read_at = -math.inf
        self._tokens: dict[str, bytes] = {}

    def allowed(self, offered: bytes) -> frozenset[str]:
        """Return the namespaces that a token shows; the time it takes tells nothing of any token.

        A file that cannot be read, or holds no token, shows nothing; neither does an empty token.
        """
        now = self._clock()
        if now - self._read_at >= LOOK_SECONDS:
            self._read_at = now
            self._tokens = dict(self._read())
        return frozenset(
            namespace
            for namespace, token in self._tokens.items()
            if hmac.compare_digest(offered, token)
        )

    def _read(self) -> Iterator[tuple[str, bytes]]:
        try:
            files = list(self._path.iterdir())
        except OSError:
            return
        for file in files:
            with contextlib.suppress(errors.SettingsError):
                if workload.is_namespace(file.name):
                    yield file.name, _held_by(file, file.name).encode()
