"""The pages about one namespace, for tokens that show it alone; every other page is refused.

What is not about a namespace is not among the routes, so that a new page is refused until its path
names one.
"""

from collections.abc import Awaitable, Callable, Iterable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from keda_gpu_scaler.transport import authentication

Endpoint = Callable[[Request], Awaitable[Response]]
STATIC = "/static"
"""The style of the pages, which contains no data."""


def routes(all_routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return the routes that name a namespace in their path, each for those that a token shows."""
    confined_routes: list[BaseRoute] = []
    for route in all_routes:
        if isinstance(route, Mount) and route.path == STATIC:
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
