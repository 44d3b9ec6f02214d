"""Targets → URLs, by the resolver of this machine."""

import socket

import pytest

from keda_gpu_scaler.sources import addresses

LOCAL = {address[0] for *_, address in socket.getaddrinfo("localhost", 9400)}


def local_urls(scheme: str = "http", path: str = "/metrics") -> set[str]:
    hosts = {f"[{host}]" if ":" in str(host) else str(host) for host in LOCAL}
    return {f"{scheme}://{host}:9400{path}" for host in hosts}


async def test_a_plain_target_is_one_url_whatever_its_name() -> None:
    targets = ("http://10.0.0.1:9400/metrics", "https://no-such-name.invalid/metrics")

    found = await addresses.resolve(targets, 5)

    assert found == addresses.Found(frozenset(targets), {})


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_name_is_every_address_it_has(scheme: str) -> None:
    found = await addresses.resolve([f"dns+{scheme}://localhost:9400/a/path?x=1"], 5)

    assert found == addresses.Found(frozenset(local_urls(scheme, "/a/path?x=1")), {})


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_an_address_is_its_own_name(host: str) -> None:
    found = await addresses.resolve([f"dns+http://{host}:9400/metrics"], 5)

    assert found.urls == {f"http://{host}:9400/metrics"}


async def test_two_names_of_one_address_are_one_exporter() -> None:
    targets = ["dns+http://localhost:9400/metrics", *local_urls()]

    assert (await addresses.resolve(targets, 5)).urls == local_urls()


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

    found = await addresses.resolve([target, "http://10.0.0.1:9400/metrics"], 5)

    assert found.urls == {"http://10.0.0.1:9400/metrics"}
    assert found.troubles.keys() == {target}
    assert words in found.troubles[target]
    assert found.troubles[target]


async def test_a_name_that_is_not_resolved_in_time_is_a_trouble() -> None:
    target = "dns+http://localhost:9400/metrics"

    found = await addresses.resolve([target], 0)

    assert found == addresses.Found(frozenset(), {target: "the name was not resolved within 0 s"})
