"""kube-state-metrics in a Prometheus: found by its metrics, then asked at each step."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from typing import Protocol

from keda_gpu_scaler import kube_rows, kube_state, query
from keda_gpu_scaler.evidence import Evidence
from keda_gpu_scaler.observation import Row

FOUND_SECONDS = 300.0
"""Another job that shows kube-state-metrics is rare."""


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

    def __init__(
        self,
        ask: Ask,
        clock: Callable[[], float],
        texts: Texts = query.parts,
        *,
        shows_targets: bool = True,
    ) -> None:
        """Look for nothing yet.

        Args:
            ask: how to reach the server.
            clock: seconds that never go back.
            texts: how long a query may be.
            shows_targets: whether the server shows how every target is; if not, nobody can tell
                that a list of pods is whole.
        """
        self._ask, self._clock, self._texts = ask, clock, texts
        self._shows_targets = shows_targets
        self._jobs: frozenset[str] = frozenset()
        self._lists_pods = False
        self._looked_at = float("-inf")
        self._covered: frozenset[str] = frozenset()
        self._covered_at = float("-inf")

    async def evidence(self, namespaces: Collection[str], at: float) -> Evidence | None:
        """Return what it says of these namespaces; None: it was never there."""
        await self._look(at)
        if not self._jobs:
            return None
        texts = self._texts(functools.partial(self._question, at), namespaces)
        rows = [row for text in texts for row in await self._ask("evidence", text, at)]
        said = await asyncio.to_thread(kube_rows.evidence, rows)
        self._covered, self._covered_at = said.covered, at
        # One that collects no pods lists none, however long it has been up.
        return said if self._lists_pods and self._shows_targets else replace(said, settled={})

    def _question(self, at: float, namespaces: Collection[str]) -> str:
        return kube_state.question(namespaces, self._jobs, self._strangers(namespaces, at))

    def _strangers(self, namespaces: Collection[str], at: float) -> frozenset[str]:
        """Return those whose past nobody has watched, so that it has to be asked about."""
        is_watched = at - self._covered_at <= kube_state.PAST_SECONDS
        return frozenset(namespaces) - (self._covered if is_watched else frozenset())

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
