"""`/alerts`: what this replica knows of alerts, for the others, and what they know.

What comes in here goes no further: whoever heard of it first has told everybody.
"""

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import wire
from keda_gpu_scaler.web import asking
from keda_gpu_scaler.web.webhook import OFF, TOKEN, Webhook


def routes(hook: Webhook | None) -> list[Route]:
    """Return the routes for other replicas; without a webhook they say how to have one."""

    async def tell(request: Request) -> Response:
        found = _admitted(hook, request).alerts.entries()
        return Response(orjson.dumps(wire.written(found)), media_type="application/json")

    async def learn(request: Request) -> Response:
        admitted = _admitted(hook, request)
        payload = await asking.payload(request, admitted.body_seconds, wire.LONGEST_BYTES)
        try:
            admitted.alerts.merge(wire.read(payload))
        except errors.RequestError as error:
            raise HTTPException(400, str(error)) from error
        return Response(status_code=204)

    return [Route("/alerts", tell, methods=["GET"]), Route("/alerts", learn, methods=["POST"])]


def _admitted(hook: Webhook | None, request: Request) -> Webhook:
    if hook is None:
        raise HTTPException(404, OFF)
    asking.admit(request, hook.token, TOKEN)
    return hook
