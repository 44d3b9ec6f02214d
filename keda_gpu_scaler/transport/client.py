"""HTTP for sources and replicas: authenticated, bounded in size and time, with clear errors.

A request gives one whole body or a `SourceError`. Nothing here knows what the body means. Messages
of servers and libraries are made safe for logs and answers.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from keda_gpu_scaler import errors

WORDS_SHOWN = 256
"""A server's own words are shown up to this length: enough to act on, too short to flood a log."""


def error_text(error: BaseException) -> str:
    """Return the message of an error; httpx often has it only in the exception's cause."""
    cause = error.__cause__ or error.__context__
    if str(error) or cause is None:
        return printable(str(error) or type(error).__name__)
    return error_text(cause)


def printable(text: str) -> str:
    """Return a server's words on one line, without control characters, cut to a limit."""
    line = " ".join(text[: 4 * WORDS_SHOWN].split())
    safe = "".join(char if char.isprintable() else "?" for char in line)
    return safe if len(safe) <= WORDS_SHOWN else f"{safe[:WORDS_SHOWN]}…"


class Bearer(httpx.Auth):
    """Sends a token that is read for every request, because tokens rotate."""

    def __init__(self, token: Callable[[], str]) -> None:
        """Send what this function returns.

        Args:
            token: returns the current token, or raises SettingsError.
        """
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the current token.

        Raises:
            errors.SourceUnreachableError: there is none.
        """
        try:
            request.headers["Authorization"] = f"Bearer {self._token()}"
        except errors.SettingsError as error:
            raise errors.SourceUnreachableError(str(error)) from error
        yield request


USER_AGENT = "keda-gpu-scaler"
OK = 200
"""The only status of a whole answer: 206 and similar ones carry a part."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer."""

    status: int
    content_type: str
    body: bytes
    date: str = ""
    """The Date header: when the server wrote the answer, to the second."""


class Client:
    """Requests to one source."""

    def __init__(
        self, client: httpx.AsyncClient, *, timeout_seconds: float, max_response_bytes: int
    ) -> None:
        """Take over an httpx client; `close` closes it.

        Args:
            client: holds the connections.
            timeout_seconds: limit of a request, from its start to the last byte of its answer.
            max_response_bytes: limit of an answer, after decompression.
        """
        self._client = client
        self._timeout_seconds, self._max_response_bytes = timeout_seconds, max_response_bytes

    async def get(self, url: str, server_name: str | None = None) -> Answer:
        """Get `url`; with `server_name`, the server's certificate has to be for this name."""
        return await self._bounded("GET", url, extensions=_expecting(server_name))

    async def post(
        self,
        url: str,
        body: Mapping[str, str] | bytes,
        headers: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> Answer:
        """Send a form or a text, which can be too long for a URL, with additional headers."""
        given: dict[str, Any] = {"content" if isinstance(body, bytes) else "data": body}
        return await self._bounded(
            "POST", url, headers=headers, extensions=_expecting(server_name), **given
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def _bounded(self, method: str, url: str, **given: Any) -> Answer:  # noqa: ANN401 - httpx's
        try:
            async with asyncio.timeout(self._timeout_seconds):
                request = self._client.build_request(method, url, **given)
                return await self._sent(request)
        except TimeoutError as error:
            message = f"no answer within {self._timeout_seconds:g} s"
            raise errors.SourceTimeoutError(message) from error
        except httpx.TimeoutException as error:
            raise errors.SourceTimeoutError(f"no answer in time: {error_text(error)}") from error
        except httpx.DecodingError as error:
            raise errors.SourceMalformedError(f"undecodable answer: {error_text(error)}") from error
        except httpx.LocalProtocolError:
            # Its message, and those of its causes, quote the header, which may be a secret.
            message = "the request is not valid HTTP; look at the headers in the settings"
            raise errors.SourceUnreachableError(message) from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise errors.SourceUnreachableError(f"no usable URL: {error_text(error)}") from error
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise errors.SourceUnreachableError(error_text(error)) from error

    async def _sent(self, request: httpx.Request) -> Answer:
        response = await self._client.send(request, stream=True)
        try:
            _require_one_encoding(response)
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._max_response_bytes:
                    message = f"an answer of more than {self._max_response_bytes} bytes"
                    raise errors.SourceMalformedError(message)
        finally:
            await response.aclose()
        headers = response.headers
        content_type, date = headers.get("content-type", "no content type"), headers.get("date", "")
        return Answer(response.status_code, content_type, bytes(body), date)


def _expecting(server_name: str | None) -> dict[str, str]:
    """Return the option that makes TLS expect this name instead of the URL's."""
    return {} if server_name is None else {"sni_hostname": server_name}


def _require_one_encoding(response: httpx.Response) -> None:
    """Refuse double compression: a few bytes become gigabytes before their size can be checked."""
    if "," in response.headers.get("content-encoding", ""):
        raise errors.SourceMalformedError("an answer that is compressed more than once")
