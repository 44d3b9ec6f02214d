"""An HTTP proxy on a free port: it forwards requests, and opens tunnels for TLS.

It alone knows where the names lead that a test gives it, as the proxy of a network does.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from testbed.loopback import LoopbackServer, pump

Address = tuple[str, int]


@dataclass(slots=True)
class ForwardProxy(LoopbackServer):
    """Leads to the servers of `leads_to`, and refuses all others."""

    leads_to: Mapping[Address, int]
    """Ports of 127.0.0.1, by the host and port of the URL."""
    requests: list[str] = field(default_factory=list)
    """The first lines of the requests that it was sent."""
    credentials: list[str | None] = field(default_factory=list)
    """What each of them had in Proxy-Authorization."""

    @property
    def url(self) -> str:
        """What HTTP_PROXY names."""
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request, or one tunnel, and end the connection."""
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode().split("\r\n")
                fields = {name.lower(): value.strip() for name, _, value in map(_parted, lines)}
                self.requests.append(first)
                self.credentials.append(fields.get("proxy-authorization"))
                method, target, _ = first.split(" ")
                port = self.leads_to.get(_address(target))
                if port is None:
                    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                    await writer.drain()
                    return
                onward, back = await asyncio.open_connection("127.0.0.1", port)
                if method == "CONNECT":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    parts = urlsplit(target)
                    path = parts._replace(scheme="", netloc="").geturl()
                    back.write(head.replace(target.encode(), path.encode(), 1))
                try:
                    await asyncio.gather(pump(reader, back), pump(onward, writer))
                finally:
                    back.transport.abort()
        finally:
            writer.transport.abort()


def _parted(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _address(target: str) -> Address:
    parts = urlsplit(target if "://" in target else f"//{target}")
    return parts.hostname or "", parts.port or 80
