"""Targets → URLs, by the resolver of this machine."""

import asyncio
import socket

import httpx
import pytest

from keda_gpu_scaler.transport.resolver import Resolver

BOUND_SECONDS = 30.0
"""Only a process that hangs reaches this bound."""
LOCAL = {address[0] for *_, address in socket.getaddrinfo("localhost", 9400)}


def local_urls(scheme: str = "http", path: str = "/metrics") -> set[str]:
    hosts = {f"[{host}]" if ":" in str(host) else str(host) for host in LOCAL}
    return {f"{scheme}://{host}:9400{path}" for host in hosts}


@pytest.mark.parametrize(
    ("target", "urls"),
    [
        ("http://10.0.0.1:9400/metrics", {"http://10.0.0.1:9400/metrics"}),
        ("https://no-such-name.invalid/metrics", {"https://no-such-name.invalid/metrics"}),
        ("dns+http://localhost:9400/a/path?x=1", local_urls("http", "/a/path?x=1")),
        ("dns+https://localhost:9400/a/path?x=1", local_urls("https", "/a/path?x=1")),
        ("dns+http://127.0.0.1:9400/metrics", {"http://127.0.0.1:9400/metrics"}),
        ("dns+http://[::1]:9400/metrics", {"http://[::1]:9400/metrics"}),
    ],
)
async def test_a_target_is_a_url_or_all_addresses_of_its_name(target: str, urls: set[str]) -> None:
    assert await Resolver().urls(target, BOUND_SECONDS) == frozenset(urls)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("no-such-name.invalid", "", id="unknown"),
        pytest.param("a..b", "", id="empty label"),
        pytest.param("a" * 64, "", id="long label"),
        pytest.param("xn--", "A-label", id="no IDNA"),
        pytest.param("exa mple", "", id="a blank"),
    ],
)
async def test_a_name_without_an_address_is_a_message(name: str, words: str) -> None:
    message = await Resolver().urls(f"dns+http://{name}:9400/metrics", BOUND_SECONDS)
    assert isinstance(message, str)
    assert message
    assert words in message


NAMED = "dns+http://replicas:8080"
THERE = frozenset({"http://10.0.0.1:8080"})


class Lookups:
    """Lookups that end when a test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()

    async def __call__(self, _url: httpx.URL) -> frozenset[str]:
        """Wait, and answer."""
        self.begun += 1
        await self.may_end.wait()
        return THERE


async def test_a_name_is_looked_up_once_at_a_time_however_many_calls_give_up() -> None:
    lookups = Lookups()
    resolver = Resolver(lookups)
    for _ in range(10):
        assert await resolver.urls(NAMED, 0) == "the name was not resolved within 0 s"
    assert lookups.begun == 1
    lookups.may_end.set()
    assert await resolver.urls(NAMED, BOUND_SECONDS) == THERE
    begun = lookups.begun
    assert await resolver.urls(NAMED, BOUND_SECONDS) == THERE
    assert lookups.begun == begun + 1


async def test_a_lookup_that_goes_on_ends_with_the_resolver() -> None:
    resolver = Resolver(Lookups())
    await resolver.urls(NAMED, 0)
    await resolver.close()
