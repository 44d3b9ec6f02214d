"""Replicas of the scaler's webhook: each a real server, an alert store and a client of others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import web
from keda_gpu_scaler.alerts.forwarding import Replicas
from keda_gpu_scaler.alerts.replicas import Peers
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.certificates import Certificate
from testbed.processes import free_port
from tests.support.webhooks import TOKEN, Hook


async def forever(_seconds: float) -> None:
    """Wait: no test has rounds that come by themselves, unless it says so."""
    await asyncio.Event().wait()


@dataclass
class Replica(Hook):
    """One replica; `targets` are the others, and it may be among them."""

    targets: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    sleep: Callable[[float], Awaitable[None]] = forever
    look_up: resolver.LookUp = resolver.look_up
    ca_file: Path | None = None
    certificate: Callable[[], Certificate] | None = None
    peers: Peers = field(init=False)

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    @property
    def peers_changed(self) -> list[tuple[str, bool]]:
        said = [fact for fact in self.seen if isinstance(fact, facts.PeerChanged)]
        return [(fact.peer, fact.works) for fact in said]

    @property
    def reasons(self) -> list[str]:
        said = [fact for fact in self.seen if isinstance(fact, facts.PeerChanged)]
        return [fact.reason for fact in said if not fact.works]

    @property
    def asked(self) -> tuple[int, int] | None:
        """How many could be reached the last time, and how many not."""
        said = [fact for fact in self.seen if isinstance(fact, facts.PeersAsked)]
        return (said[-1].reachable, said[-1].unreachable) if said else None

    async def receive(self, message: object, path: str = "/webhook") -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            known = {"authorization": f"Bearer {TOKEN}"}
            return await client.post(self.url + path, json=message, headers=known)


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    """Serve them, in the order of the process: listen, ask the others, be there."""
    async with AsyncExitStack() as stack:
        for replica in replicas:
            others = Replicas(
                replica.targets,
                replica.secret,
                ca_file=replica.ca_file,
                look_up=replica.look_up,
            )
            stack.push_async_callback(others.close)
            peers = Peers(others, replica.alerts, replica.seen.append, replica.sleep)
            replica.peers = peers
            hook = web.Webhook(replica.alerts, replica.secret, peers.broadcast, replica.seen.append)
            app = web.create_app(CollectorRegistry(), bool, hook)
            server = web.HttpServer(app, "127.0.0.1", replica.port, replica.certificate)
            await server.start()
            stack.push_async_callback(server.stop)
            await peers.meet()
            again = asyncio.create_task(peers.run())
            stack.push_async_callback(asyncio.wait, {again})
            stack.callback(again.cancel)
        yield
