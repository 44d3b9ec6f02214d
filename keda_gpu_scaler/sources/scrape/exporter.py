"""One exporter: its connection, and the samples of its page.

Exporters share nothing, so that none waits for another. All of it, from the request to the last
sample, has to be done within the timeout.
"""

import asyncio
import ssl
import time

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.sources.scrape import exposition
from keda_gpu_scaler.sources.scrape.exposition import Labels, Samples
from keda_gpu_scaler.transport import proxies
from keda_gpu_scaler.transport.client import OK, Answer, Client, printable

KEPT_INTERVALS = 2.0
"""How long an idle connection is kept, in intervals: until the next scrape, however late it is."""


class Exporter:
    """Scrapes one exporter."""

    def __init__(self, url: str, settings: ScrapeSettings, tls: ssl.SSLContext) -> None:
        """Prepare a connection of its own; `tls` is shared, because reading the CAs takes long."""
        self._url, self._timeout_seconds = url, settings.timeout_seconds
        self._series: tuple[Labels, ...] = ()
        self._is_connected = False
        self._client = Client(
            timeout_seconds=settings.timeout_seconds,
            max_response_bytes=settings.max_response_bytes,
            verify=tls,
            limits=httpx.Limits(keepalive_expiry=KEPT_INTERVALS * settings.interval_seconds),
            proxy=proxies.of(url),
        )

    async def samples(self) -> Samples:
        """Scrape it once.

        Raises:
            errors.SourceError: it gave no whole page in time; no part of it is used.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                now, answer = time.time(), await self._fetch()
                if answer.status == OK:
                    # A large page takes the parser longer than calls may wait.
                    samples = await asyncio.to_thread(
                        exposition.parse, answer.body, now, self._series
                    )
                    self._series = samples.series
                    return samples
        except TimeoutError as error:
            message = f"no answer within {self._timeout_seconds:g} s"
            raise errors.SourceTimeoutError(message) from error
        if "?" in self._url:
            # Servers repeat the URL in their words, and its query can be a token.
            raise errors.SourceRefusedError(f"HTTP {answer.status}")
        words = printable(answer.body[:1024].decode("utf-8", errors="replace"))
        raise errors.SourceRefusedError(f"HTTP {answer.status}: {words}")

    async def _fetch(self) -> Answer:
        """Return a whole answer.

        A server may close a connection that it finds idle in the moment in which it is used again,
        so that one more request is sent over a new one. That is no failed scrape.
        """
        was_connected, self._is_connected = self._is_connected, False
        try:
            answer = await self._client.fetch(self._url)
        except errors.SourceUnreachableError:
            if not was_connected:
                raise
            answer = await self._client.fetch(self._url)
        self._is_connected = True
        return answer

    async def close(self) -> None:
        """Close its connection."""
        await self._client.close()
