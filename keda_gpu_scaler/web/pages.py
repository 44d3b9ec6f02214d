"""The pages for Prometheus and the kubelet."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


def metrics(registry: CollectorRegistry) -> list[Route]:
    """Return the route of the metrics."""

    def show(request: Request) -> Response:
        """Show the metrics, in a thread, because thousands of triggers take a while to write."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return [Route("/metrics", show)]


def health(is_ready: Callable[[], bool]) -> list[Route]:
    """Return the routes of health."""

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if is_ready():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("starting or draining\n", status_code=503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
