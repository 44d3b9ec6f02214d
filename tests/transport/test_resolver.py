"""Targets → URLs, by the resolver of this machine."""

import asyncio
import contextlib
import socket
import sys

import httpx
import pytest

from keda_gpu_scaler.transport import resolver
from keda_gpu_scaler.transport.resolver import Found, Resolver

BOUND_SECONDS = 30.0
"""Only a process that hangs reaches this bound."""
LOCAL = {address[0] for *_, address in socket.getaddrinfo("localhost", 9400)}


def local_urls(scheme: str = "http", path: str = "/metrics") -> set[str]:
    hosts = {f"[{host}]" if ":" in str(host) else str(host) for host in LOCAL}
    return {f"{scheme}://{host}:9400{path}" for host in hosts}


async def test_a_plain_target_is_one_url_whatever_its_name() -> None:
    targets = ("http://10.0.0.1:9400/metrics", "https://no-such-name.invalid/metrics")

    found = await resolver.Resolver().resolve(targets, 5)

    assert found == resolver.Found(frozenset(targets), {})


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_name_is_every_address_it_has(scheme: str) -> None:
    found = await resolver.Resolver().resolve([f"dns+{scheme}://localhost:9400/a/path?x=1"], 5)

    urls = local_urls(scheme, "/a/path?x=1")
    assert found == resolver.Found(frozenset(urls), {}, names=dict.fromkeys(urls, "localhost"))


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_an_address_is_its_own_name(host: str) -> None:
    found = await resolver.Resolver().resolve([f"dns+http://{host}:9400/metrics"], 5)

    assert found.urls == {f"http://{host}:9400/metrics"}


async def test_two_names_of_one_address_are_one_exporter() -> None:
    targets = ["dns+http://localhost:9400/metrics", *local_urls()]

    assert (await resolver.Resolver().resolve(targets, 5)).urls == local_urls()


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
async def test_a_name_without_an_address_is_a_trouble_beside_the_others(
    name: str, words: str
) -> None:
    target = f"dns+http://{name}:9400/metrics"

    found = await resolver.Resolver().resolve([target, "http://10.0.0.1:9400/metrics"], 5)

    assert found.urls == {"http://10.0.0.1:9400/metrics"}
    assert found.troubles.keys() == {target}
    assert words in found.troubles[target]
    assert found.troubles[target]


async def ended(program: str) -> str:
    """Run a program in a process of its own to its end; return what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), BOUND_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == 0
    return output.decode()


async def test_a_process_ends_while_a_lookup_goes_on() -> None:
    program = """
import asyncio, threading
from keda_gpu_scaler.transport import resolver

async def look_up(_url):
    return await resolver.in_daemon_thread(threading.Event().wait)

async def main():
    found = await resolver.Resolver(look_up).resolve(["dns+http://slow.test:9400"], 0.1)
    print(*found.troubles.values())

asyncio.run(main())
"""
    assert await ended(program) == "the name was not resolved within 0.1 s\n"


async def test_a_lookup_leaves_no_thread_that_a_process_waits_for() -> None:
    program = """
import asyncio, threading
from keda_gpu_scaler.transport import resolver

async def main():
    print(len((await resolver.Resolver().resolve(["dns+http://localhost:9400"], 60)).urls) > 0)
    print([one.name for one in threading.enumerate() if not one.daemon])

asyncio.run(main())
"""
    assert await ended(program) == "True\n['MainThread']\n"


async def test_what_a_call_in_a_thread_raises_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        await resolver.in_daemon_thread(_interrupted)


def _interrupted() -> None:
    raise KeyboardInterrupt


NAMED = "dns+http://replicas:8080"
THERE = frozenset({"http://10.0.0.1:8080"})


class Lookups:
    """Lookups that end when a test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.answer: frozenset[str] | OSError = THERE
        self.may_end = asyncio.Event()

    async def __call__(self, _url: httpx.URL) -> frozenset[str]:
        """Wait, and answer."""
        self.begun += 1
        await self.may_end.wait()
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


async def test_a_name_is_looked_up_once_at_a_time_whoever_gives_up_waiting() -> None:
    lookups = Lookups()
    resolver = Resolver(lookups)

    for _ in range(10):
        assert (await resolver.resolve([NAMED], 0)).urls == frozenset()
    assert lookups.begun == 1
    lookups.may_end.set()
    assert (await resolver.resolve([NAMED], 30)).urls == THERE

    begun = lookups.begun
    assert (await resolver.resolve([NAMED], 30)).urls == THERE
    assert lookups.begun == begun + 1


async def test_a_name_that_is_not_resolved_in_time_is_a_trouble() -> None:
    resolver = Resolver(Lookups())

    found = await resolver.resolve([NAMED], 0)

    assert found == Found(frozenset(), {NAMED: "the name was not resolved within 0 s"})
    await resolver.close()


async def test_what_a_name_stood_for_is_known_until_somebody_says_that_it_is_gone() -> None:
    lookups = Lookups()
    lookups.may_end.set()
    resolver = Resolver(lookups)
    assert (await resolver.resolve([NAMED], 30)).before == frozenset()

    lookups.answer = socket.gaierror(socket.EAI_AGAIN, "try again")
    unknown = await resolver.resolve([NAMED], 30)
    assert (unknown.before, frozenset(unknown.names)) == (THERE, THERE)
    assert (await resolver.resolve([NAMED], 0)).before == THERE
    lookups.answer = socket.gaierror(socket.EAI_NONAME, "no such name")
    found = await resolver.resolve([NAMED], 30)

    assert found == Found(frozenset(), {NAMED: f"[Errno {socket.EAI_NONAME}] no such name"})
