"""How a request shows who asks: by a bearer token of the moment, or by a user and a password."""

from collections.abc import Callable, Generator

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import ApiSettings, tokens


class Bearer(httpx.Auth):
    """Sends a token that is looked up for every request: tokens rotate."""

    def __init__(self, token: Callable[[], str]) -> None:
        """Look nothing up yet.

        Args:
            token: returns the token of this moment, or raises SettingsError.
        """
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the token of this moment.

        Raises:
            errors.SourceUnreachableError: there is none.
        """
        try:
            request.headers["Authorization"] = f"Bearer {self._token()}"
        except errors.SettingsError as error:
            raise errors.SourceUnreachableError(str(error)) from error
        yield request


def of(settings: ApiSettings) -> httpx.Auth | None:
    """Return what an HTTP API wants to be shown; None: nothing."""
    if (path := settings.bearer_token_file) is not None:
        return Bearer(lambda: tokens.held_by(path, f"the bearer token file {path}"))
    if (fixed := settings.bearer_token) is not None:
        return Bearer(fixed.get_secret_value)
    if settings.username is not None:
        password = settings.password.get_secret_value() if settings.password is not None else ""
        return httpx.BasicAuth(settings.username, password)
    return None
