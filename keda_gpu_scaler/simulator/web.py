"""The simulator over HTTP: exporter pages to scrape, workloads to change while it runs.

It translates between HTTP and the cluster and decides nothing. Time comes from one clock. It serves
on a bound socket until an event is set; signals are up to the caller.
"""

import asyncio
import dataclasses
import socket
from collections.abc import Callable
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keda_gpu_scaler.simulator import changes, cluster, exposition
from keda_gpu_scaler.transport.server import Bounds, Server

_BOUNDS = Bounds(shutdown_seconds=2)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; connections wait until `serve` runs. OSError if it is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


async def serve(app: Starlette, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, then finish the answers in progress."""
    server = Server(app, _BOUNDS)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[listener]), name="simulator-http")
        serving.add_done_callback(lambda _: stop.set())
        await stop.wait()
        server.should_exit = True


MAX_BODY_BYTES = 16 * 1024
_CREATED, _OK, _NO_CONTENT = 201, 200, 204
_BAD_REQUEST, _NOT_FOUND, _TOO_LARGE, _UNPROCESSABLE = 400, 404, 413, 422


class Api:
    """The endpoints of one cluster, with one clock."""

    def __init__(self, simulated: cluster.Simulated, clock: Callable[[], float]) -> None:
        """Serve this cluster, at the clock's time."""
        self._cluster = simulated
        self._clock = clock

    async def metrics(self, request: Request) -> Response:
        """Show all exporters and the router."""
        exporter = _exporter(request)
        page = exposition.whole_page(self._cluster, self._clock(), exporter)
        return Response(page, media_type=exposition.CONTENT_TYPE)

    async def node_metrics(self, request: Request) -> Response:
        """Show the exporter of one node, by its name or its index."""
        node = self._place(request.path_params["node"])
        exporter = _exporter(request)
        page = exposition.node_page(self._cluster, self._clock(), node, exporter)
        return Response(page, media_type=exposition.CONTENT_TYPE)

    def _place(self, node: str) -> int:
        places = {str(place): place for place in range(len(self._cluster.nodes))}
        places |= {each.host: place for place, each in enumerate(self._cluster.nodes)}
        if node not in places:
            count = len(self._cluster.nodes)
            raise HTTPException(_NOT_FOUND, f"no node {node}: there are {count}, counted from 0")
        return places[node]

    async def router_metrics(self, request: Request) -> Response:
        """Show the router, without any exporter."""
        del request
        page = exposition.router_page(self._cluster)
        return Response(page, media_type=exposition.CONTENT_TYPE)

    async def workloads(self, request: Request) -> Response:
        """List the workloads with their pods."""
        del request
        now = self._clock()
        found = [self._description(each, now) for each in self._cluster.workloads.values()]
        return JSONResponse({"workloads": found})

    async def put(self, request: Request) -> Response:
        """Create a workload, or change the given fields of one."""
        try:
            key = _key(request)
            change = changes.from_json(await _body(request), self._cluster.changeable)
            created = key not in self._cluster.workloads
            workload = self._change(key, change)
        except changes.NotJsonError as error:
            raise HTTPException(_BAD_REQUEST, str(error)) from error
        except ValueError as error:
            raise HTTPException(_UNPROCESSABLE, str(error)) from error
        found = self._description(workload, self._clock())
        return JSONResponse(found, _CREATED if created else _OK)

    def _change(self, key: cluster.Key, change: changes.Change) -> cluster.Workload:
        known = self._cluster.workloads.get(key)
        wanted = change.apply(known.wanted if known else cluster.Wanted())
        return self._cluster.put(key, wanted, self._clock())

    async def delete(self, request: Request) -> Response:
        """Delete a workload and its pods."""
        key = cluster.Key(request.path_params["namespace"], request.path_params["name"])
        try:
            self._cluster.delete(key)
        except KeyError as error:
            raise HTTPException(_NOT_FOUND, f"no workload {key.namespace}/{key.name}") from error
        return Response(status_code=_NO_CONTENT)

    def _description(self, workload: cluster.Workload, now: float) -> dict[str, object]:
        """Return the changeable fields of a workload's wanted state, and its pods."""
        asked = dataclasses.asdict(workload.wanted)
        return {
            "namespace": workload.key.namespace,
            "name": workload.key.name,
            **{name: asked[name] for name in asked if name in self._cluster.changeable},
            "pods": [
                {"name": pod.name, "ready": pod.is_ready(now), "gpu_percent": round(percent, 3)}
                for pod, percent in workload.percents(now)
            ],
        }


def application(api: Api) -> Starlette:
    """Return the ASGI application of these endpoints."""
    path = "/workloads/{namespace}/{name}"
    routes = [
        Route("/metrics", api.metrics),
        Route("/nodes/{node}/metrics", api.node_metrics),
        Route("/router/metrics", api.router_metrics),
        Route("/workloads", api.workloads),
        Route(path, api.put, methods=["PUT"]),
        Route(path, api.delete, methods=["DELETE"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refusal})


async def _refusal(request: Request, error: Exception) -> Response:
    del request
    refused = cast("HTTPException", error)  # Starlette calls it for no other class
    return JSONResponse({"error": refused.detail}, refused.status_code, refused.headers)


def _key(request: Request) -> cluster.Key:
    return changes.key(request.path_params["namespace"], request.path_params["name"])


def _exporter(request: Request) -> str:
    """Return the exporter whose page is asked for."""
    name = request.query_params.get("exporter", exposition.DCGM)
    if name not in exposition.EXPORTERS:
        known = ", ".join(exposition.EXPORTERS)
        raise HTTPException(_BAD_REQUEST, f"no exporter {name!r}: there are {known}")
    return name


async def _body(request: Request) -> bytes:
    """Read the body, up to its limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(_TOO_LARGE, f"the body has more than {MAX_BODY_BYTES} bytes")
    return bytes(body)
