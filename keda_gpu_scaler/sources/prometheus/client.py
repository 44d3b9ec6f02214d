"""Queries to a Prometheus, as the server or a proxy before it expects them, and answers → rows.

Only here a query gets the source's matchers and its namespace, so that no query is sent without
them. What the server refuses is a SourceRefusedError, and any other answer than a whole and right
one is a SourceMalformedError: the pods that are missing from a partial one would seem to be gone.
So warnings and `isPartial` are errors; remarks about a query's style are not.
"""

import asyncio
import copy
import math
import re
import time
from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.promql import policy
from keda_gpu_scaler.query.promql_texts import LONGEST_BYTES, texts_about
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources import query_client
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.http_client import OK, HttpAnswer, printable

T = TypeVar("T")
WHOLE_ANSWERS = {"partial_response": "false", "deny_partial_response": "1"}
"""Asks Thanos, and VictoriaMetrics' cluster, to refuse a query rather than to answer in part.

They also warn about partial answers, but a proxy may drop the warnings."""


class PrometheusClient(query_client.QueryClient):
    """Queries about every namespace, or about a single one."""

    namespace: str | None = None
    """The only namespace of all requests, named in each; None: any namespace, and none is named."""

    def __init__(
        self,
        name: str,
        settings: PrometheusSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
        *,
        before_query: Callable[[], Awaitable[None]] | None = None,
        **httpx_arguments: Any,  # noqa: ANN401 - httpx's
    ) -> None:
        """Prepare the client without connecting; each query waits for `before_query`."""
        super().__init__(name, settings, observe, clock, **httpx_arguments)
        self.settings, self._before_query = settings, before_query
        self._longest_bytes: float = LONGEST_BYTES
        """A longer query for rows is sent in parts."""
        self._own_turns = asyncio.Semaphore(10)
        self._own_turns_by_namespaces: dict[frozenset[str], asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(3)
        )
        """So many of users' own queries run at once, and of one tenant's: none takes all."""

    @property
    def shows_targets(self) -> bool:
        """Whether the answers show the health of all exporters, not only of one namespace's."""
        return self.namespace is None

    def within(self, namespace: str) -> Self:
        client = copy.copy(self)
        client.namespace = namespace
        return client

    @asynccontextmanager
    async def own_turn(self, namespaces: frozenset[str]) -> AsyncIterator[None]:
        """Keep one of the turns for custom queries; few are for the same namespaces."""
        async with self._own_turns_by_namespaces[namespaces], self._own_turns:
            yield

    async def rows(
        self,
        kind: str,
        names: frozenset[str],
        write: Callable[[Collection[str]], str],
        at: float,
        parse: Callable[[HttpAnswer], list[Row]],
    ) -> list[Row]:
        """Return the rows of a query about names, or of several about parts of them."""
        rows: list[Row] = []
        for text in texts_about(names, write, self._longest_bytes):
            rows += await self.ask(kind, text, at, parse)
        return rows

    async def number(self, kind: str, promql: str, at: float | None) -> float | None:
        """Ask for one number; None: the result is empty."""
        return await self.ask(kind, promql, at, parse_number, query_client.NUMBER_BYTES)

    async def time(self) -> float:
        """Return the server's present time, and learn whether it takes long queries."""
        clock = await self.ask("clock", "time()", None, parse_clock, query_client.NUMBER_BYTES)
        self._longest_bytes = math.inf if clock.takes_long_queries else LONGEST_BYTES
        return clock.seconds

    async def ask(
        self,
        kind: str,
        text: str,
        at: float | None,
        parse: Callable[[HttpAnswer], T],
        limit_bytes: int | None = None,
    ) -> T:
        """Return what `parse` finds in the answer to an instant query.

        Without a time it is for the server's present time. An answer has at most `limit_bytes`;
        None: as usual. `kind` is for the log and the metrics.
        """
        settings = self.settings
        if self._before_query is not None:
            await self._before_query()
        # Prometheus takes no durations with a fraction, such as 2.5s, but numbers of seconds.
        form = {"query": text, "timeout": f"{settings.timeout_seconds:.3f}", **WHOLE_ANSWERS}
        if at is not None:
            form["time"] = f"{at:.3f}"
        url, headers = f"{settings.url.rstrip('/')}/api/v1/query", dict[str, str]()
        if self.namespace is not None:
            if (parameter := settings.namespace_parameter) is not None:
                # In the URL, although there is a form: not every proxy reads the form.
                url = f"{url}?{urlencode({parameter: self.namespace})}"
            if (header := settings.namespace_header) is not None:
                headers[header] = self.namespace
        with self.reported(kind):
            if settings.matchers:
                try:
                    form["query"] = await asyncio.to_thread(
                        policy.confined, text, settings.matchers
                    )
                except ValueError as error:
                    message = f"the source's matchers do not fit this query: expected {error}"
                    raise errors.SourceRefusedError(message) from error
            answer = await self.fetch(url, form, headers, limit_bytes=limit_bytes)
            return await asyncio.to_thread(parse, answer)


class Clock(NamedTuple):
    """The time of a server, and what the answer shows about the server."""

    seconds: float
    takes_long_queries: bool
    """VictoriaMetrics does not by default; it is recognised because it has no scalars."""


def parse_clock(answer: HttpAnswer) -> Clock:
    result = _result(answer, "scalar", "vector")
    values = _values(result)
    if len(values) != 1 or not math.isfinite(values[0]):
        words = printable(str(values))
        raise errors.SourceMalformedError(f"{words} instead of one number of seconds")
    return Clock(values[0], takes_long_queries=result.kind == "scalar")


def parse_number(answer: HttpAnswer) -> float | None:
    """Return the one number of a result; None: it has no element."""
    values = _values(_result(answer, "scalar", "vector"))
    if len(values) > 1:
        raise several(len(values))
    return query_client.countable(values[0]) if values else None


def several(elements: int) -> errors.SourceMalformedError:
    message = f"the query gives {elements} elements instead of one number; sum(...) makes one"
    return errors.SourceMalformedError(f"{message} of them")


def parse_matrix(answer: HttpAnswer) -> list[Row]:
    """Return the series of a range result that have points."""
    return _rows(_result(answer, "matrix"), _SERIES, _POINTS.decode)


def parse_vector(answer: HttpAnswer) -> list[Row]:
    """Return the elements of an instant result as rows of one point."""
    return _rows(_result(answer, "vector"), _ELEMENTS, _one_point)


_REMARK = "PromQL info:"
"""Prometheus 2.48 and similar versions put remarks among the warnings; later ones separate them."""
_WORDS_CHARACTERS = 128 * 1024
"""Of an error, in which a server may repeat a query of 16 KiB several times."""
_REPEATED_TEXT = re.compile(
    r'(?:error when executing query=|cannot evaluate )"[^"\\]*(?:\\.[^"\\]*)*"'
    r"(?: for \([^()]*\))?: ",
    re.DOTALL,
)
"""VictoriaMetrics repeats the query before the reason of an error. The reason would be cut off, and
values that a trigger takes from the environment would be shown.

Linear: what an attempt reads ends at a quote or a parenthesis, before the next one can begin."""


class _Result(msgspec.Struct):
    kind: str = msgspec.field(name="resultType")
    text: msgspec.Raw = msgspec.field(name="result")


class _Body(msgspec.Struct):
    status: str = ""
    kind: str = msgspec.field(default="error", name="errorType")
    error: str = "no reason given"
    warnings: list[str] | None = None
    is_partial: bool | None = msgspec.field(default=None, name="isPartial")
    data: _Result | None = None


class _Series(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    points: msgspec.Raw = msgspec.field(name="values")


class _Element(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    points: msgspec.Raw = msgspec.field(name="value")


_BODY, _LABELS = Decoder(_Body), Decoder(dict[str, str])
_SERIES, _ELEMENTS = Decoder(list[_Series]), Decoder(list[_Element])
_POINTS, _POINT = Decoder(list[tuple[float, str]]), Decoder(tuple[float, str])


def _rows(
    result: _Result,
    decoder: Decoder[list[_Series]] | Decoder[list[_Element]],
    read: Callable[[msgspec.Raw], list[tuple[float, str]]],
) -> list[Row]:
    """Return the rows of a result; times that they have in common are the same tuple."""
    rows, shared = list[Row](), dict[tuple[float, ...], tuple[float, ...]]()
    try:
        for series in decoder.decode(result.text):
            labels, points = _LABELS.decode(series.metric), read(series.points)
            if points:
                times, texts = zip(*points, strict=True)
                numbers = array("d", map(float, texts))
                rows.append(Row(labels, shared.setdefault(times, times), numbers))
    except query_client.UNREADABLE as error:
        raise query_client.wrong_shape(f"a {result.kind}", error) from error
    return rows


def _one_point(text: msgspec.Raw) -> list[tuple[float, str]]:
    return [_POINT.decode(text)]


def _values(result: _Result) -> list[float]:
    """Return the one value of a scalar, or the values of a vector."""
    if result.kind == "vector":
        return [row.values[0] for row in _rows(result, _ELEMENTS, _one_point)]
    try:
        return [float(_POINT.decode(result.text)[1])]
    except query_client.UNREADABLE as error:
        raise query_client.wrong_shape("a scalar", error) from error


def _result(answer: HttpAnswer, *kinds: str) -> _Result:
    """Return the whole result of a query, of one of these kinds."""
    body = query_client.decoded(answer, _BODY, "Prometheus' JSON")
    if answer.status != OK or body.status != "success":
        words = _REPEATED_TEXT.sub("", body.error[:_WORDS_CHARACTERS])
        message = printable(f"HTTP {answer.status}, {body.kind}: {words}")
        raise errors.SourceRefusedError(message)
    given = body.warnings or []
    warnings = [warning for warning in given if not warning.startswith(_REMARK)]
    if warnings or body.is_partial:
        words = printable(str(warnings or "the answer is partial"))
        raise errors.SourceMalformedError(f"an incomplete answer: {words}")
    if body.data is None or body.data.kind not in kinds:
        wanted = " or ".join(kinds)
        raise errors.SourceMalformedError(f"an answer without a result of type {wanted}")
    return body.data
