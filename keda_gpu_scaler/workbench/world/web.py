"""The simulator over HTTP: exporter pages to scrape, workloads to change while it runs.

It translates between HTTP and the cluster and decides nothing. Time comes from one clock.
"""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keda_gpu_scaler.transport.http_server import Bounds, HttpServer
from keda_gpu_scaler.workbench.world import exposition
from keda_gpu_scaler.workbench.world.cluster import Cluster, WorkloadKey


def server(app: Starlette, host: str = "127.0.0.1", port: int = 0) -> HttpServer:
    """Return a server of an application, that ends within seconds."""
    return HttpServer(app, host, port, bounds=Bounds(shutdown_seconds=2))


def application(cluster: Cluster, clock: Callable[[], float]) -> Starlette:
    """Return the ASGI application of one cluster, at the clock's time."""

    async def metrics(_request: Request) -> Response:
        return _page(exposition.gpu_page(cluster.gpus(clock())))

    async def router_metrics(_request: Request) -> Response:
        return _page(exposition.router_page(cluster))

    async def workloads(_request: Request) -> Response:
        descriptions = [_description(cluster, key, clock()) for key in sorted(cluster.workloads)]
        return JSONResponse({"workloads": descriptions})

    async def put(request: Request) -> Response:
        """Create a workload, or change the given fields of one."""
        try:
            key = WorkloadKey.checked(**request.path_params)
            wanted = cluster.changed(key, await request.body())
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        cluster.put(key, wanted, clock())
        return JSONResponse(_description(cluster, key, clock()))

    routes = [
        Route("/metrics", metrics),
        Route("/router/metrics", router_metrics),
        Route("/workloads", workloads),
        Route("/workloads/{namespace}/{name}", put, methods=["PUT"]),
    ]
    return Starlette(routes=routes)


def _page(text: bytes) -> Response:
    return Response(text, media_type=exposition.CONTENT_TYPE)


def _description(cluster: Cluster, key: WorkloadKey, now: float) -> dict[str, object]:
    percents = cluster.percents(now)
    return {
        "namespace": key.namespace,
        "name": key.name,
        **cluster.wanted_of(key).model_dump(include=set(cluster.changeable)),
        "pods": [
            {"name": pod.name, "ready": pod.is_ready(now), "gpu_percent": round(percents[uid], 3)}
            for uid, pod in cluster.pods.items()
            if pod.workload == key
        ],
    }
