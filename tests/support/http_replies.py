"""An HTTP server on a free port that answers as a test tells it, well or badly.

It knows nothing of the scaler. What it was asked is kept in `requests`.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from testbed.loopback import LoopbackServer

CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """One request, with header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


Reply = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class HttpServer(LoopbackServer):
    """Answers every request by calling `reply`, which may be replaced at any time."""

    reply: Reply
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _tls(self) -> ssl.SSLContext | None:
        return self.tls

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    request = await _read(reader)
                    self.requests.append(request)
                    await self.reply(request, writer)
                    await writer.drain()
        finally:
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (_parted(one) for one in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


def _parted(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def says(
    body: bytes | str, status: int = 200, content_type: str = "application/json", **headers: str
) -> Reply:
    """Answer with this body; `content_encoding="gzip"` becomes the header `content-encoding`."""
    content = body.encode() if isinstance(body, str) else body

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(status, content_type, len(content), headers) + content)

    return reply


def api(result_type: str, result: object, **more: object) -> Reply:
    return says(json.dumps(success(result_type, result, **more)))


def success(result_type: str, result: object, **more: object) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": result_type, "result": result}, **more}


def cuts(body: bytes, missing: int = 10) -> Reply:
    """Promise more than this body, and end the connection after it."""

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, "application/json", len(body) + missing, {}) + body)
        await writer.drain()
        writer.close()

    return reply


async def hangs(_: Request, writer: asyncio.StreamWriter) -> None:
    await _for_ever(writer)


async def stalls(_: Request, writer: asyncio.StreamWriter) -> None:
    """Begin an answer, and never end it."""
    writer.write(_head(200, "application/json", 100, {}) + b'{"status":')
    await writer.drain()
    await _for_ever(writer)


async def drips(_: Request, writer: asyncio.StreamWriter) -> None:
    """Send a byte now and then: each one in time, the whole never."""
    writer.write(_head(200, "application/json", 1_000_000, {}))
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)  # what makes this server slow; no test waits for it


def endless(part: bytes, head: bytes = b"", pause_seconds: float = 0.0) -> Reply:
    """Begin an answer with this head, and repeat a part of it for ever."""

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        while not writer.is_closing():
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_seconds)

    return reply


async def closes(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _for_ever(writer: asyncio.StreamWriter) -> None:
    await writer.wait_closed()


def _head(status: int, content_type: str, length: int, headers: Mapping[str, str]) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    fields = {"content-type": content_type, "content-length": str(length), **named}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode()


async def generators_closed() -> None:
    """Give the loop the steps in which it closes what httpx leaves open in the middle of a body."""
    for _ in range(10):
        await asyncio.sleep(0)
