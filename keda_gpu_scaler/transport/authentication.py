"""Requests to the HTTP port: the token they need, and a body of JSON, bounded in size and time.

The token stands before each page that has no other rule, whether the page exists or not. What is
wrong with either leaves as an HTTPException, with a sentence for the caller.
"""

import asyncio
import base64
import binascii
import hmac
from collections.abc import Callable

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from keda_gpu_scaler import errors

BODY_BYTES = 2**20
"""A thousand alerts with long annotations."""
BODY_SECONDS = 10.0
"""Senders are in the same cluster, or near."""
_CHALLENGE = {"www-authenticate": 'Bearer, Basic realm="keda-gpu-scaler", charset="UTF-8"'}


def admit(request: Request, token: Callable[[], str], name: str) -> None:
    """Let through whoever knows the token: as a bearer token, or as a password of any user.

    Args:
        request: whose it is does not matter.
        token: returns the token of this moment, or raises SettingsError.
        name: what people call the token.

    Raises:
        HTTPException: he does not (401), or nobody can because the token cannot be read (503).
    """
    try:
        expected = token()
    except errors.SettingsError as error:
        raise HTTPException(503, str(error)) from error
    offered = _offered(request.headers.get("authorization", ""))
    if not hmac.compare_digest(offered, expected.encode()):
        message = f"expected {name}: Authorization: Bearer …, or as a Basic password"
        raise HTTPException(401, message, headers=_CHALLENGE)


def _offered(header: str) -> bytes:
    """Return the secret in an Authorization header; empty, which no token is, without one."""
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


async def payload(request: Request, seconds: float, limit_bytes: int = BODY_BYTES) -> object:
    """Return what was sent, decoded.

    Args:
        request: a request that was let through.
        seconds: how long its body may take.
        limit_bytes: how long it may be.

    Raises:
        HTTPException: it is too large (413), too slow (408), compressed (415), or no JSON (400).
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "expected a body that is not compressed")
    try:
        async with asyncio.timeout(seconds):
            body = await _body(request, limit_bytes)
    except TimeoutError as error:
        message = f"expected the body within {seconds:g} s"
        raise HTTPException(408, message, headers={"connection": "close"}) from error
    except ClientDisconnect as error:
        raise HTTPException(400, "the body was cut off") from error
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"expected a body of JSON: {error}") from error


async def _body(request: Request, limit_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            hint = "group_by in Alertmanager's route makes messages smaller"
            raise HTTPException(413, f"expected at most {limit_bytes} bytes; {hint}")
    return bytes(body)


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
            admit(Request(scope), self._token, "the HTTP port's token")
        except HTTPException as error:
            answer = PlainTextResponse(error.detail, error.status_code, error.headers)
        await answer(scope, receive, send)
