"""Requests to the HTTP port: the token they need, and their bodies, bounded in size and time.

Every page without another rule needs the token, whether the page exists or not. A wrong token or
body raises an HTTPException with a sentence for the client.
"""

import asyncio
import base64
import binascii
import hmac
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from keda_gpu_scaler import errors

BODY_BYTES = 2**20
"""Room for a thousand alerts with long annotations."""
BODY_SECONDS = 10.0
"""Enough for senders in the same cluster or nearby."""
OPEN_BYTES = 16 * 2**20
"""Of all bodies together, from their first byte until what they say is stored."""
NAMESPACES = "keda_gpu_scaler.namespaces"
"""Where a request's scope has the namespaces that its token shows."""
_CHALLENGE = {"www-authenticate": 'Bearer, Basic realm="keda-gpu-scaler", charset="UTF-8"'}


def admit(request: Request, token: Callable[[], str], name: str) -> None:
    """Admit a request with the token, as a bearer token or as the Basic password of any user.

    HTTPException: it has another or none (401), or the token cannot be read (503).
    """
    try:
        expected = token()
    except errors.SettingsError as error:
        raise HTTPException(503, str(error)) from error
    if not hmac.compare_digest(_offered_secret(request), expected.encode()):
        message = f"expected {name}: Authorization: Bearer …, or as a Basic password"
        raise HTTPException(401, message, headers=_CHALLENGE)


def _offered_secret(request: Request) -> bytes:
    """Return the secret in the Authorization header; empty without one, as no token is."""
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
    """Reads the bodies of admitted requests, and counts what of them is in memory."""

    def __init__(self, seconds: float = BODY_SECONDS) -> None:
        self._seconds, self.open_bytes = seconds, 0

    @asynccontextmanager
    async def read(
        self, request: Request, limit_bytes: int = BODY_BYTES
    ) -> AsyncIterator[bytearray]:
        """Yield a body; it counts until the context ends.

        HTTPException: it is too large, late, or cut off, or there are too many others.
        """
        if request.headers.get("content-encoding", "identity") != "identity":
            raise HTTPException(415, "expected a body that is not compressed")
        body = bytearray()
        try:
            await self._read_into(body, request, limit_bytes)
            yield body
        finally:
            self.open_bytes -= len(body)

    async def _read_into(self, body: bytearray, request: Request, limit_bytes: int) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in request.stream():
                    body += chunk
                    self.open_bytes += len(chunk)
                    if len(body) > limit_bytes:
                        hint = "group_by in Alertmanager's route makes messages smaller"
                        raise HTTPException(413, f"expected at most {limit_bytes} bytes; {hint}")
                    if self.open_bytes > OPEN_BYTES:
                        message = f"more than {OPEN_BYTES} bytes of messages at once; send it again"
                        raise HTTPException(503, message)
        except TimeoutError as error:
            message = f"expected the body within {self._seconds:g} s"
            raise HTTPException(408, message, headers={"connection": "close"}) from error
        except ClientDisconnect as error:
            raise HTTPException(400, "the body was cut off") from error


class Guard:
    """Passes requests with the token to an application, and refuses all others.

    `token` returns the current token, or raises SettingsError. `allowed` returns the namespaces
    that another token shows; requests with one go to `confined`, with them in their scope.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: Callable[[], str],
        allowed: Callable[[bytes], Collection[str]] | None,
        confined: ASGIApp,
    ) -> None:
        self._app, self._token, self._allowed, self._confined = app, token, allowed, confined

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it before anything else of it is read."""
        app, request = self._app, Request(scope)
        try:
            admit(request, self._token, "the HTTP port's token")
        except HTTPException:
            namespaces = self._allowed(_offered_secret(request)) if self._allowed else ()
            if not namespaces:
                raise
            scope[NAMESPACES] = namespaces
            app = self._confined
        await app(scope, receive, send)
