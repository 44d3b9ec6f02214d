"""The query endpoint of a Prometheus: requests as the server, or a proxy before it, expects them.

Only here a query gets the source's matchers and its namespace, so that no query is sent without
them.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.promql import policy
from keda_gpu_scaler.query.promql_texts import LONGEST_BYTES
from keda_gpu_scaler.query.snapshot_query import SplittableQuery
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources.prometheus import api
from keda_gpu_scaler.sources.query_client import NUMBERS_AT_ONCE, OwnTurns, QueryClient
from keda_gpu_scaler.transport.client import Answer, Client


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint for queries about every namespace, or about a single one."""

    settings: PrometheusSettings
    client: Client
    namespace: str | None = None
    """The only namespace of all requests, named in each; None: any namespace, and none is named."""
    limit_bytes: int | None = None
    """The limit of an answer, below that of the settings."""
    own_turns: OwnTurns = field(default_factory=OwnTurns)
    """For users' own queries, of all namespaces together."""
    number_turns: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(NUMBERS_AT_ONCE)
    )
    """For demandQueries."""

    def within(self, namespace: str) -> "Endpoint":
        """Return the same endpoint, over the same connections, for one namespace alone."""
        return replace(self, namespace=namespace)

    def limited(self, limit_bytes: int) -> "Endpoint":
        """Return the same endpoint for smaller answers."""
        return replace(self, limit_bytes=limit_bytes)

    def turn(self) -> AbstractContextManager[None]:
        """Read the large answers of one context at a time, until it ends."""
        return self.client.turn()

    async def ask(self, text: str, at: float | None) -> Answer:
        """Send an instant query in PromQL; without a time, for the server's present time."""
        try:
            confined = await asyncio.to_thread(policy.confined, text, self.settings.matchers)
        except ValueError as error:
            message = f"the source's matchers do not fit this query: expected {error}"
            raise errors.SourceRefusedError(message) from error
        # Prometheus takes no durations with a fraction, such as 2.5s, but numbers of seconds.
        form = {
            "query": confined,
            "timeout": f"{self.settings.timeout_seconds:.3f}",
            **api.WHOLE_ANSWERS,
        }
        if at is not None:
            form["time"] = f"{at:.3f}"
        url, headers = f"{self.settings.url.rstrip('/')}/api/v1/query", dict[str, str]()
        if self.namespace is not None:
            if (parameter := self.settings.namespace_parameter) is not None:
                # In the URL, although there is a form: not every proxy reads the form.
                url = f"{url}?{urlencode({parameter: self.namespace})}"
            if (header := self.settings.namespace_header) is not None:
                headers[header] = self.namespace
        return await self.client.post(url, form, headers, limit_bytes=self.limit_bytes)


class RowQueryClient(QueryClient):
    """Asks for rows; sends a query in parts if it would be too long for the server."""

    longest_bytes: float = LONGEST_BYTES
    """The longest query that is sent; infinite, once the server is known to take any."""

    async def vector(self, kind: str, promql: SplittableQuery | str, at: float) -> list[Row]:
        """Ask for an instant vector."""
        return await self._rows(kind, promql, at, api.vector)

    async def matrix(self, kind: str, promql: SplittableQuery | str, at: float) -> list[Row]:
        """Ask for ranges of points."""
        return await self._rows(kind, promql, at, api.matrix)

    async def _rows(
        self,
        kind: str,
        promql: SplittableQuery | str,
        at: float,
        parse: Callable[[Answer], list[Row]],
    ) -> list[Row]:
        texts = (promql,) if isinstance(promql, str) else promql.texts(self.longest_bytes)
        return [row for text in texts for row in await self.fetch(kind, text, at, parse)]
