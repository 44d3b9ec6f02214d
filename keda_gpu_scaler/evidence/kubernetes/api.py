"""An API server over HTTP: lists in pages, watches line by line, patches, and errors in words.

lightkube finds the API server and authenticates. Its own lists and watches are not used: they
cannot request metadata only or bookmarks, and wait forever for a connection that has died.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import NamedTuple, cast

import httpx2
import lightkube
import msgspec
from lightkube.config import client_adapter
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.exceptions import ConfigError
from msgspec import Raw, Struct, json

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kubernetes.objects import Item, Resource, ScaleReference
from keda_gpu_scaler.transport import http_client

PAGE_OBJECTS = (100, 5)
"""How many objects a page has, and how many if so many are too large. Five always fit: an object
has 1.5 MiB at most in etcd, and up to three times as much as JSON."""
PAGE_BYTES = 32 * 2**20
LINE_BYTES = 8 * 2**20
"""The limit of one object in a watch, with room."""
WATCH_SECONDS = 15
"""The API server ends a watch after this time and sends a bookmark before. So the client hears from
it at least as often, with four requests a minute."""
SILENCE_SECONDS = WATCH_SECONDS + 5.0
"""After this time without data a watch is dead: it should have ended before."""
_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
MALFORMED = (msgspec.MsgspecError, RecursionError, ValueError)
"""What reading an answer that is none raises."""
_NO_REASON = "no reason given"


class ExpiredError(errors.SourceRefusedError):
    """The API server no longer has the requested resourceVersion: a new list is needed."""


class AbsentError(errors.SourceRefusedError):
    """There is no such object."""


class ConflictError(errors.SourceRefusedError):
    """The object has changed since it was read."""


class _TooLargeError(errors.SourceMalformedError):
    """An answer is larger than pages may be."""


_REFUSALS: Mapping[int, type[errors.SourceRefusedError]] = {
    httpx2.codes.GONE: ExpiredError,
    httpx2.codes.NOT_FOUND: AbsentError,
    httpx2.codes.CONFLICT: ConflictError,
}


class _ListMetadata(Struct):
    version: str = msgspec.field(name="resourceVersion")
    following: str | None = msgspec.field(default=None, name="continue")
    """The token for the next part of a list; the last part has none."""


class Page(Struct):
    """A part of a list."""

    metadata: _ListMetadata
    items: list[Item] | None


class WatchEvent(NamedTuple):
    """One line of a watch."""

    version: str
    item: Item | None = None
    """The object, in its last state if it was deleted; None: only the version is new."""
    is_deleted: bool = False


class _Bookmark(Struct):
    metadata: _ListMetadata


class _Status(Struct):
    """The answer to a request that failed, and the last line of a watch that fails."""

    code: int = 0
    message: str = _NO_REASON


class _Line(Struct):
    type: str
    object: Raw


class _ScaleStatus(Struct):
    selector: str | None = None


class _Scale(Struct):
    status: _ScaleStatus


def configuration_text(error: Exception) -> str:
    """Return what is wrong with a kubeconfig, without the name of a library's class."""
    if isinstance(error, KeyError):
        return f"the kubeconfig has no {error}"
    return http_client.error_text(error)


class Api:
    """One API server, found by the service account or by KUBECONFIG.

    Each error is an `errors.SourceError`, and its message names the verb and the resource.
    """

    def __init__(
        self, silence_seconds: float = SILENCE_SECONDS, configuration: SingleConfig | None = None
    ) -> None:
        """Read the configuration without connecting.

        A connection without data for `silence_seconds` is given up. `configuration` is how a person
        reaches the server, with the proxy of the environment.

        Raises:
            ValueError: there is no configuration, or it is wrong; the message says what is.
        """
        # Nothing else from the environment of a scaler: no proxy.
        timeout = httpx2.Timeout(silence_seconds, connect=5.0)
        connection = client_adapter.ConnectionParams(
            timeout=timeout, trust_env=configuration is not None
        )
        try:
            # Without a default, a missing configuration is an error and not None.
            server = configuration or cast("SingleConfig", lightkube.KubeConfig.from_env().get())
            self._client = client_adapter.AsyncClient(server, connection)
        except Exception as error:  # lightkube raises the errors of several libraries
            raise ValueError(f"no cluster to ask: {configuration_text(error)}") from error

    async def page(self, resource: Resource, following: str = "") -> Page:
        """Return a part of the list of all objects: the first one, or the one at `following`."""
        accept = _METADATA.format("List") if resource.metadata_only else _JSON
        query = {"continue": following} if following else {}
        most, few = PAGE_OBJECTS
        action, path = f"list {resource}", resource.path()
        try:
            async with self._answer(action, path, query | {"limit": str(most)}, accept) as answer:
                return json.decode(await _body(answer), type=Page)
        except _TooLargeError:
            async with self._answer(action, path, query | {"limit": str(few)}, accept) as answer:
                return json.decode(await _body(answer), type=Page)

    async def pages(self, resource: Resource) -> AsyncGenerator[Page]:
        """Yield all parts of the list of all objects."""
        page = await self.page(resource)
        yield page
        while page.metadata.following:
            page = await self.page(resource, page.metadata.following)
            yield page

    async def watch(self, resource: Resource, version: str) -> AsyncGenerator[WatchEvent]:
        """Yield the changes after a version, until the API server ends the watch."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        accept = _METADATA.format("") if resource.metadata_only else _JSON
        action, path = f"watch {resource}", resource.path()
        async with self._answer(action, path, query, accept, seconds=None) as answer:
            async for text in _lines(answer):
                line = json.decode(text, type=_Line)
                if line.type == "ERROR":
                    status = json.decode(line.object, type=_Status)
                    raise _refusal(status.code, status.message)
                if line.type == "BOOKMARK":
                    yield WatchEvent(json.decode(line.object, type=_Bookmark).metadata.version)
                    continue
                item = json.decode(line.object, type=Item)
                is_deleted = line.type == "DELETED"
                yield WatchEvent(item.metadata.resource_version, item, is_deleted=is_deleted)

    async def selector(self, scale: ScaleReference) -> str:
        action = f"get {scale.resource}/scale ({scale})"
        async with self._answer(action, scale.path) as answer:
            return json.decode(await _body(answer), type=_Scale).status.selector or ""

    async def body(self, path: str, what: str) -> bytearray:
        """Return the JSON of the object at a URL path; `what` is its name in messages."""
        async with self._answer(f"get {what}", path) as answer:
            return await _body(answer)

    async def annotate(
        self, resource: Resource, name: str, version: str, annotations: Mapping[str, str | None]
    ) -> None:
        """Write annotations of an object, None to remove one, if it is still of this version."""
        change = {"metadata": {"resourceVersion": version, "annotations": annotations}}
        path, action = f"{resource.path()}/{name}", f"patch {resource}"
        async with self._answer(action, path, patch=json.encode(change)) as answer:
            await _body(answer)

    async def close(self) -> None:
        await self._client.aclose()

    @contextlib.asynccontextmanager
    async def _answer(  # noqa: PLR0913 - one request
        self,
        action: str,
        path: str,
        query: Mapping[str, str] | None = None,
        accept: str = _JSON,
        *,
        seconds: float | None = 30.0,
        patch: bytes | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Yield the answer to a request; every error until it is read gets its words here.

        `action` has the verb and the resource; `seconds` is the time until the answer is read.
        """
        headers, method = {"Accept": accept}, "GET"
        if patch is not None:
            headers["Content-Type"], method = "application/merge-patch+json", "PATCH"
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(
                    method, path, params=query, headers=headers, content=patch
                ) as answer,
            ):
                if answer.status_code != http_client.OK:
                    message, body = _NO_REASON, await _body(answer)
                    with contextlib.suppress(*MALFORMED):  # of a proxy in front of it
                        message = json.decode(body, type=_Status).message
                    raise _refusal(answer.status_code, message)
                yield answer
        except errors.SourceError as error:
            raise type(error)(f"cannot {action}: {error}") from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise errors.SourceTimeoutError(f"cannot {action}: no answer in time") from error
        except (httpx2.HTTPError, OSError) as error:
            message = f"cannot {action}: {http_client.error_text(error)}"
            raise errors.SourceUnreachableError(message) from error
        except ConfigError as error:
            raise errors.SourceRefusedError(f"cannot {action}: {error}") from error
        except MALFORMED as error:
            message = (
                f"cannot {action}: an answer of another shape: {http_client.error_text(error)}"
            )
            raise errors.SourceMalformedError(message) from error


async def _body(answer: httpx2.Response) -> bytearray:
    """Return the body of an answer, if it is not larger than pages may be."""
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > PAGE_BYTES:
            raise _TooLargeError(f"an answer of more than {PAGE_BYTES} bytes")
    return body


async def _lines(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the text between line feeds; other line breaks can be part of a value."""
    rest = b""
    async for chunk in answer.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > LINE_BYTES:
            raise errors.SourceMalformedError(f"a line of more than {LINE_BYTES} bytes")
    if rest:
        yield rest


def _refusal(code: int, message: str) -> errors.SourceRefusedError:
    kind = _REFUSALS.get(code, errors.SourceRefusedError)
    return kind(f"HTTP {code}, {http_client.printable(message)}")
