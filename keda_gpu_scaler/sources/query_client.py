"""What queried sources share: a client, each query as a fact, and the one door for JSON → values.

The client bounds the bytes of a body. Here the values in it are counted before they are read,
because a few bytes of JSON become a hundred in memory.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import httpx
import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.query.profiles import dcgm
from keda_gpu_scaler.settings import ApiSettings, PrometheusSettings, tokens
from keda_gpu_scaler.sources import cures
from keda_gpu_scaler.spec.spec import is_countable
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport import proxies
from keda_gpu_scaler.transport.http_client import OK, Bearer, Client, HttpAnswer, printable

T = TypeVar("T")
NUMBER_BYTES = 256 * 1024
"""The limit of an answer with one number; some hundred elements fit, to be told how many."""
NUMBERS_AT_ONCE = 40
"""What users wrote can be slow. A client has a hundred connections, and the shared queries need
some of them."""
UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError)
"""What is raised for a part of an answer that is no JSON, or of another type."""
_SHOWN_BYTES = 1024
"""A server's own words are looked for in this much of an answer that is no JSON."""
_FEWEST_BYTES = {b"{": 128, b"[": 32, b":": 16, b",": 8}
"""An answer of the largest size has at most one of these in so many bytes: 130,000 rows of two
objects each, a million points, two million labels. Rows of 15,000 pods in kube-state-metrics, or an
hour of the points of 4,000 GPUs, are fewer; read, they take at most 300 MiB."""
_OWN_KINDS = frozenset({"demand", "past-demand", "own", "own-age", "own-history"})
"""Queries that users write."""


class QueryClient(Client):
    """The client of a queried source, with the authentication and certificates of its settings."""

    def __init__(
        self,
        name: str,
        settings: ApiSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
        **httpx_arguments: Any,  # noqa: ANN401 - httpx's
    ) -> None:
        """Prepare the client without connecting."""
        self.name, self.observe, self.clock = name, observe, clock
        self.number_turns = asyncio.Semaphore(NUMBERS_AT_ONCE)
        """For demandQueries."""
        super().__init__(
            timeout_seconds=settings.timeout_seconds,
            max_response_bytes=settings.max_response_bytes,
            headers={name: value.get_secret_value() for name, value in settings.headers.items()},
            auth=_auth(settings),
            verify=_trust(settings),
            proxy=proxies.of(settings.url),
            **httpx_arguments,
        )

    @contextlib.contextmanager
    def reported(self, kind: str) -> Iterator[None]:
        """Report the time of a query, or its error and what to change.

        `kind` is the query's name in the log and metrics.
        """
        began = self.clock()

        def report(trouble: str | None) -> None:
            self.observe(facts.Queried(self.name, kind, self.clock() - began, trouble))

        try:
            yield
        except errors.SourceError as error:
            text = cures.with_cure(str(error), is_own=kind in _OWN_KINDS)
            report(text)
            raise type(error)(text) from error
        except asyncio.CancelledError:
            report(facts.GIVEN_UP)
            raise
        report(None)


def _auth(settings: ApiSettings) -> httpx.Auth | None:
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


def _trust(settings: ApiSettings) -> ssl.SSLContext:
    if settings.url.startswith("http://"):
        # No request needs a CA, and the system's take a MiB: this context trusts nobody. Requests
        # follow no redirect, and httpx makes another context for a proxy.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.cert_file is not None:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context


def decoded(answer: HttpAnswer, decoder: Decoder[T], expected: str) -> T:
    """Return the value in the body of an answer of any status: servers explain errors in JSON too.

    What becomes large is left as `msgspec.Raw` by the decoder, to be read row by row, so that other
    threads get their turn. `expected` is what the server should have sent, for the message.

    Raises:
        errors.SourceRefusedError: an error that is not explained in JSON, perhaps by a proxy.
        errors.SourceMalformedError: no error, and no such value, or more rows than usual.
    """
    for sign, fewest_bytes in _FEWEST_BYTES.items():
        limit = answer.limit_bytes // fewest_bytes
        if answer.body.count(sign) > limit:
            raise errors.SourceMalformedError(
                f"an answer with more than {limit:,} times {sign.decode()}; expected fewer pods: "
                "spread the triggers over several sources, or raise max_response_bytes and the "
                "limit of memory with it"
            )
    try:
        return decoder.decode(answer.body)
    except UNREADABLE as error:
        if answer.status != OK:
            raise errors.SourceRefusedError(_shown(answer, expected)) from error
        if isinstance(error, msgspec.ValidationError):
            raise wrong_shape(expected, error) from error
        raise errors.SourceMalformedError(_shown(answer, expected)) from error


def wrong_shape(expected: str, error: Exception) -> errors.SourceMalformedError:
    return errors.SourceMalformedError(f"{expected} of the wrong shape: {printable(str(error))}")


def _shown(answer: HttpAnswer, expected: str) -> str:
    words = printable(answer.body[:_SHOWN_BYTES].decode("utf-8", errors="replace"))
    content_type = printable(answer.content_type)
    return f"HTTP {answer.status} with {content_type} instead of {expected}: {words}"


def countable(number: float) -> float:
    """Return the number, or raise SourceMalformedError if KEDA and the HPA cannot count with it."""
    if not is_countable(number):
        message = f"{number:g} instead of a number from 0 to below 2^53"
        raise errors.SourceMalformedError(message)
    if number in dcgm.BLANKS:
        message = f"{number:.0f}, which is what DCGM shows instead of a number that it lacks"
        raise errors.SourceMalformedError(message)
    return number
