"""The token of the HTTP port, before each page that has no other rule, whether it exists or not."""

from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from keda_gpu_scaler.web import asking


class Guard:
    """Lets through to an application whoever knows the token."""

    def __init__(self, app: ASGIApp, token: Callable[[], str]) -> None:
        """Ask nobody yet.

        Args:
            app: what is behind.
            token: returns the token of this moment, or raises SettingsError.
        """
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it before anything of it is looked at."""
        answer = self._app
        try:
            asking.admit(Request(scope), self._token, "the HTTP port's token")
        except HTTPException as error:
            answer = PlainTextResponse(error.detail, error.status_code, error.headers)
        await answer(scope, receive, send)
