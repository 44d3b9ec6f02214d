"""Look at a real cluster once a second and keep its mirror up to date.

The only part of the simulator that talks to Kubernetes. What cannot be listed is not empty: the
mirror keeps what it has until both lists, of nodes and of pods, are there again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import lightkube
from lightkube.resources.core_v1 import Node, Pod

from keda_gpu_scaler.simulator import mirror, pods

_PAUSE_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Scope:
    """Which nodes and pods are looked at."""

    namespace: str | None = None
    """None: all namespaces."""
    node_labels: dict[str, str] = field(default_factory=dict)


class Follower:
    """Lists nodes and pods, again and again."""

    def __init__(
        self,
        shown: mirror.Mirror,
        scope: Scope,
        say: Callable[[str], None],
        pause_seconds: float = _PAUSE_SECONDS,
        config: lightkube.KubeConfig | None = None,
    ) -> None:
        """Read the configuration; ValueError says what is wrong with it.

        Args:
            shown: what is kept up to date.
            scope: which nodes and pods are looked at.
            say: is told once when they cannot be listed, and once when they can again.
            pause_seconds: between two looks.
            config: how the cluster is reached; None: by the service account or KUBECONFIG.
        """
        self._mirror = shown
        self._pause_seconds = pause_seconds
        self._scope = scope
        self._say = say
        self._client = _client(config)
        self._failing = False

    @contextlib.asynccontextmanager
    async def running(self, listed: Callable[[], None]) -> AsyncIterator[None]:
        """Follow until the block ends; `listed` is called after every look that succeeded."""
        try:
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(self._follow(listed), name="kubernetes-lists")
                yield
                following.cancel()
        finally:
            await self._client.close()

    async def _follow(self, listed: Callable[[], None]) -> None:
        while True:
            if await self._look():
                listed()
            await asyncio.sleep(self._pause_seconds)

    async def _look(self) -> bool:
        """Tell whether the mirror shows the cluster of now; a failure is said once."""
        try:
            self._mirror.show(await self._nodes(), await self._pods())
        except Exception as error:  # noqa: BLE001 - whatever went wrong: no list is not an empty one
            self._say_once(f"cannot list nodes and pods: {type(error).__name__}: {error}")
            return False
        self._say_once("")
        return True

    def _say_once(self, trouble: str) -> None:
        if self._failing is not bool(trouble):
            self._failing = bool(trouble)
            self._say(trouble or "nodes and pods are listed again")

    async def _nodes(self) -> list[mirror.Node]:
        found = self._client.list(Node, labels=dict(self._scope.node_labels))
        return list(pods.nodes([each async for each in found]))

    async def _pods(self) -> list[mirror.Pod]:
        found = self._client.list(Pod, namespace=self._scope.namespace or lightkube.ALL_NS)
        return list(pods.pods([each async for each in found]))


def _client(config: lightkube.KubeConfig | None) -> lightkube.AsyncClient:
    try:
        # The service account or KUBECONFIG, and nothing else out of the environment: no proxy.
        return lightkube.AsyncClient(config or lightkube.KubeConfig.from_env(), trust_env=False)
    except Exception as error:  # lightkube lets the errors of several libraries out
        raise ValueError(f"no cluster to follow: {type(error).__name__}: {error}") from error
