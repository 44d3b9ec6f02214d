"""Scrape targets as the operator wrote them → one URL per exporter.

`http://host:port/metrics` is one exporter; `dns+http://name:port/metrics` stands for every address
the name has right now, which is what a headless Service of a DaemonSet gives.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import httpx

DNS_PREFIX = "dns+"


@dataclass(frozen=True, slots=True)
class Found:
    """The URLs of all exporters, and why a target has none."""

    urls: frozenset[str]
    troubles: Mapping[str, str]


async def resolve(targets: Iterable[str], timeout_seconds: float) -> Found:
    """Return every exporter's URL; a name that cannot be resolved is a trouble, not an error."""
    asked = tuple(targets)
    answers = await asyncio.gather(*(_urls(target, timeout_seconds) for target in asked))
    named = dict(zip(asked, answers, strict=True))
    return Found(
        urls=frozenset().union(*(urls for urls in answers if not isinstance(urls, str))),
        troubles={target: words for target, words in named.items() if isinstance(words, str)},
    )


async def _urls(target: str, timeout_seconds: float) -> set[str] | str:
    """Return a target's URLs, or in words why there are none."""
    if not target.startswith(DNS_PREFIX):
        return {target}
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _addresses(httpx.URL(target.removeprefix(DNS_PREFIX)))
    except TimeoutError:
        return f"the name was not resolved within {timeout_seconds:g} s"
    except (OSError, UnicodeError, httpx.InvalidURL) as error:
        return str(error)


async def _addresses(url: httpx.URL) -> set[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    return {str(url.copy_with(host=str(address[0]))) for *_, address in found}
