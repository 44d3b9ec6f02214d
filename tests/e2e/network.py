"""The network of a cluster whose pods are processes: Services by name, through a proxy.

    python -m tests.e2e.network --kubeconfig … --port …

A program given it by HTTP_PROXY and HTTPS_PROXY reaches `name.namespace.svc:port` as a
pod would, unchanged: by `CONNECT` for gRPC and TLS, and as an ordinary proxy for plain HTTP. The
addresses are those of the EndpointSlices, ready ones only, each in its turn, and the next one where
nothing listens any more, as gRPC does with the addresses of a name. Those of pods are played by
loopback addresses (`tests.e2e.kubelet.addresses`). It is TCP: no certificate is touched, and
a server's name is the Service's own.

A pod that another process plays says where that is in its annotation `e2e/address`.
"""

import argparse
import asyncio
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lightkube
from lightkube import ApiError
from lightkube.resources.core_v1 import Pod, Service
from lightkube.resources.discovery_v1 import EndpointSlice

from tests.e2e.kubelet import addresses

ADDRESS = "e2e/address"
_CHUNK_BYTES = 65536
_HEAD_BYTES = 65536
Manifest = dict[str, Any]
Place = tuple[str, int]
"""A host and a port."""


class UnreachableError(Exception):
    """There is nothing behind a name now."""


@dataclass(slots=True)
class Network:
    """The Services in the API server, read anew for each connection."""

    client: lightkube.AsyncClient
    _turns: Iterator[int] = field(default_factory=itertools.count)

    async def locate(self, host: str, port: int) -> Sequence[Place]:
        """Return where on loopback a connection to a host of the cluster may go, the best first.

        Raises:
            UnreachableError: there is no such Service, or no ready pod behind it.
        """
        if addresses.is_of_a_pod(host):
            return [(addresses.loopback(host), port)]
        name, namespace, kind, *_ = [*host.split("."), "", "", ""]
        if kind != "svc":
            message = f"{host} is not in this cluster"
            raise UnreachableError(message)
        return await self._behind(name, namespace, port)

    async def _behind(self, name: str, namespace: str, port: int) -> Sequence[Place]:
        service = await self._service(name, namespace)
        if service["spec"].get("type") == "ExternalName":
            return [(service["spec"]["externalName"], port)]
        headless = service["spec"].get("clusterIP") == "None"
        wanted = [each for each in service["spec"].get("ports", []) if each["port"] == port]
        if not wanted and not headless:
            message = f"Service {namespace}/{name} has no port {port}"
            raise UnreachableError(message)
        ready = await self._ready(name, namespace)
        if not ready:
            message = f"nobody behind Service {namespace}/{name} is ready"
            raise UnreachableError(message)
        turn = next(self._turns) % len(ready)
        return [
            await self._played(
                endpoint, namespace, port if headless else ports[wanted[0].get("name", "")]
            )
            for endpoint, ports in ready[turn:] + ready[:turn]
        ]

    async def _service(self, name: str, namespace: str) -> Manifest:
        try:
            found = await self.client.get(Service, name, namespace=namespace)
        except ApiError as error:
            message = f"there is no Service {name} in {namespace}: {error}"
            raise UnreachableError(message) from error
        return dict(found.to_dict())

    async def _ready(self, name: str, namespace: str) -> list[tuple[Manifest, dict[str, int]]]:
        """Return every endpoint that takes connections, with its ports by name."""
        labels: dict[str, Any] = {"kubernetes.io/service-name": name}
        slices = self.client.list(EndpointSlice, namespace=namespace, labels=labels)
        return [
            (endpoint, {each.get("name", ""): each["port"] for each in found.get("ports", [])})
            for found in [one.to_dict() async for one in slices]
            for endpoint in found.get("endpoints", [])
            if endpoint.get("conditions", {}).get("ready", True)
        ]

    async def _played(self, endpoint: Manifest, namespace: str, port: int) -> Place:
        """Return the address of the process that plays an endpoint's pod."""
        if target := endpoint.get("targetRef"):
            pod = await self.client.get(Pod, target["name"], namespace=namespace)
            annotations = (pod.metadata and pod.metadata.annotations) or {}
            if elsewhere := annotations.get(ADDRESS):
                host, _, number = elsewhere.rpartition(":")
                return host, int(number)
        return addresses.loopback(endpoint["addresses"][0]), port


@dataclass(slots=True)
class Proxy:
    """The proxy that programs use."""

    network: Network

    async def serve(self, port: int) -> None:
        """Serve until the process ends."""
        server = await asyncio.start_server(self._take, "127.0.0.1", port, limit=_HEAD_BYTES)
        await server.serve_forever()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            try:
                method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
                places = await self.network.locate(*_wanted(method, target))
                far_reader, far_writer = await _connected(places)
            except (UnreachableError, OSError) as error:
                body = f"{error}\n".encode()
                length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\n" + length + body)
                await writer.drain()
            else:
                if method == "CONNECT":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    far_writer.write(_to_origin(head, target))
                await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer))
        writer.close()


async def _connected(
    places: Sequence[Place],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that accepts."""
    *others, last = places
    for place in others:
        with contextlib.suppress(OSError):
            return await asyncio.open_connection(*place)
    return await asyncio.open_connection(*last)


def _wanted(method: str, target: str) -> Place:
    """Return the destination of a request."""
    url = urlsplit(f"//{target}" if method == "CONNECT" else target)
    if url.hostname is None:
        message = f"{target} names no host"
        raise UnreachableError(message)
    return url.hostname, url.port or 80


def _to_origin(head: bytes, target: str) -> bytes:
    """Return the head of a request in the form for the server itself, for one connection."""
    url = urlsplit(target)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    first, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, _, version = first.split(b" ")
    about_connections = (b"connection:", b"proxy-connection:")
    kept = [each for each in headers if not each.lower().startswith(about_connections)]
    words = b" ".join((method, path.encode(), version))
    return b"\r\n".join([words, *kept, b"Connection: close", b"", b""])


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until there are no more."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


async def _run(given: argparse.Namespace) -> None:
    configuration = lightkube.KubeConfig.from_file(given.kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="network", trust_env=False)
    async with contextlib.aclosing(client):
        await Proxy(Network(client)).serve(given.port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_run(parser.parse_args()))
