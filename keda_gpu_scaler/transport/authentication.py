"""Requests to the HTTP port: the token they need, and a body of JSON, bounded in size and time.

Every page without another rule needs the token, whether the page exists or not. A wrong token or
body raises an HTTPException with a sentence for the client.
"""

import asyncio
import base64
import binascii
import contextlib
import hmac
from collections.abc import AsyncIterator, Callable, Collection
from typing import NamedTuple

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from keda_gpu_scaler import errors

BODY_BYTES = 2**20
"""Room for a thousand alerts with long annotations."""
OPEN_BYTES = 16 * BODY_BYTES
"""Of all bodies that are not answered yet, together: what they say takes several times as much."""
BODY_SECONDS = 10.0
"""Enough for senders in the same cluster or nearby."""
NAMESPACES = "keda_gpu_scaler.namespaces"
"""Where a request's scope has the namespaces that its token shows."""
_CHALLENGE = {"www-authenticate": 'Bearer, Basic realm="keda-gpu-scaler", charset="UTF-8"'}


def admit(request: Request, token: Callable[[], str], name: str) -> None:
    """Admit a request with the token, as a bearer token or as the Basic password of any user.

    Raises:
        HTTPException: it does not have the token, which the message calls `name` (401), or the
            token cannot be read (503).
    """
    try:
        expected = token()
    except errors.SettingsError as error:
        raise HTTPException(503, str(error)) from error
    if not hmac.compare_digest(offered_by(request), expected.encode()):
        message = f"expected {name}: Authorization: Bearer …, or as a Basic password"
        raise HTTPException(401, message, headers=_CHALLENGE)


def offered_by(request: Request) -> bytes:
    """Return the secret in the Authorization header; empty without one, and no token is empty."""
    header = request.headers.get("authorization", "")
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip().encode()
    if scheme.lower() != "basic":
        return b""
    try:
        _, _, password = base64.b64decode(credentials.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return b""
    return password


class Bodies:
    """Reads the bodies of requests; together they are bounded until their requests are answered.

    `seconds` is the longest time for one body.
    """

    def __init__(self, seconds: float = BODY_SECONDS) -> None:
        self._seconds, self._open_bytes = seconds, 0

    @contextlib.asynccontextmanager
    async def read(
        self, request: Request, limit_bytes: int = BODY_BYTES
    ) -> AsyncIterator[bytearray]:
        """Yield the body of an admitted request; it counts as open while the context lasts.

        Raises:
            HTTPException: it has more than `limit_bytes` (413), is too slow (408), compressed (415)
                or cut off (400), or too much of others is open (503).
        """
        if request.headers.get("content-encoding", "identity") != "identity":
            raise HTTPException(415, "expected a body that is not compressed")
        body = bytearray()
        try:
            await self._fill(body, request, limit_bytes)
            yield body
        finally:
            self._open_bytes -= len(body)

    async def _fill(self, body: bytearray, request: Request, limit_bytes: int) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in request.stream():
                    body += chunk
                    self._open_bytes += len(chunk)
                    if len(body) > limit_bytes:
                        hint = "group_by in Alertmanager's route makes messages smaller"
                        raise HTTPException(413, f"expected at most {limit_bytes} bytes; {hint}")
                    if self._open_bytes > OPEN_BYTES:
                        raise HTTPException(503, "too many requests at once: send it again later")
        except TimeoutError as error:
            message = f"expected the body within {self._seconds:g} s"
            raise HTTPException(408, message, headers={"connection": "close"}) from error
        except ClientDisconnect as error:
            raise HTTPException(400, "the body was cut off") from error


def decoded(body: bytearray) -> object:
    """Return what a body of JSON says, or raise HTTPException (400)."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"expected a body of JSON: {error}") from error


class Confined(NamedTuple):
    """What a token shows that is of one namespace alone."""

    allowed: Callable[[bytes], Collection[str]]
    """Returns the namespaces that a token shows; none: it is no such token."""
    app: ASGIApp
    """Answers, with the namespaces at `NAMESPACES` in the scope."""


class Guard:
    """Passes requests with the token to an application, and refuses all others.

    `token` returns the current token, or raises SettingsError. `confined` has what other tokens
    show; None: there are no others.
    """

    def __init__(
        self, app: ASGIApp, token: Callable[[], str], confined: Confined | None = None
    ) -> None:
        self._app, self._token, self._confined = app, token, confined

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it before anything else of it is read."""
        app, request = self._app, Request(scope)
        try:
            admit(request, self._token, "the HTTP port's token")
        except HTTPException as error:
            app = PlainTextResponse(error.detail, error.status_code, error.headers)
            if self._confined is not None:
                namespaces = self._confined.allowed(offered_by(request))
                if namespaces:
                    scope[NAMESPACES] = namespaces
                    app = self._confined.app
        await app(scope, receive, send)
