"""Tokens in files, read again whenever they are needed, because tokens rotate."""

from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import values

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
