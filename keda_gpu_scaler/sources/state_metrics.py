"""kube-state-metrics in a Prometheus: found by its metrics, then asked at each step."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from typing import Protocol

from keda_gpu_scaler import kube_state, query
from keda_gpu_scaler.evidence import Evidence
from keda_gpu_scaler.observation import Row

FOUND_SECONDS = 300.0
"""Another job that shows kube-state-metrics is rare."""
MISSING_SECONDS = 60.0
"""It is looked for more often while it is not there."""


class Ask(Protocol):
    """Sends an instant query and returns its rows."""

    def __call__(self, kind: str, text: str, at: float, /) -> Awaitable[list[Row]]:
        """Ask."""


class Texts(Protocol):
    """Makes the texts of a query about some namespaces: one, or several where it is too long."""

    def __call__(self, text_for: query.TextFor, names: Collection[str], /) -> Iterable[str]:
        """Make them."""


class StateMetrics:
    """The kube-state-metrics that one server scrapes, if it does."""

    def __init__(self, ask: Ask, clock: Callable[[], float], texts: Texts = query.parts) -> None:
        """Look for nothing yet.

        Args:
            ask: how to reach the server.
            clock: seconds that never go back.
            texts: how long a query may be.
        """
        self._ask, self._clock, self._texts = ask, clock, texts
        self._jobs: frozenset[str] = frozenset()
        self._lists_pods = False
        self._looked_at = float("-inf")

    async def evidence(self, namespaces: Collection[str], at: float) -> Evidence | None:
        """Return what it says of these namespaces; None: it was never there."""
        await self._look(at)
        if not self._jobs:
            return None
        question = functools.partial(kube_state.question, jobs=self._jobs)
        texts = self._texts(question, namespaces)
        rows = [row for text in texts for row in await self._ask("evidence", text, at)]
        said = await asyncio.to_thread(kube_state.evidence, rows)
        # One that collects no pods lists none, however long it has been up.
        return said if self._lists_pods else replace(said, settled={})

    async def _look(self, at: float) -> None:
        """Learn its scrape jobs; one that is known and down now is still one that should speak."""
        patience = FOUND_SECONDS if self._jobs else MISSING_SECONDS
        if self._clock() - self._looked_at < patience:
            return
        rows = await self._ask("jobs", kube_state.JOBS, at)
        self._jobs |= {row.labels.get("job", "") for row in rows}
        self._lists_pods |= any(row.labels.get("__name__") == kube_state.PODS for row in rows)
        self._looked_at = self._clock()
