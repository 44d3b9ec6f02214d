"""The client of a queried source: its connection, and each of its queries as a fact."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import httpx

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.settings import ApiSettings, PrometheusSettings, tokens
from keda_gpu_scaler.spec import demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import proxies
from keda_gpu_scaler.transport.client import Answer, Bearer, Client

Result = TypeVar("Result")
NUMBER_BYTES = 256 * 1024
"""The limit of an answer with one number; some hundred elements fit, to be told how many."""
NUMBERS_AT_ONCE = 40
"""What users wrote can be slow. A client has a hundred connections, and the shared queries need
some of them."""


def countable(number: float) -> float:
    """Return the number, or raise SourceMalformedError if KEDA and the HPA cannot count with it."""
    if not demand.is_countable(number):
        message = f"{number:g} instead of a number from 0 to below 2^53"
        raise errors.SourceMalformedError(message)
    if number in dcgm.BLANKS:
        message = f"{number:.0f}, which is what DCGM shows instead of a number that it lacks"
        raise errors.SourceMalformedError(message)
    return number


class QueryClient:
    """The client of a queried source; reports each query's time or error as a fact."""

    def __init__(
        self, name: str, http: Client, observe: facts.Observer, clock: Callable[[], float]
    ) -> None:
        self._name, self._http, self._observe, self._clock = name, http, observe, clock
        self.number_turns = asyncio.Semaphore(NUMBERS_AT_ONCE)
        """For demandQueries."""

    def turn(self) -> AbstractContextManager[None]:
        """Read the large answers of one context at a time, until it ends."""
        return self._http.turn()

    async def fetch(
        self, kind: str, request: Awaitable[Answer], parse: Callable[[Answer], Result]
    ) -> Result:
        """Return the answer to a request as `parse` reads it, in a thread.

        `kind` is the name of the query in the log and in the metrics.
        """
        began = self._clock()

        def report(trouble: str | None) -> None:
            self._observe(facts.Queried(self._name, kind, self._clock() - began, trouble))

        try:
            result = await asyncio.to_thread(parse, await request)
        except errors.SourceError as error:
            report(str(error))
            raise
        except asyncio.CancelledError:
            report(facts.GIVEN_UP)
            raise
        report(None)
        return result

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()


def create_client(settings: ApiSettings) -> Client:
    """Return a client for an HTTP API, with its authentication and its certificates."""
    return Client(
        timeout_seconds=settings.timeout_seconds,
        max_response_bytes=settings.max_response_bytes,
        headers={name: value.get_secret_value() for name, value in settings.headers.items()},
        auth=_credentials(settings),
        verify=_tls(settings),
        proxy=proxies.of(settings.url),
    )


def _credentials(settings: ApiSettings) -> httpx.Auth | None:
    file = settings.bearer_token_file
    token = tokens.of(settings.bearer_token, file, f"the bearer token file {file}")
    if token is not None:
        return Bearer(token)
    if settings.username is not None:
        password = settings.password.get_secret_value() if settings.password is not None else ""
        return httpx.BasicAuth(settings.username, password)
    if isinstance(settings, PrometheusSettings) and settings.sigv4_region is not None:
        from keda_gpu_scaler.sources import sigv4  # noqa: PLC0415 - it loads an extra that few install

        return sigv4.Sigv4(settings.sigv4_region)
    return None


def _tls(settings: ApiSettings) -> ssl.SSLContext:
    if settings.url.startswith("http://"):
        # No request needs a CA, and the system's take a MiB: this context trusts nobody. Requests
        # follow no redirect, and httpx makes another context for a proxy.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.cert_file is not None:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context
