"""Scrape targets as the operator wrote them → one URL per exporter.

`http://host:port/metrics` is one exporter; `dns+http://name:port/metrics` stands for every address
the name has right now, which is what a headless Service of a DaemonSet gives.

A lookup cannot be called off: it occupies a thread until the resolver of this machine gives up,
which takes far longer than anybody here waits. So there is one at a time for each name.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import httpx

DNS_PREFIX = "dns+"


@dataclass(frozen=True, slots=True)
class Found:
    """The URLs of all exporters, and why a target has none."""

    urls: frozenset[str]
    troubles: Mapping[str, str]
    before: frozenset[str] = frozenset()
    """What names stood for that cannot be looked up now, as long as nobody says they do no more."""
    names: Mapping[str, str] = field(default_factory=dict)
    """For each URL of an address, the name that it was found by: certificates are for names."""


LookUp = Callable[[httpx.URL], Awaitable[frozenset[str]]]


async def look_up(url: httpx.URL) -> frozenset[str]:
    """Return a URL for every address that a URL's name has.

    Raises:
        OSError: it has none, or nobody can tell now.
        UnicodeError: there can be no such name.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    return frozenset(str(url.copy_with(host=str(address[0]))) for *_, address in found)


class Resolver:
    """Looks names up, each at most once at the same time, however many ask for it."""

    def __init__(self, look_up: LookUp = look_up) -> None:
        """Look nothing up yet; `look_up` is what asks for one name."""
        self._look_up = look_up
        self._lookups: dict[str, asyncio.Task[frozenset[str] | str]] = {}
        self._known: dict[str, frozenset[str]] = {}

    async def resolve(self, targets: Iterable[str], timeout_seconds: float) -> Found:
        """Return every exporter's URL; a name that cannot be resolved is a trouble, not an error.

        Who asks while a lookup is under way waits for that one, and not longer than its own time.
        """
        asked = tuple(targets)
        answers = await asyncio.gather(*(self._urls(target, timeout_seconds) for target in asked))
        named = dict(zip(asked, answers, strict=True))
        troubles = {target: words for target, words in named.items() if isinstance(words, str)}
        return Found(
            urls=frozenset().union(*(urls for urls in answers if not isinstance(urls, str))),
            troubles=troubles,
            before=frozenset().union(*(self._known.get(target, ()) for target in troubles)),
            names={url: _name(target) for target in asked for url in self._known.get(target, ())},
        )

    async def close(self) -> None:
        """Wait for no lookup any more."""
        lookups = list(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

    async def _urls(self, target: str, timeout_seconds: float) -> frozenset[str] | str:
        """Return a target's URLs, or in words why there are none."""
        if not target.startswith(DNS_PREFIX):
            return frozenset((target,))
        lookup = self._lookups.get(target)
        if lookup is None:
            lookup = self._lookups[target] = asyncio.create_task(self._looked_up(target))
        done, _ = await asyncio.wait({lookup}, timeout=timeout_seconds)
        if not done:
            return f"the name was not resolved within {timeout_seconds:g} s"
        return lookup.result()

    async def _looked_up(self, target: str) -> frozenset[str] | str:
        try:
            found = await self._look_up(httpx.URL(target.removeprefix(DNS_PREFIX)))
        except (OSError, UnicodeError, httpx.InvalidURL) as error:
            # Nobody there to ask is no word on the name.
            if getattr(error, "errno", None) != socket.EAI_AGAIN:
                self._known.pop(target, None)
            return str(error)
        finally:
            del self._lookups[target]
        self._known[target] = found
        return found


def _name(target: str) -> str:
    return httpx.URL(target.removeprefix(DNS_PREFIX)).host
