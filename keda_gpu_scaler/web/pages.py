"""The pages for Prometheus and the kubelet."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

AT_ONCE = 8
"""How many clients are shown the metrics at a time: a pair of Prometheus servers, and people. One
more waits, because each answer holds what there was to show when it began."""


def metrics(registry: CollectorRegistry) -> list[Route]:
    turns, writing = asyncio.Semaphore(AT_ONCE), asyncio.Lock()

    async def page() -> AsyncIterator[bytes]:
        """Yield one metric after the other: those of thousands of triggers are tens of MiB."""
        async with turns:
            families = iter(registry.collect())
            while True:
                async with writing:  # a metric takes several times as much memory as its text
                    text = await run_in_threadpool(_next_text, families)
                if not text:
                    return
                yield text

    async def show(_request: Request) -> Response:
        return StreamingResponse(page(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    return [Route("/metrics", show)]


def _next_text(families: Iterator[Metric]) -> bytes:
    """Return the next metric as text; nothing after the last one.

    With many triggers, gauges are nearly all of the page, and their text takes prometheus_client
    three times as long, because it looks also in each name for characters to escape.
    """
    family = next(families, None)
    if family is None:
        return b""
    first = next(iter(family.samples), None)
    if family.type != "gauge" or first is None or not first.labels:
        return generate_latest(_OneMetric(family))
    head = Metric(family.name, family.documentation, family.type)
    text = bytearray(generate_latest(_OneMetric(head)))
    for sample in family.samples:
        labels = [f'{name}="{_escaped(value)}"' for name, value in sorted(sample.labels.items())]
        text += f"{sample.name}{{{','.join(labels)}}} {float(sample.value)}\n".encode()
    return bytes(text)


class _OneMetric(Collector):
    """Shows one metric to prometheus_client's encoder."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return [self._family]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def health(is_ready: Callable[[], bool]) -> list[Route]:
    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if is_ready():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("starting or draining\n", status_code=503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
