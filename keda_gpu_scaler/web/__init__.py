"""HTTP: the scaler's metrics and health, and the webhook for alerts.

    pages     /metrics, /healthz, /readyz
    status    / and /triggers/NAMESPACE/NAME, for people
    triggers  /api/v1/triggers
    webhook   /webhook, for senders of alerts; /alerts, for the other replicas

Health is about this process only: it is alive while the event loop answers, and ready from its
start until it drains. A source that is down changes neither, because a restart cannot repair it.

A token may show namespaces alone. What is not about a namespace is not among its routes, so that a
new page is refused to it until its path names one.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from keda_gpu_scaler.transport import authentication
from keda_gpu_scaler.transport.server import HttpServer
from keda_gpu_scaler.web import pages, status, triggers, webhook
from keda_gpu_scaler.web.triggers import Shown
from keda_gpu_scaler.web.webhook import Webhook

__all__ = ["HttpServer", "Shown", "Webhook", "create_app"]

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
    open_routes = [*pages.health(is_ready), *webhook.routes(hook), *webhook.replica_routes(hook)]
    guarded: Sequence[BaseRoute] = pages.metrics(registry)
    if shown is not None:
        guarded = [*guarded, *triggers.routes(shown), *status.routes(shown)]
    if token is not None:
        confined_app = Starlette(routes=_confined_routes(guarded))
        guard = authentication.Guard(Starlette(routes=guarded), token, allowed, confined_app)
        guarded = [Mount("/", guard)]
    return Starlette(routes=[*open_routes, *guarded])


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
