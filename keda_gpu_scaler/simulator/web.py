"""The simulator over HTTP: exporter pages to scrape, workloads to change while it runs.

It translates between HTTP and the cluster and decides nothing. Time comes from one clock.
"""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keda_gpu_scaler.simulator import exposition
from keda_gpu_scaler.simulator.cluster import Cluster, Key
from keda_gpu_scaler.transport.server import Bounds, HttpServer

_BOUNDS = Bounds(shutdown_seconds=2)
_UNPROCESSABLE = 422


def server(app: Starlette, host: str = "127.0.0.1", port: int = 0) -> HttpServer:
    """Return a server of an application, that ends within seconds."""
    return HttpServer(app, host, port, bounds=_BOUNDS)


def application(cluster: Cluster, clock: Callable[[], float]) -> Starlette:
    api = _Api(cluster, clock)
    routes = [
        Route("/metrics", api.metrics),
        Route("/router/metrics", api.router_metrics),
        Route("/workloads", api.workloads),
        Route("/workloads/{namespace}/{name}", api.put, methods=["PUT"]),
    ]
    return Starlette(routes=routes)


class _Api:
    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        self._cluster, self._clock = cluster, clock

    async def metrics(self, _request: Request) -> Response:
        return _page(exposition.whole_page(self._cluster, self._clock()))

    async def router_metrics(self, _request: Request) -> Response:
        return _page(exposition.router_page(self._cluster))

    async def workloads(self, _request: Request) -> Response:
        descriptions = [self._description(key) for key in sorted(self._cluster.workloads)]
        return JSONResponse({"workloads": descriptions})

    async def put(self, request: Request) -> Response:
        try:
            key = Key.checked(**request.path_params)
            wanted = self._cluster.changed(key, await request.body())
        except ValueError as error:
            raise HTTPException(_UNPROCESSABLE, str(error)) from error
        self._cluster.put(key, wanted, self._clock())
        return JSONResponse(self._description(key))

    def _description(self, key: Key) -> dict[str, object]:
        """Return what is wanted of a workload, as far as it can be changed, and its pods."""
        now = self._clock()
        percents = self._cluster.percents(now)
        return {
            "namespace": key.namespace,
            "name": key.name,
            **self._cluster.wanted_of(key).model_dump(include=set(self._cluster.changeable)),
            "pods": [
                {
                    "name": pod.name,
                    "ready": pod.is_ready(now),
                    "gpu_percent": round(percents[uid], 3),
                }
                for uid, pod in self._cluster.pods.items()
                if pod.workload == key
            ],
        }


def _page(text: bytes) -> Response:
    return Response(text, media_type=exposition.CONTENT_TYPE)
