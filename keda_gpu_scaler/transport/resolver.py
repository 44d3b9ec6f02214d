"""Targets as the operator wrote them → one URL for each server.

`http://host:port/metrics` is one server; `dns+http://name:port/metrics` is one for every present
address of the name, as a headless Service has them.

A lookup cannot be cancelled: it occupies a thread until the resolver of this machine gives up,
which takes far longer than a scrape waits. So there is one lookup at a time for each name, and the
process may end before it.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import httpx

DNS_PREFIX = "dns+"

LookUp = Callable[[httpx.URL], Awaitable[frozenset[str]]]


async def look_up(url: httpx.URL) -> frozenset[str]:
    """Return a URL for every address of a URL's name; OSError, UnicodeError: there is none now."""
    lookup: Future[list[Any]] = Future()
    lookup.set_running_or_notify_cancel()  # nothing can take it back from here on

    def run() -> None:
        try:
            lookup.set_result(socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM))
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            lookup.set_exception(error)

    # Python waits at its exit for the threads of asyncio, however long they take, and not for this.
    threading.Thread(target=run, name="lookup", daemon=True).start()
    addresses = await asyncio.wrap_future(lookup)
    return frozenset(str(url.copy_with(host=str(address[0]))) for *_, address in addresses)


class Resolver:
    """Looks names up, with one lookup at a time for each name."""

    def __init__(self, look_up: LookUp = look_up) -> None:
        self._look_up = look_up
        self._lookups: dict[str, asyncio.Task[frozenset[str] | str]] = {}

    async def urls(self, target: str, timeout_seconds: float) -> frozenset[str] | str:
        """Return the URLs of a target, or a message why there are none.

        A call during a lookup of the same name waits for that one, within its own timeout.
        """
        if not target.startswith(DNS_PREFIX):
            return frozenset((target,))
        lookup = self._lookups.get(target)
        if lookup is None:
            lookup = self._lookups[target] = asyncio.create_task(self._resolve(target))
        done, _ = await asyncio.wait({lookup}, timeout=timeout_seconds)
        if not done:
            return f"the name was not resolved within {timeout_seconds:g} s"
        return lookup.result()

    async def close(self) -> None:
        lookups = list(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

    async def _resolve(self, target: str) -> frozenset[str] | str:
        try:
            return await self._look_up(httpx.URL(target.removeprefix(DNS_PREFIX)))
        except (OSError, RuntimeError, UnicodeError, httpx.InvalidURL) as error:
            return str(error)
        finally:
            del self._lookups[target]
