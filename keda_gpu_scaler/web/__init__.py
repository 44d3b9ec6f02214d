"""HTTP: the scaler's metrics and health, and the webhook for alerts.

    status    / and /triggers/NAMESPACE/NAME, for people
    triggers  /api/v1/triggers
    webhook   /webhook, for senders of alerts; /alerts, for the other replicas

Health is about this process only: it is alive while the event loop answers, and ready from its
start until it drains. A source that is down changes neither, because a restart cannot repair it.

A token may show namespaces alone. What is not about a namespace is not among its routes, so that a
new page is refused to it until its path names one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from keda_gpu_scaler.transport.http_server import HttpServer
from keda_gpu_scaler.web import authentication, status, triggers, webhook
from keda_gpu_scaler.web.triggers import Shown
from keda_gpu_scaler.web.webhook import Webhook

__all__ = ["HttpServer", "Shown", "Webhook", "create_app"]

AT_ONCE = 8
"""How many clients are shown the metrics at a time: a pair of Prometheus servers, and people. One
more waits, because each answer holds what there was to show when it began."""

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(  # noqa: PLR0913 - the composition root's values
    registry: CollectorRegistry,
    is_ready: Callable[[], bool],
    hook: Webhook | None = None,
    token: Callable[[], str] | None = None,
    shown: Shown | None = None,
    *,
    allowed: Callable[[bytes], Collection[str]] | None = None,
) -> Starlette:
    """Return the HTTP application.

    `token` is for everything but health, which the kubelet requests without one, and the webhook,
    which has its own; None: every client that reaches the port may read. `allowed` returns the
    namespaces that another token shows, which shows nothing else.
    """
    guarded: list[BaseRoute] = [*_metrics(registry)]
    if shown is not None:
        guarded += [*triggers.routes(shown), *status.routes(shown)]
    if token is not None:
        confined_app = Starlette(routes=_confined_routes(guarded))
        guard = authentication.Guard(Starlette(routes=guarded), token, allowed, confined_app)
        guarded = [Mount("/", guard)]
    return Starlette(routes=[*_health(is_ready), *webhook.routes(hook), *guarded])


def _confined_routes(all_routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return the routes that name a namespace in their path, each for those that a token shows."""
    confined_routes: list[BaseRoute] = []
    for route in all_routes:
        if isinstance(route, Mount) and route.path == status.STATIC:
            confined_routes.append(route)
        elif isinstance(route, Route) and "namespace" in route.param_convertors:
            confined_routes.append(Route(route.path, _confined(route.endpoint)))
    return [*confined_routes, Route("/{path:path}", _refuse)]


def _confined(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        if request.path_params["namespace"] not in request.scope[authentication.NAMESPACES]:
            return await _refuse(request)
        return await endpoint(request)

    return answer


async def _refuse(request: Request) -> Response:
    names = ", ".join(sorted(request.scope[authentication.NAMESPACES]))
    message = f"this token shows namespace {names} alone: /api/v1/triggers/{names} and below"
    raise HTTPException(403, f"{message}, and /triggers/{names} and below")


def _metrics(registry: CollectorRegistry) -> list[Route]:
    turns, writing = asyncio.Semaphore(AT_ONCE), asyncio.Lock()

    async def page() -> AsyncIterator[bytes]:
        """Yield one metric after the other: those of thousands of triggers are tens of MiB."""
        async with turns:
            families = iter(registry.collect())
            while True:
                async with writing:  # a metric takes several times as much memory as its text
                    text = await run_in_threadpool(_next_text, families)
                if not text:
                    return
                yield text

    async def show(_request: Request) -> Response:
        return StreamingResponse(page(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    return [Route("/metrics", show)]


def _next_text(families: Iterator[Metric]) -> bytes:
    """Return the next metric as text; nothing after the last one."""
    family = next(families, None)
    return b"" if family is None else generate_latest(_OneMetric(family))


class _OneMetric(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return [self._family]


def _health(is_ready: Callable[[], bool]) -> list[Route]:
    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if is_ready():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("starting or draining\n", status_code=503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
