"""A cluster on a real port that can fail, followed as the scaler follows one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kubernetes.api import Api
from keda_gpu_scaler.evidence.kubernetes.following import Following
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from tests.support import api_server
from tests.support.api_server import ApiServer
from tests.support.scripted import Clock

PATIENCE_SECONDS = 60
"""Only a test that hangs reaches this bound; some tests make hundreds of requests."""
BERT = ScaledObject("ml", "bert-scaler")
AT = 50_000.0
FORBIDDEN = api_server.failure(403, "x is forbidden: User y")


@dataclass(slots=True)
class Bench:
    """A cluster that is followed, and what was stated of that."""

    api: ApiServer
    clock: Clock = field(default_factory=Clock)
    seen: list[facts.Fact] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[Following]:
        """Follow the cluster that the environment names."""
        following = Following(Api(), self.seen.append, self.clock)
        following.start()
        try:
            yield following
        finally:
            await following.close()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[Following]:
        """Follow it until everything that can be watched is."""
        async with self.following() as following:
            refused = {path for path, _ in self.api.trouble}
            for path in set(api_server.PATHS) - refused:
                await until(lambda path=path: self.api.watched(path))  # type: ignore[misc]
            yield following

    def changes(self, resource: str) -> list[facts.WatchChanged]:
        changes = [fact for fact in self.seen if isinstance(fact, facts.WatchChanged)]
        return [fact for fact in changes if fact.resource == resource]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.01)


async def fetch_evidence(
    following: Following, namespaces: Collection[str] = frozenset({"ml"})
) -> Evidence:
    return await following.evidence(namespaces, AT, AT + 5)


async def until_evidence(following: Following, holds: Callable[[Evidence], bool]) -> Evidence:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with contextlib.suppress(errors.SourceError):
                evidence = await fetch_evidence(following)
                if holds(evidence):
                    return evidence
            await asyncio.sleep(0.01)
