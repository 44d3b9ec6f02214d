"""The network of a cluster whose pods are processes: Services by name, through a proxy.

A program given it by HTTP_PROXY and HTTPS_PROXY reaches `name.namespace.svc:port` as a pod would:
by `CONNECT` for gRPC and TLS, and plain HTTP with a connection for each request. The addresses are
those of the EndpointSlices, ready ones only, each in its turn, and the next one where nothing
listens any more. 127.x.y.z plays the pod at 10.x.y.z. No certificate is touched: a server's name is
the Service's own.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

import lightkube
from lightkube import ApiError
from lightkube.resources.core_v1 import Service
from lightkube.resources.discovery_v1 import EndpointSlice

from testbed.loopback import pump

Place = tuple[str, int]
"""A host and a port."""


def loopback(address: str) -> str:
    """Return where the process of a pod with this address listens: a pod's may not be loopback."""
    return "127." + address.removeprefix("10.")


async def serve(client: lightkube.AsyncClient, port: int) -> None:
    """Lead to the Services of a cluster, until the process ends."""
    network = Network(client)
    server = await asyncio.start_server(network.take, "127.0.0.1", port)
    await server.serve_forever()


@dataclass(slots=True)
class Network:
    """The Services in the API server, read anew for each connection."""

    client: lightkube.AsyncClient
    _turns: Iterator[int] = field(default_factory=itertools.count)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to the proxy."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.decode().split(" ", 2)
            tunnels = method == "CONNECT"
            url = urlsplit(f"//{target}" if tunnels else target)
            try:
                places = await self._places(url.hostname or "", url.port or 80)
                far_reader, far_writer = await _connected(places)
            except OSError:
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            else:
                if tunnels:
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    far_writer.write(_to_origin(head, url))
                await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        writer.close()

    async def _places(self, host: str, port: int) -> Sequence[Place]:
        """Return where on loopback a connection to a host of the cluster may go, the best first."""
        name, namespace, kind, *_ = [*host.split("."), "", "", ""]
        if kind != "svc":
            message = f"{host} is not in this cluster"
            raise ConnectionError(message)
        try:
            service = (await self.client.get(Service, name, namespace=namespace)).to_dict()
        except ApiError as error:
            message = f"there is no Service {name} in {namespace}: {error}"
            raise ConnectionError(message) from error
        names = [each.get("name", "") for each in service["spec"]["ports"] if each["port"] == port]
        ready = await self._ready(name, namespace)
        if not names or not ready:
            message = f"nobody behind port {port} of Service {namespace}/{name} is ready"
            raise ConnectionError(message)
        turn = next(self._turns) % len(ready)
        return [(host, ports[names[0]]) for host, ports in ready[turn:] + ready[:turn]]

    async def _ready(self, name: str, namespace: str) -> list[tuple[str, dict[str, int]]]:
        """Return every address that takes connections, with its ports by name."""
        labels: dict[str, Any] = {"kubernetes.io/service-name": name}
        slices = self.client.list(EndpointSlice, namespace=namespace, labels=labels)
        return [
            (
                loopback(endpoint["addresses"][0]),
                {each.get("name", ""): each["port"] for each in found.get("ports", [])},
            )
            for found in [piece.to_dict() async for piece in slices]
            for endpoint in found.get("endpoints", [])
            if endpoint.get("conditions", {}).get("ready", True)
        ]


async def _connected(
    places: Sequence[Place],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    *others, last = places
    for place in others:
        with contextlib.suppress(OSError):
            return await asyncio.open_connection(*place)
    return await asyncio.open_connection(*last)


def _to_origin(head: bytes, url: SplitResult) -> bytes:
    """Return the head of a request to a proxy as the server itself gets it, for one connection."""
    first, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, _, version = first.split(b" ")
    path = url._replace(scheme="", netloc="").geturl() or "/"
    kept = [line for line in headers if not line.lower().startswith(b"connection:")]
    words = b" ".join((method, path.encode(), version))
    return b"\r\n".join([words, *kept, b"Connection: close", b"", b""])
