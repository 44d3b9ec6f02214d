"""`/webhook`: alerts from Alertmanager and Grafana. `/alerts`: for other replicas.

The answer comes once the alerts are in the store and the other replicas were told. Alertmanager
repeats a message answered with 5xx at once, and one answered with 4xx when the group is due again.
The same message twice changes nothing. So all usable alerts of a message are taken, and the answer
names the others. Alerts from another replica are not passed on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import AlertRecord, Alerts
from keda_gpu_scaler.alerts.forwarding import LONGEST_BYTES
from keda_gpu_scaler.alerts.notifications import (
    SENTENCES,
    Notification,
    read_notification,
    scaled_object,
)
from keda_gpu_scaler.alerts.replicas import read_records, unhurried, written_records
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.web import authentication

_METHODS = ["POST", "PUT"]
"""Grafana can be configured to use either."""
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
    bodies: authentication.Bodies = field(default_factory=authentication.Bodies)
    parsing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a body is parsed, which takes several times as much memory: one at a time."""

    async def receive(self, request: Request) -> Response:
        """Take a sender's message; the result is a fact in every case."""
        try:
            authentication.admit(request, self.token, TOKEN)
            async with self.bodies.read(request) as body:
                notification = await self._parse(body, request.path_params)
                status, text = await self._store(notification)
        except HTTPException as error:
            self.observe(facts.Notified("unknown", error.status_code, error.detail))
            raise
        self.observe(facts.Notified(notification.sender, status, text, notification.truncated))
        return PlainTextResponse(f"{text}\n", status)

    async def _parse(self, body: bytearray, path: Mapping[str, str]) -> Notification:
        def parse() -> Notification:
            payload = msgspec.json.decode(body)
            return read_notification(payload, scaled_object(**path) if path else None)

        try:
            async with self.parsing:
                return await asyncio.to_thread(parse)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HTTPException(400, f"expected a body of JSON: {error}") from error
        except errors.RequestError as error:
            raise HTTPException(400, str(error)) from error

    async def _store(self, notification: Notification) -> tuple[int, str]:
        """Store the usable alerts; return the status and the text of the answer."""
        updates, refused = notification.updates, notification.refused
        received = await unhurried(self.alerts.receive(updates))
        records = [record for record in received if record is not None]
        await self.broadcast(records)
        stored_keys = {record.key for record in records}
        without_room = [update.key for update in updates if update.key not in stored_keys]
        lines = [f"taken: {len(updates) - len(without_room)}"]
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
            full = f"{self.alerts.limit} alerts are known already"
            if not self.alerts.is_full:
                namespaces = sorted({key.scaled_object.namespace for key in without_room})
                full = (
                    f"namespace {', '.join(namespaces[:SENTENCES])} has its share of the "
                    f"{self.alerts.limit} alerts, at most three quarters"
                )
            lines.append(f"not taken: {len(without_room)}, since {full}")
            return 503, "\n".join(lines)
        return (422 if refused else 200), "\n".join(lines)

    async def tell(self, request: Request) -> Response:
        authentication.admit(request, self.token, TOKEN)
        return Response(written_records(self.alerts.records()), media_type="application/json")

    async def learn(self, request: Request) -> Response:
        authentication.admit(request, self.token, TOKEN)
        async with self.bodies.read(request, LONGEST_BYTES) as body:
            try:
                async with self.parsing:
                    records = await asyncio.to_thread(read_records, body)
            except errors.RequestError as error:
                raise HTTPException(400, str(error)) from error
            await unhurried(self.alerts.merge(records))
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
