"""`/webhook`: alerts from Alertmanager and Grafana. `/alerts`: for other replicas.

The answer comes once the alerts are in the store and the other replicas were told. Alertmanager
repeats a message answered with 5xx at once, and one answered with 4xx when the group is due again.
The same message twice changes nothing. So all usable alerts of a message are taken, and the answer
names the others. Alerts from another replica are not passed on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import AlertRecord, Alerts
from keda_gpu_scaler.alerts.notifications import Notification, read_notification, scaled_object
from keda_gpu_scaler.alerts.replicas import BROADCAST_BYTES, read_records, written_records
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.web import authentication

_METHODS = ["POST", "PUT"]
"""Grafana can be configured to use either."""
READ_AT_ONCE = 16
"""How many bodies are read at a time; others wait for their turn."""
TOKEN = "the webhook's token"  # noqa: S105 - what it is called
OFF = (
    "there is no webhook: set KEDA_GPU_SCALER_WEBHOOK_TOKEN or KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE "
    "to have one"
)


@dataclass(frozen=True, slots=True)
class Webhook:
    """What answers senders of alerts and the other replicas."""

    alerts: Alerts
    token: Callable[[], str]
    """Returns the current token, or raises SettingsError."""
    broadcast: Callable[[Sequence[AlertRecord]], Awaitable[None]]
    """Tells the other replicas, within a time limit, and never fails."""
    observe: facts.Observer
    body_seconds: float = authentication.BODY_SECONDS
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READ_AT_ONCE))
    """Held while a body is in memory: what it says takes several times as much."""

    async def receive(self, request: Request) -> Response:
        """Take a sender's message; the result is a fact in every case."""
        try:
            authentication.admit(request, self.token, TOKEN)
            notification = await self._read(request)
            status, text = await self._store(notification)
        except HTTPException as error:
            self.observe(facts.Notified("unknown", error.status_code, error.detail))
            raise
        self.observe(facts.Notified(notification.sender, status, text, notification.truncated))
        return PlainTextResponse(f"{text}\n", status)

    async def _read(self, request: Request) -> Notification:
        path = request.path_params
        async with self.reading:
            body = await authentication.read_body(request, seconds=self.body_seconds)
            try:
                payload = orjson.loads(body)
                return read_notification(payload, scaled_object(**path) if path else None)
            except orjson.JSONDecodeError as error:
                raise HTTPException(400, f"expected a body of JSON: {error}") from error
            except errors.RequestError as error:
                raise HTTPException(400, str(error)) from error

    async def _store(self, notification: Notification) -> tuple[int, str]:
        """Store the usable alerts; return the status and the text of the answer."""
        updates, refused = notification.updates, notification.refused
        records = self.alerts.receive(updates)
        await self.broadcast(records)
        stored_keys = {record.key for record in records}
        without_room = sum(update.key not in stored_keys for update in updates)
        lines = [f"taken: {len(updates) - without_room}"]
        for text, number in (
            ("ignored, because they neither fire nor are resolved", notification.passed_over),
            ("left out by the sender (max_alerts), and so not known", notification.truncated),
        ):
            if number:
                lines.append(f"{text}: {number}")
        if refused:
            lines.append(f"not taken: {len(refused) + notification.more_refused}")
            lines += [f"- {mistake}" for mistake in refused]
        if notification.more_refused:
            lines.append(f"- and {notification.more_refused} more")
        if without_room:
            limit = self.alerts.limit
            lines.append(f"not taken: {without_room}, since {limit} alerts are known already")
            return 503, "\n".join(lines)
        return (422 if refused else 200), "\n".join(lines)

    async def tell(self, request: Request) -> Response:
        authentication.admit(request, self.token, TOKEN)
        return Response(written_records(self.alerts.records()), media_type="application/json")

    async def learn(self, request: Request) -> Response:
        authentication.admit(request, self.token, TOKEN)
        async with self.reading:
            body = await authentication.read_body(request, BROADCAST_BYTES, self.body_seconds)
            try:
                self.alerts.merge(read_records(body))
            except errors.RequestError as error:
                raise HTTPException(400, str(error)) from error
        return Response(status_code=204)


async def _say_how(_request: Request) -> Response:
    raise HTTPException(404, OFF)


def routes(hook: Webhook | None) -> list[Route]:
    """Return the routes; without a webhook they answer how to set it up."""
    return [
        Route("/webhook", hook.receive if hook else _say_how, methods=_METHODS),
        Route("/webhook/{namespace}/{name}", hook.receive if hook else _say_how, methods=_METHODS),
        Route("/alerts", hook.tell if hook else _say_how, methods=["GET"]),
        Route("/alerts", hook.learn if hook else _say_how, methods=["POST"]),
    ]
