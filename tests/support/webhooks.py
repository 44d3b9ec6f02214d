"""A webhook on a real server, with its alert store, and the outcome of each message."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import errors, web
from keda_gpu_scaler.alerts import AlertRecord, Alerts
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.web import authentication
from testbed.clocks import Clock
from tests.support.browsing import browsing

TOKEN = "s3cr3t-t0ken"
LIFETIME = 3600.0


@dataclass(kw_only=True)
class Hook:
    """What stands behind a webhook in a test."""

    limit: int = 100
    body_seconds: float = 30
    token: str | None = TOKEN
    """None: it cannot be read now."""
    clock: Clock = field(default_factory=lambda: Clock(1_795_260_000.0))
    observe: facts.Observer = facts.ignore
    """Is told of each fact; `seen` holds them too."""
    handed: list[list[AlertRecord]] = field(default_factory=list)
    seen: list[facts.Fact] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bodies = authentication.Bodies(self.body_seconds)
        self.alerts = Alerts(LIFETIME, self.clock, self.state, limit=self.limit)

    def state(self, fact: facts.Fact) -> None:
        """Take a fact."""
        self.seen.append(fact)
        self.observe(fact)

    def secret(self) -> str:
        if self.token is None:
            raise errors.SettingsError("the webhook's token file cannot be read: gone")
        return self.token

    async def broadcast(self, records: Sequence[AlertRecord]) -> None:
        """Keep what other replicas would be told."""
        self.handed.append(list(records))

    @property
    def notified(self) -> list[tuple[str, int]]:
        """Who sent something, and the status that was answered."""
        said = [fact for fact in self.seen if isinstance(fact, facts.Notified)]
        return [(fact.sender, fact.status) for fact in said]


@asynccontextmanager
async def serving(hook: Hook | None) -> AsyncIterator[httpx.AsyncClient]:
    """Serve a webhook, and give a client that knows the token."""
    stands_on = None
    if hook is not None:
        stands_on = web.Webhook(
            hook.alerts,
            hook.secret,
            hook.broadcast,
            hook.state,
            hook.bodies,
        )
    app = web.create_app(CollectorRegistry(), lambda: True, stands_on)
    async with browsing(app, {"authorization": f"Bearer {TOKEN}"}) as client:
        yield client
