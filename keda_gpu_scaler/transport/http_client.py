"""HTTP for sources and replicas: authenticated, bounded in size and time, with clear errors.

A request gives one whole body or a `SourceError`. Nothing here knows what the body means. Messages
of servers and libraries are made safe for logs and answers.
"""

import asyncio
import contextlib
import re
import zlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpcore  # noqa: F401 - httpx loads it with the first client, and then with HTTP/2
import httpx

from keda_gpu_scaler import errors

LIMIT_BYTES = 32 * 2**20
"""The usual limit of an answer."""
LARGE_BYTES = 2**20
"""Answers about hundreds of pods are smaller; many of them can be read at a time."""
OK = 200
"""The only status of a whole answer: 206 and similar ones carry a part."""
PART_BYTES = 2**14
"""What is unpacked and handed on at a time: other tasks run between two parts."""
WORDS_SHOWN = 256
"""A server's own words are shown up to this length: enough to act on, too short to flood a log."""
_OPENSSL = re.compile(r"\[[A-Z0-9]+(?:: \w+)?\] (.*?)(?: \(_ssl\.c:[0-9]+\))?")
"""An error of TLS, between OpenSSL's code for it and a line of Python's source."""


def error_text(error: BaseException) -> str:
    """Return the message of an error; httpx often has it only in the exception's cause."""
    cause = error.__cause__ or error.__context__
    if str(error) or cause is None:
        text = printable(str(error) or type(error).__name__)
        tls = _OPENSSL.fullmatch(text)
        return text if tls is None else f"TLS: {tls[1]}"
    return error_text(cause)


def printable(text: str, limit: int = WORDS_SHOWN) -> str:
    """Return a server's words on one line, without control characters, cut to a limit."""
    line = " ".join(text[: 4 * limit].split())
    safe = errors.without_controls(line)
    return safe if len(safe) <= limit else f"{safe[:limit]}…"


class Bearer(httpx.Auth):
    """Sends a token that is read for every request, because tokens rotate."""

    def __init__(self, token: Callable[[], str]) -> None:
        """Take what returns the current token, or raises SettingsError."""
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        try:
            request.headers["Authorization"] = f"Bearer {self._token()}"
        except errors.SettingsError as error:
            raise errors.SourceUnreachableError(str(error)) from error
        yield request


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole HTTP answer."""

    status: int
    content_type: str
    body: bytes | bytearray
    date: str = ""
    """The Date header: when the server wrote the answer, to the second."""
    limit_bytes: int = LIMIT_BYTES
    """How large the body may have been."""


_turn: ContextVar[list[asyncio.Lock] | None] = ContextVar("turn", default=None)
"""What the present reader of large answers holds; None: it reads them without a turn."""


class Client:
    """Requests to one source."""

    def __init__(
        self,
        *,
        timeout_seconds: float,
        max_response_bytes: int = LIMIT_BYTES,
        headers: Mapping[str, str] | None = None,
        **httpx_arguments: Any,  # noqa: ANN401 - httpx's
    ) -> None:
        """Prepare connections; httpx takes nothing from the environment.

        `timeout_seconds` is from the start of a request to the last byte of its answer, and
        `max_response_bytes` is after decompression.
        """
        self._client = httpx.AsyncClient(
            headers={"User-Agent": "keda-gpu-scaler", **(headers or {})},
            timeout=timeout_seconds,
            trust_env=False,
            **httpx_arguments,
        )
        self._large = asyncio.Lock()
        self._timeout_seconds, self._max_response_bytes = timeout_seconds, max_response_bytes

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Read large answers in turn: those of one context at a time, until it ends.

        An answer and what is made of it take up to a hundred MiB. The rest of an answer that turns
        out to be large is read when its turn comes, within the time of the request.
        """
        held_locks = list[asyncio.Lock]()
        previous_turn = _turn.set(held_locks)
        try:
            yield
        finally:
            _turn.reset(previous_turn)
            for lock in held_locks:
                lock.release()

    async def fetch(
        self,
        url: str,
        body: Mapping[str, str] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        server_name: str | None = None,
        limit_bytes: int | None = None,
    ) -> HttpAnswer:
        """Get `url`, or post a form or a text; SourceError: there is no whole answer.

        The server's certificate has to be for `server_name`, or else for the URL's host.
        `limit_bytes` is the limit of this answer, below that of all.
        """
        content: dict[str, Any] = {"content" if isinstance(body, bytes) else "data": body}
        extensions = {} if server_name is None else {"sni_hostname": server_name}
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                self._client.stream(
                    "GET" if body is None else "POST",
                    url,
                    headers={**(headers or {}), "Accept-Encoding": "gzip"},
                    extensions=extensions,
                    **content,
                ) as response,
            ):
                return await self._read(response, limit_bytes or self._max_response_bytes)
        except (TimeoutError, httpx.TimeoutException) as error:
            message = f"no answer within {self._timeout_seconds:g} s"
            raise errors.SourceTimeoutError(message) from error
        except zlib.error as error:
            raise errors.SourceMalformedError(f"undecodable answer: {error_text(error)}") from error
        except httpx.LocalProtocolError:
            # Its message, and those of its causes, quote the header, which may be a secret.
            message = "the request is not valid HTTP; look at the headers in the settings"
            raise errors.SourceUnreachableError(message) from None
        except httpx.RemoteProtocolError as error:
            # h11 quotes the line, in which a server may repeat the request with its secrets.
            message = error_text(error).partition(": bytearray(")[0]
            raise errors.SourceUnreachableError(message) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise errors.SourceUnreachableError(f"no usable URL: {error_text(error)}") from error
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise errors.SourceUnreachableError(error_text(error)) from error

    async def close(self) -> None:
        await self._client.aclose()

    async def _read(self, response: httpx.Response, limit_bytes: int) -> HttpAnswer:
        body, turn = bytearray(), _turn.get()
        async with contextlib.aclosing(_parts(response)) as parts:
            async for part in parts:
                if body:
                    # Other calls get a turn between two parts; most answers have only one.
                    await asyncio.sleep(0)
                body += part
                if len(body) > limit_bytes:
                    message = f"an answer of more than {limit_bytes} bytes"
                    raise errors.SourceMalformedError(message)
                if len(body) > LARGE_BYTES and turn is not None and self._large not in turn:
                    await self._large.acquire()
                    turn.append(self._large)
        headers = response.headers
        content_type, date = headers.get("content-type", "no content type"), headers.get("date", "")
        return HttpAnswer(response.status_code, content_type, body, date, limit_bytes)


async def _parts(response: httpx.Response) -> AsyncGenerator[bytes]:
    """Yield a body in small unpacked parts: a few compressed bytes can become gigabytes."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() not in ("identity", "gzip"):
        message = f"an answer with the encoding {printable(encoding)} instead of gzip"
        raise errors.SourceMalformedError(message)
    gzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding.lower() == "gzip" else None
    async for piece in response.aiter_raw():
        rest = piece
        while rest:
            if gzip is None:
                part, rest = rest[:PART_BYTES], rest[PART_BYTES:]
            else:
                part, rest = gzip.decompress(rest, PART_BYTES), gzip.unconsumed_tail
                if gzip.unused_data:
                    message = "an answer that goes on after its compression"
                    raise errors.SourceMalformedError(message)
            yield part
    if gzip is not None and response.num_bytes_downloaded and not gzip.eof:
        raise errors.SourceMalformedError("an answer whose compression is cut")
