"""Queries to a Prometheus: requests as the server, or a proxy before it, expects them.

Only here a query gets the source's matchers and its namespace, so that no query is sent without
them.
"""

import asyncio
import copy
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self
from urllib.parse import urlencode

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.promql import policy
from keda_gpu_scaler.query.promql_texts import LONGEST_BYTES
from keda_gpu_scaler.query.snapshot_query import SplittableQuery
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus import api
from keda_gpu_scaler.sources.query_client import NUMBER_BYTES, QueryClient
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import Answer, Client

OWN_QUERIES_AT_ONCE = 10
OWN_QUERIES_OF_A_NAMESPACE_AT_ONCE = 3


class PrometheusClient(QueryClient):
    """Queries about every namespace, or about a single one."""

    namespace: str | None = None
    """The only namespace of all requests, named in each; None: any namespace, and none is named."""

    def __init__(
        self,
        name: str,
        settings: PrometheusSettings,
        http: Client,
        observe: facts.Observer,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(name, http, observe, clock)
        self._settings = settings
        self._longest_bytes: float = LONGEST_BYTES
        """A longer query for rows is sent in parts."""
        self._own_turns = asyncio.Semaphore(OWN_QUERIES_AT_ONCE)
        self._own_turns_by_namespaces: dict[frozenset[str], asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(OWN_QUERIES_OF_A_NAMESPACE_AT_ONCE)
        )

    @property
    def shows_targets(self) -> bool:
        """Whether the answers show the health of all exporters, not only of one namespace's."""
        return self.namespace is None

    def within(self, namespace: str) -> Self:
        """Return the same client, with the same connections, for one namespace alone."""
        client = copy.copy(self)
        client.namespace = namespace
        return client

    @asynccontextmanager
    async def own_turn(self, namespaces: frozenset[str]) -> AsyncIterator[None]:
        """Keep one of the turns for custom queries; few are for the same namespaces."""
        async with self._own_turns_by_namespaces[namespaces], self._own_turns:
            yield

    async def vector(
        self, kind: str, promql: SplittableQuery | str, at: float, limit_bytes: int | None = None
    ) -> list[Row]:
        """Ask for an instant vector, in an answer of at most `limit_bytes`; None: as usual."""
        return await self._rows(kind, promql, at, limit_bytes, api.vector)

    async def matrix(
        self, kind: str, promql: SplittableQuery | str, at: float, limit_bytes: int | None = None
    ) -> list[Row]:
        """Ask for ranges of points, as `vector` does."""
        return await self._rows(kind, promql, at, limit_bytes, api.matrix)

    async def number(self, kind: str, promql: str, at: float | None) -> float | None:
        """Ask for one number; None: the result is empty."""
        return await self.fetch(kind, self.ask(promql, at, NUMBER_BYTES), api.number)

    async def time(self) -> float:
        """Return the server's present time, and learn whether it takes long queries."""
        clock = await self.fetch("clock", self.ask("time()", None, NUMBER_BYTES), api.clock)
        self._longest_bytes = math.inf if clock.takes_long_queries else LONGEST_BYTES
        return clock.seconds

    async def ask(self, text: str, at: float | None, limit_bytes: int | None = None) -> Answer:
        """Send an instant query in PromQL; without a time, for the server's present time."""
        try:
            confined = await asyncio.to_thread(policy.confined, text, self._settings.matchers)
        except ValueError as error:
            message = f"the source's matchers do not fit this query: expected {error}"
            raise errors.SourceRefusedError(message) from error
        # Prometheus takes no durations with a fraction, such as 2.5s, but numbers of seconds.
        form = {
            "query": confined,
            "timeout": f"{self._settings.timeout_seconds:.3f}",
            **api.WHOLE_ANSWERS,
        }
        if at is not None:
            form["time"] = f"{at:.3f}"
        url, headers = f"{self._settings.url.rstrip('/')}/api/v1/query", dict[str, str]()
        if self.namespace is not None:
            if (parameter := self._settings.namespace_parameter) is not None:
                # In the URL, although there is a form: not every proxy reads the form.
                url = f"{url}?{urlencode({parameter: self.namespace})}"
            if (header := self._settings.namespace_header) is not None:
                headers[header] = self.namespace
        return await self._http.fetch(url, form, headers, limit_bytes=limit_bytes)

    async def _rows(
        self,
        kind: str,
        promql: SplittableQuery | str,
        at: float,
        limit_bytes: int | None,
        parse: Callable[[Answer], list[Row]],
    ) -> list[Row]:
        texts = (promql,) if isinstance(promql, str) else promql.texts(self._longest_bytes)
        return [
            row
            for text in texts
            for row in await self.fetch(kind, self.ask(text, at, limit_bytes), parse)
        ]
