"""What to set is said with an error: of real connections, and of what servers are known to say.

Real doors are in `tests/stories/promises/test_first_sight.py`.
"""

import ssl
from pathlib import Path

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources import cures
from testbed.processes import free_port
from tests.support.http_replies import HttpServer, hangs
from tests.support.pki import Pki
from tests.support.prometheus_source import connected


async def failure(url: str, ca_file: Path | None = None) -> str:
    async with connected(url, ca_file=ca_file) as source:
        with pytest.raises(errors.SourceError) as failed:
            await source.synchronize()
    return str(failed.value)


async def test_what_is_wrong_with_a_connection_names_the_setting(pki: Pki) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pki.ca.issue_cert("elsewhere.example").configure_cert(tls)
    assert "; set url to an address and a port" in await failure(f"http://127.0.0.1:{free_port()}")
    assert "; set url to a name that has an address" in await failure("http://no-such.invalid")
    async with HttpServer(hangs, tls) as secure:
        assert "; set url to a name in its certificate" in await failure(secure.url, pki.ca_file)


IN_JSON = "instead of Prometheus' JSON: "


@pytest.mark.parametrize(
    ("seen", "setting"),
    [
        (f"HTTP 401 with text/plain {IN_JSON}no org id", "headers"),
        ("TLS: wrong version number", "http://"),
        ("TLS: record layer failure", "http://"),
        ("TLS: tlsv13 alert certificate required", "cert_file"),
        ('HTTP 400, bad_data: parse error: {tenant="a"}', None),
        ("HTTP 401, unauthorized: wrong tenant", "headers"),
        ("HTTP 401: unable to parse authentication credentials", "bearer_token_file"),
        (
            'HTTP 400, prom-label-proxy: The "namespace" query parameter must be provided.',
            "namespace_parameter",
        ),
        (
            f"HTTP 400 with text/plain {IN_JSON}Client sent an HTTP request to an HTTPS server.",
            "https://",
        ),
        (f"HTTP 307 with text/html {IN_JSON}", "url"),
        ("HTTP 422, execution: HTTP 401 and HTTP 403 are no metrics", None),
        ("HTTP 503 with text/html instead of Prometheus' JSON: connection refused", None),
        ("an answer of more than 5 bytes", None),
    ],
)
def test_what_servers_say_names_the_setting_if_one_is_wrong(seen: str, setting: str | None) -> None:
    text = cures.with_cure(seen)
    assert text.startswith(seen)
    assert (setting is None) is (text == seen)
    assert (setting or "") in text.removeprefix(seen)


def test_a_query_of_a_users_own_may_be_what_fails() -> None:
    for seen, cure in {
        "no answer within 2 s": "make the query cheaper",
        "HTTP 403, forbidden: no": "query what the source's account may read",
        "HTTP 401, unauthorized: no": "set bearer_token_file",
    }.items():
        assert f"{seen}; {cure}" in cures.with_cure(seen, is_own=True)


async def test_a_demand_query_that_is_too_slow_is_to_be_cheaper() -> None:
    async with HttpServer(hangs) as server, connected(server.url, timeout="500ms") as source:
        with pytest.raises(errors.SourceTimeoutError, match="make the query cheaper"):
            await source.number("sum(waiting)")
