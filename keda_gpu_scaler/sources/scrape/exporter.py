"""One exporter: its connection, and its text read as it arrives.

Exporters share nothing, so that none waits for another. Other tasks run between two parts of a
text. All of it, from the request to the last sample, has to be done within the timeout.
"""

import ssl

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.sources.scrape.exposition import Page, Samples, Seen
from keda_gpu_scaler.transport import proxies
from keda_gpu_scaler.transport.client import OK, USER_AGENT, Client, printable


class Exporter:
    """Asks one exporter for its samples."""

    def __init__(self, url: str, settings: ScrapeSettings, tls: ssl.SSLContext) -> None:
        """Prepare a connection of its own.

        Args:
            url: the URL of its page.
            settings: the limits of an answer.
            tls: the CAs to trust; shared, because reading them takes long.
        """
        self._url = url
        self._seen = Seen()
        self._client = Client(
            httpx.AsyncClient(
                timeout=settings.timeout_seconds,
                headers={"User-Agent": USER_AGENT},
                verify=tls,
                trust_env=proxies.are_followed(url),
            ),
            timeout_seconds=settings.timeout_seconds,
            max_response_bytes=settings.max_response_bytes,
        )

    async def samples(self) -> Samples:
        """Ask it once.

        Raises:
            errors.SourceError: it gave no whole page in time; no part of it is used.
        """
        page = Page(self._seen)
        answer = await self._client.get(self._url, take=page.take)
        if answer.status == OK:
            samples = page.samples()
            self._seen = page.seen
            return samples
        if "?" in self._url:
            # Servers repeat the URL in their words, and its query can be a token.
            raise errors.SourceRefusedError(f"HTTP {answer.status}")
        words = printable(answer.body[:1024].decode("utf-8", errors="replace"))
        raise errors.SourceRefusedError(f"HTTP {answer.status}: {words}")

    async def close(self) -> None:
        """Close its connection."""
        await self._client.close()
