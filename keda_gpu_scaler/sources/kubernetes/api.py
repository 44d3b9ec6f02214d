"""An API server over HTTP: lists in pages, watches line by line, and errors in words.

lightkube finds the API server and authenticates. Its own lists and watches are not used: they
cannot request metadata alone or bookmarks, and wait forever for a connection that has died.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, NamedTuple, cast

import httpx2
import lightkube
import orjson
from lightkube.config import client_adapter
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.exceptions import ConfigError

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources.kubernetes.objects import Json, Scale

_MESSAGE_CHARACTERS = 256


class ExpiredError(errors.SourceRefusedError):
    """The API server no longer has the requested resourceVersion: a new list is needed."""


def refusal_of(code: int, body: bytes) -> errors.SourceRefusedError:
    """Return the error for a failed request, with the API server's own words if there are any."""
    try:
        said = str(orjson.loads(body)["message"])[:_MESSAGE_CHARACTERS]
    except (ValueError, LookupError, TypeError):
        said = "no reason given"
    kind = ExpiredError if code == httpx2.codes.GONE else errors.SourceRefusedError
    return kind(f"HTTP {code}, {said}")


@contextlib.contextmanager
def refusals_in_words(doing: str) -> Iterator[None]:
    """Turn the libraries' exceptions into errors that name the failed request."""
    try:
        yield
    except errors.SourceRefusedError as error:
        raise type(error)(f"cannot {doing}: {error}") from error
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise errors.SourceTimeoutError(f"cannot {doing}: no answer in time") from error
    except (httpx2.HTTPError, OSError) as error:
        why = f"{type(error).__name__}: {error}"
        raise errors.SourceUnreachableError(f"cannot {doing}: {why}") from error
    except ConfigError as error:
        raise errors.SourceRefusedError(f"cannot {doing}: {error}") from error
    except (ValueError, LookupError, TypeError) as error:
        message = f"cannot {doing}: an answer of another shape: {type(error).__name__}"
        raise errors.SourceMalformedError(message) from error


PAGE_OBJECTS = 500
"""A page with so many pods has a few MB."""
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

    items: list[Json]
    version: str
    following: str
    """The `continue` token for the next part; empty for the last one."""


class Change(NamedTuple):
    """One line of a watch."""

    kind: str
    """ADDED, MODIFIED, DELETED or BOOKMARK."""
    item: Json
    version: str


class Api:
    """One API server, found by the service account or by KUBECONFIG."""

    def __init__(self, silence_seconds: float = SILENCE_SECONDS) -> None:
        """Read the configuration without connecting.

        Args:
            silence_seconds: a connection without data for this long is given up.

        Raises:
            ValueError: there is no configuration, or it is wrong; the message says what is.
        """
        # Nothing else from the environment: no proxy.
        timeout = httpx2.Timeout(silence_seconds, connect=_CONNECT_SECONDS)
        connection = client_adapter.ConnectionParams(timeout=timeout, trust_env=False)
        try:
            # Without a default, a missing configuration is an error and not None.
            configuration = cast("SingleConfig", lightkube.KubeConfig.from_env().get())
            self._client = client_adapter.AsyncClient(configuration, connection)
        except Exception as error:  # lightkube raises the errors of several libraries
            raise ValueError(f"no cluster to ask: {type(error).__name__}: {error}") from error

    async def page(self, resource: Resource, following: str) -> Page:
        """Return a part of the list of all objects: the first one, or the one at `following`.

        Raises:
            errors.SourceError: the request failed; the message names verb and resource.
        """
        query = {"limit": str(PAGE_OBJECTS), **({"continue": following} if following else {})}
        with refusals_in_words(f"list {resource}"):
            async with (
                asyncio.timeout(PAGE_SECONDS),
                self._opened(resource.path, resource.accept("List"), query) as got,
            ):
                found = orjson.loads(await got.aread())
            items, metadata = found["items"] or [], found["metadata"]
            return Page(items, metadata["resourceVersion"], metadata.get("continue") or "")

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
                    yield _change(orjson.loads(line))

    async def selector(self, scale: Scale) -> str:
        """Return the label selector of a scale target as text; empty: it has none.

        Raises:
            errors.SourceError: the request failed; the message names verb and resource.
        """
        with refusals_in_words(f"get {scale.resource}/scale ({scale})"):
            async with asyncio.timeout(PAGE_SECONDS), self._opened(scale.path, _JSON, {}) as got:
                return str(dict(orjson.loads(await got.aread())["status"]).get("selector") or "")

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
                raise refusal_of(answer.status_code, await answer.aread())
            yield answer


async def _lines(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the text between line feeds; other line breaks can be part of a value."""
    rest = b""
    async for chunk in answer.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest


def _change(line: dict[str, Any]) -> Change:
    kind, item = line["type"], line["object"]
    if kind == "ERROR":
        raise refusal_of(int(item.get("code") or 0), orjson.dumps(item))
    return Change(kind, item, item["metadata"]["resourceVersion"])
