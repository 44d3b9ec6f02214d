"""kube-state-metrics in a Prometheus: found by its metrics, then asked at each step."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Protocol

from keda_gpu_scaler import kube_state
from keda_gpu_scaler.evidence import Evidence
from keda_gpu_scaler.observation import Row

FOUND_SECONDS = 300.0
"""Another job that shows kube-state-metrics is rare."""


class Ask(Protocol):
    """Sends an instant query and returns its rows."""

    def __call__(self, kind: str, text: str, at: float, /) -> Awaitable[list[Row]]:
        """Ask."""


class StateMetrics:
    """The kube-state-metrics that one server scrapes, if it does."""

    def __init__(self, ask: Ask, clock: Callable[[], float]) -> None:
        """Look for nothing yet.

        Args:
            ask: how to reach the server.
            clock: seconds that never go back.
        """
        self._ask, self._clock = ask, clock
        self._jobs: frozenset[str] = frozenset()
        self._lists_pods = False
        self._looked_at = float("-inf")

    async def evidence(self, namespaces: Collection[str], at: float) -> Evidence | None:
        """Return what it says of these namespaces; None: it was never there."""
        await self._look(at)
        if not self._jobs:
            return None
        rows = await self._ask("evidence", kube_state.question(namespaces, self._jobs), at)
        said = await asyncio.to_thread(kube_state.evidence, rows)
        # One that collects no pods lists none, however long it has been up.
        return said if self._lists_pods else replace(said, settled={})

    async def _look(self, at: float) -> None:
        """Learn its scrape jobs; one that is known and down now is still one that should speak.

        Until there is one, each time: a server that has just started can show the exporters before
        it, and until it speaks a pod on a node whose exporter is down is a pod nobody knows of.
        """
        if self._jobs and self._clock() - self._looked_at < FOUND_SECONDS:
            return
        rows = await self._ask("jobs", kube_state.JOBS, at)
        self._jobs |= {row.labels.get("job", "") for row in rows}
        self._lists_pods |= any(row.labels.get("__name__") == kube_state.PODS for row in rows)
        self._looked_at = self._clock()
