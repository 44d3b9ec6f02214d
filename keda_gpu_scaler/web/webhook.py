"""`/webhook`: alerts from Alertmanager and Grafana. `/alerts`: for other replicas.

The answer comes once the alerts are in the store and the other replicas were told. Alertmanager
repeats a message answered with 5xx at once, and one answered with 4xx when the group is due again.
The same message twice changes nothing. So all usable alerts of a message are taken, and the answer
names the others. Alerts from another replica are not passed on.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import AlertRecord, Alerts
from keda_gpu_scaler.alerts.notifications import Notification, read_notification, scaled_object
from keda_gpu_scaler.alerts.replicas import BROADCAST_BYTES, read_records, written_records
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import authentication

_METHODS = ["POST", "PUT"]
"""Grafana can be configured to use either."""
TOKEN = "the webhook's token"  # noqa: S105 - what it is called
OFF = (
    "there is no webhook: set KEDA_GPU_SCALER_WEBHOOK_TOKEN or KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE "
    "to have one"
)


@dataclass(frozen=True, slots=True)
class Webhook:
    """The parts that the webhook uses."""

    alerts: Alerts
    token: Callable[[], str]
    """Returns the current token, or raises SettingsError."""
    broadcast: Callable[[Sequence[AlertRecord]], Awaitable[None]]
    """Tells the other replicas, within a time limit, and never fails."""
    observe: facts.Observer
    bodies: authentication.Bodies = field(default_factory=authentication.Bodies)
    """Reads the bodies of all requests."""


def routes(hook: Webhook | None) -> list[Route]:
    """Return the routes of the webhook; without one they answer how to set it up."""

    async def receive(request: Request) -> Response:
        if hook is None:
            raise HTTPException(404, OFF)
        return await _received(hook, request)

    paths = ("/webhook", "/webhook/{namespace}/{name}")
    return [Route(path, receive, methods=_METHODS) for path in paths]


async def _received(hook: Webhook, request: Request) -> Response:
    """Answer a message, and report the result as a fact in every case."""
    try:
        authentication.admit(request, hook.token, TOKEN)
        async with hook.bodies.read(request) as body:
            said = _read(authentication.decoded(body), request)
            status, text = await _taken(hook, said)
    except HTTPException as error:
        hook.observe(facts.Notified("unknown", error.status_code, error.detail))
        raise
    hook.observe(facts.Notified(said.sender, status, text, said.truncated))
    return PlainTextResponse(f"{text}\n", status)


def _read(payload: object, request: Request) -> Notification:
    named = request.path_params
    try:
        whose = scaled_object(**named) if named else None
        return read_notification(payload, whose)
    except errors.RequestError as error:
        raise HTTPException(400, str(error)) from error


async def _taken(hook: Webhook, said: Notification) -> tuple[int, str]:
    """Take the usable alerts; return the status and the text of the answer."""
    known = hook.alerts.receive(said.updates)
    await hook.broadcast(known)
    taken = {record.key for record in known}
    left = [update for update in said.updates if update.key not in taken]
    words = _words(said, len(said.updates) - len(left))
    if left:
        full = f"not taken: {len(left)}, since {hook.alerts.limit} alerts are known already"
        return 503, "\n".join([*words, full])
    return (422 if said.refused else 200), "\n".join(words)


def _words(said: Notification, taken: int) -> list[str]:
    """Return the lines of the answer: how many alerts were taken, and which were not."""
    words = [f"taken: {taken}"]
    if said.passed_over:
        words.append(f"ignored, because they neither fire nor are resolved: {said.passed_over}")
    if said.truncated:
        words.append(f"left out by the sender (max_alerts), and so not known: {said.truncated}")
    if said.refused:
        words.append(f"not taken: {len(said.refused) + said.more_refused}")
        words += [f"- {sentence}" for sentence in said.refused]
    if said.more_refused:
        words.append(f"- and {said.more_refused} more")
    return words


def replica_routes(hook: Webhook | None) -> list[Route]:
    """Return the routes for other replicas; without a webhook they answer how to set it up."""

    async def tell(request: Request) -> Response:
        found = _admitted(hook, request).alerts.records()
        return Response(written_records(found), media_type="application/json")

    async def learn(request: Request) -> Response:
        admitted = _admitted(hook, request)
        async with admitted.bodies.read(request, BROADCAST_BYTES) as body:
            try:
                admitted.alerts.merge(read_records(body))
            except errors.RequestError as error:
                raise HTTPException(400, str(error)) from error
        return Response(status_code=204)

    return [
        Route("/alerts", tell, methods=["GET"]),
        Route("/alerts", learn, methods=["POST"]),
    ]


def _admitted(hook: Webhook | None, request: Request) -> Webhook:
    if hook is None:
        raise HTTPException(404, OFF)
    authentication.admit(request, hook.token, TOKEN)
    return hook
