"""The pages for Prometheus and the kubelet."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from keda_gpu_scaler.telemetry.metrics.lines import LinedGauge

SLICE_BYTES = 128 * 1024
"""At most six milliseconds of work. Whatever else there is to do comes between two slices."""
AT_ONCE = 8
"""How many clients are shown the metrics at a time: a pair of Prometheus servers, and people. One
more waits, because each answer holds what there was to show when it began."""
_HEAD = re.compile(rb"\A(?:#.*\n)+")

Encode = Callable[[Collector], bytes]


def metrics(registry: CollectorRegistry) -> list[Route]:
    """Return the route of the metrics."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def show(request: Request) -> Response:
        """Show the metrics in slices: thousands of triggers are tens of MiB and take seconds.

        Not in a thread: the event loop would have to wait for the interpreter at each of its steps.
        """
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        slices = _slices(_texts(registry, encode), turns)
        return StreamingResponse(slices, headers={"content-type": content_type})

    return [Route("/metrics", show)]


async def _slices(texts: Iterable[bytes], turns: asyncio.Semaphore) -> AsyncIterator[bytes]:
    async with turns:
        ready = bytearray()
        for text in texts:
            ready += text
            if len(ready) >= SLICE_BYTES:
                yield bytes(ready)
                ready.clear()
                await asyncio.sleep(0)
        yield bytes(ready)


class _Shown(Collector):
    """Shows these families to an encoder."""

    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _texts(registry: CollectorRegistry, encode: Encode) -> Iterator[bytes]:
    """Yield the text of each family, and of each part of one that comes in parts."""
    end = encode(_Shown())  # OpenMetrics has a last line
    keeps_names = _keeps_names(encode)
    before = ""
    for family in registry.collect():
        if keeps_names and isinstance(family, LinedGauge):
            if family.name != before:
                head = GaugeMetricFamily(family.name, family.documentation)
                yield encode(_Shown(head)).removesuffix(end)
            yield family.lines().encode()
        else:
            text = encode(_Shown(family)).removesuffix(end)
            yield _HEAD.sub(b"", text) if family.name == before else text
        before = family.name
    yield end


def _keeps_names(encode: Encode) -> bool:
    """Tell whether names are written as they are: a client can ask for others, and none does."""
    family = GaugeMetricFamily("a_b", "", labels=("c_d",))
    family.add_metric(("",), 0.0)
    return b'\na_b{c_d=""} 0.0\n' in encode(_Shown(family))


def health(is_ready: Callable[[], bool]) -> list[Route]:
    """Return the routes of health."""

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if is_ready():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("starting or draining\n", status_code=503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
