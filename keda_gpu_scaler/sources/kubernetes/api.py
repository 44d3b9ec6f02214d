"""An API server over HTTP: lists in pages, watches line by line, and errors in words.

lightkube finds the API server and authenticates. Its own lists and watches are not used: they
cannot request metadata alone or bookmarks, and wait forever for a connection that has died.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from typing import NamedTuple, cast

import httpx2
import lightkube
import msgspec
from lightkube.config import client_adapter
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.exceptions import ConfigError
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources.kubernetes.objects import Item, Scale
from keda_gpu_scaler.transport import client

_MESSAGE_CHARACTERS = 256


class ExpiredError(errors.SourceRefusedError):
    """The API server no longer has the requested resourceVersion: a new list is needed."""


class AbsentError(errors.SourceRefusedError):
    """There is no such object."""


_REFUSALS: Mapping[int, type[errors.SourceRefusedError]] = {
    httpx2.codes.GONE: ExpiredError,
    httpx2.codes.NOT_FOUND: AbsentError,
}


def refusal_of(code: int, body: bytes) -> errors.SourceRefusedError:
    """Return the error for a failed request, with the API server's own words if there are any."""
    try:
        said = _ITEM.decode(body)["message"]
    except _MALFORMED:
        said = "no reason given"
    return _refused(code, said)


def _refused(code: int, said: str) -> errors.SourceRefusedError:
    kind = _REFUSALS.get(code, errors.SourceRefusedError)
    return kind(f"HTTP {code}, {said[:_MESSAGE_CHARACTERS]}")


def configuration_text(error: Exception) -> str:
    """Return what is wrong with a kubeconfig, without the name of a library's class."""
    if isinstance(error, KeyError):
        return f"the kubeconfig has no {error}"
    return client.error_text(error)


@contextlib.contextmanager
def refusals_in_words(doing: str) -> Iterator[None]:
    """Turn the libraries' exceptions into errors that name the failed request."""
    try:
        yield
    except (errors.SourceRefusedError, errors.SourceMalformedError) as error:
        raise type(error)(f"cannot {doing}: {error}") from error
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise errors.SourceTimeoutError(f"cannot {doing}: no answer in time") from error
    except (httpx2.HTTPError, OSError) as error:
        raise errors.SourceUnreachableError(
            f"cannot {doing}: {client.error_text(error)}"
        ) from error
    except ConfigError as error:
        raise errors.SourceRefusedError(f"cannot {doing}: {error}") from error
    except _MALFORMED as error:
        message = f"cannot {doing}: an answer of another shape: {type(error).__name__}"
        raise errors.SourceMalformedError(message) from error


PAGES = (500, 100, 20, 4)
"""How many objects are asked for at a time. 500 pods usually have a few MB, and four always fit: an
object has 1.5 MiB at most in etcd, and up to three times as much as JSON."""
PAGE_BYTES = 16 * 2**20
LINE_BYTES = 8 * 2**20
"""The limit of one object in a watch, with room."""
OBJECTS = 150_000
"""As many pods as Kubernetes is made for; each takes 1.3 KiB."""
PAGE_SECONDS = 30.0
WATCH_SECONDS = 15
"""The API server ends a watch after this time and sends a bookmark before. So the client hears from
it at least as often, with four requests a minute."""
SILENCE_SECONDS = WATCH_SECONDS + 5.0
"""After this time without data a watch is dead: it should have ended before."""
_CONNECT_SECONDS = 5.0
_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"


class Resource(NamedTuple):
    """One kind of object, as URLs name it."""

    group: str
    version: str
    plural: str
    metadata_only: bool = False
    most: int = OBJECTS
    """A list of more is an error."""

    def __str__(self) -> str:
        """Return the name as in kubectl: pods, replicasets.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """The URL path of all objects, in all namespaces."""
        start = f"/apis/{self.group}" if self.group else "/api"
        return f"{start}/{self.version}/{self.plural}"

    def accept(self, form: str = "") -> str:
        """Return the media type of one object, or of a List."""
        return _METADATA.format(form) if self.metadata_only else _JSON


class Page(NamedTuple):
    """A part of a list."""

    items: list[Item]
    version: str
    following: str
    """The `continue` token for the next part; empty for the last one."""


class Change(NamedTuple):
    """One line of a watch."""

    kind: str
    """ADDED, MODIFIED, DELETED or BOOKMARK."""
    item: Item
    version: str


class _Continued(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion")
    following: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    metadata: _Continued
    items: list[Item] | None


class _Line(msgspec.Struct):
    type: str
    object: Item


class _ScaleStatus(msgspec.Struct):
    selector: str | None = None


class _Scale(msgspec.Struct):
    status: _ScaleStatus


_ITEM, _LIST, _LINE, _SCALE = Decoder(Item), Decoder(_List), Decoder(_Line), Decoder(_Scale)
_MALFORMED = (msgspec.DecodeError, RecursionError, ValueError, LookupError, TypeError)


class _TooLargeError(errors.SourceMalformedError):
    """A page that is larger than pages may be; a shorter one is asked for."""


class Api:
    """One API server, found by the service account or by KUBECONFIG."""

    def __init__(
        self, silence_seconds: float = SILENCE_SECONDS, configuration: SingleConfig | None = None
    ) -> None:
        """Read the configuration without connecting.

        Args:
            silence_seconds: a connection without data for this long is given up.
            configuration: how a person reaches the server, with the proxy of the environment;
                None: the service account or KUBECONFIG, without one.

        Raises:
            ValueError: there is no configuration, or it is wrong; the message says what is.
        """
        # Nothing else from the environment of a scaler: no proxy.
        timeout = httpx2.Timeout(silence_seconds, connect=_CONNECT_SECONDS)
        connection = client_adapter.ConnectionParams(
            timeout=timeout, trust_env=configuration is not None
        )
        try:
            # Without a default, a missing configuration is an error and not None.
            found = configuration or cast("SingleConfig", lightkube.KubeConfig.from_env().get())
            self._client = client_adapter.AsyncClient(found, connection)
        except Exception as error:  # lightkube raises the errors of several libraries
            raise ValueError(f"no cluster to ask: {configuration_text(error)}") from error

    async def page(self, resource: Resource, following: str) -> Page:
        """Return a part of the list of all objects: the first one, or the one at `following`.

        Raises:
            errors.SourceError: the request failed; the message names verb and resource.
        """
        with refusals_in_words(f"list {resource}"):
            for count in PAGES:
                query = {"limit": str(count), **({"continue": following} if following else {})}
                with contextlib.suppress(_TooLargeError):
                    return await self._page(resource, query)
            raise errors.SourceMalformedError(
                f"{PAGES[-1]} objects of more than {PAGE_BYTES} bytes"
            )

    async def _page(self, resource: Resource, query: dict[str, str]) -> Page:
        async with (
            asyncio.timeout(PAGE_SECONDS),
            self._opened(resource.path, resource.accept("List"), query) as got,
        ):
            body = await _body(got)
        found = await asyncio.to_thread(_LIST.decode, body)
        return Page(found.items or [], found.metadata.version, found.metadata.following or "")

    async def watch(self, resource: Resource, version: str) -> AsyncGenerator[Change]:
        """Yield the changes after a version, until the API server ends the watch.

        Raises:
            errors.SourceError: the watch failed; the message names verb and resource.
        """
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with refusals_in_words(f"watch {resource}"):
            async with self._opened(resource.path, resource.accept(), query) as answer:
                async for line in _lines(answer):
                    yield _change(_LINE.decode(line))

    async def selector(self, scale: Scale) -> str:
        """Return the label selector of a scale target as text; empty: it has none.

        Raises:
            errors.SourceError: the request failed; the message names verb and resource.
        """
        with refusals_in_words(f"get {scale.resource}/scale ({scale})"):
            async with asyncio.timeout(PAGE_SECONDS), self._opened(scale.path, _JSON, {}) as got:
                return _SCALE.decode(await _body(got)).status.selector or ""

    async def body(self, path: str, what: str) -> bytes:
        """Return the JSON of one object.

        Args:
            path: its URL path.
            what: its resource and name, for messages.

        Raises:
            AbsentError: there is none.
            errors.SourceError: the request failed; the message names verb and resource.
        """
        with refusals_in_words(f"get {what}"):
            async with asyncio.timeout(PAGE_SECONDS), self._opened(path, _JSON, {}) as got:
                return await _body(got)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    @contextlib.asynccontextmanager
    async def _opened(
        self, path: str, accept: str, query: dict[str, str]
    ) -> AsyncIterator[httpx2.Response]:
        """Yield an answer with a status of success; its body may still fail."""
        headers = {"Accept": accept}
        async with self._client.stream("GET", path, params=query, headers=headers) as answer:
            if answer.is_error:
                raise refusal_of(answer.status_code, await _body(answer))
            yield answer


async def _body(answer: httpx2.Response) -> bytes:
    """Return the body of an answer, if it is not larger than pages may be."""
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > PAGE_BYTES:
            raise _TooLargeError(f"an answer of more than {PAGE_BYTES} bytes")
    return bytes(body)


async def _lines(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the text between line feeds; other line breaks can be part of a value."""
    rest = bytearray()
    async for chunk in answer.aiter_bytes():
        first, *others = chunk.split(b"\n")
        rest += first
        for begun in others:
            yield bytes(rest)
            rest = bytearray(begun)
        if len(rest) > LINE_BYTES:
            raise errors.SourceMalformedError(f"a line of more than {LINE_BYTES} bytes")
    if rest:
        yield bytes(rest)


def _change(line: _Line) -> Change:
    item = line.object
    if line.type == "ERROR":
        raise _refused(item.get("code", 0), item.get("message", "no reason given"))
    return Change(line.type, item, item["metadata"]["resourceVersion"])
