"""The proxies that an environment names: which request goes through which, and what none can."""

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from keda_gpu_scaler.transport import proxies

NAMES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
SPARED = ("NO_PROXY", "no_proxy")
TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Made once: it takes longer than all else here."""


@contextmanager
def environment(monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str]) -> Iterator[None]:
    """Have these variables in the environment, without other proxies."""
    with monkeypatch.context() as changed:
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            changed.delenv(name)
        for name, value in environ.items():
            changed.setenv(name, value)
        yield


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ({"HTTP_PROXY": "user:pw@p:1"}, "http://user:pw@p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, None),
        ({"ALL_PROXY": "https://p:1"}, "https://p:1"),
        ({"ALL_PROXY": "http://p:1", "HTTP_PROXY": "http://q:1"}, "http://q:1"),
        ({"HTTP_PROXY": "http://p:1", "http_proxy": "http://q:1"}, "http://q:1"),
        ({"HTTP_PROXY": "http://p:1", "http_proxy": ""}, None),
    ],
)
def test_the_scheme_of_a_url_decides_its_proxy(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], expected: str | None
) -> None:
    with environment(monkeypatch, environ):
        assert proxies.of("http://prometheus:9090") == expected


SPARED_HOSTS = {
    *(("*", "a"), ("A.svc", "a.svc"), ("svc", "a.svc"), (".svc", "a.svc"), ("a:9090", "a")),
    *(("10.0.0.1", "10.0.0.1"), ("x, 10.1.2.3/8", "10.9.9.9"), ("fd00::1", "[fd00::1]")),
    *(("[fd00::1]", "[fd00::1]"), ("fd00::/8", "[fd00::1]")),
}
OTHER_HOSTS = {
    *(("", "a"), ("b", "a"), ("svc", "a.xsvc"), ("a:9091", "a"), ("10.0.0.0/8", "11.0.0.1")),
    *(("10.0.0.0/8", "a"), ("fd00::/8", "[fe00::1]"), ("10.0.0.0/8", "[fd00::1]")),
}


def test_no_proxy_spares_names_addresses_and_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    for entries, host in SPARED_HOSTS | OTHER_HOSTS:
        environ = {"ALL_PROXY": "http://p:1", "NO_PROXY": entries}
        expected = None if (entries, host) in SPARED_HOSTS else "http://p:1"
        with environment(monkeypatch, environ):
            assert proxies.of(f"http://user@{host}:9090/path") == expected, (entries, host)


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"ALL_PROXY": "socks://proxy:1080"}, ["ALL_PROXY: socks://…"]),
        ({"https_proxy": "socks5h://a:1"}, ["https_proxy: socks5h://…"]),
        ({"HTTP_PROXY": "ftp://proxy"}, ["HTTP_PROXY: ftp://…"]),
        ({"HTTP_PROXY": "proxy:http"}, ["HTTP_PROXY: http://…"]),
        ({"HTTP_PROXY": "http://"}, ["HTTP_PROXY: http://…"]),
        (
            {"ALL_PROXY": "socks://a", "http_proxy": "ftp://b"},
            ["ALL_PROXY: socks://…", "http_proxy: ftp://…"],
        ),
        ({"ALL_PROXY": "socks://proxy:1080", "NO_PROXY": "*"}, []),
        ({"HTTP_PROXY": "socks://a", "http_proxy": "http://a"}, []),
        ({"TRAVIS_APT_PROXY": "socks://proxy:1080"}, []),
        # A password is not shown.
        ({"HTTP_PROXY": "socks://user:password@proxy"}, ["HTTP_PROXY: socks://…"]),
        ({"HTTP_PROXY": "user:password@proxy:http"}, ["HTTP_PROXY: http://…"]),
        ({"HTTP_PROXY": "http://password@"}, ["HTTP_PROXY: http://…"]),
        ({"HTTP_PROXY": "password@socks://proxy"}, ["HTTP_PROXY: socks://…"]),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], named: list[str]
) -> None:
    with environment(monkeypatch, environ):
        mistakes = proxies.mistakes()
    assert [mistake.partition(";")[0] for mistake in mistakes] == named
    assert "password" not in str(mistakes)


VALUES = st.one_of(
    st.sampled_from(
        ["", "*", "http://", "https://p:1", "socks5://p", "p:3128", "//p", "http:p", "::1", "a,*"]
    ),
    st.text(st.sampled_from("htps:/.@[]*,% é1a0"), max_size=12),
    st.builds("{}://{}".format, st.sampled_from(["http", "all", "socks5", ""]), st.text("a:1[]@/")),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"NO_PROXY": "fd00::/8"}, "http://[fd00::1]")
@example({"HTTP_PROXY": "http:p"}, "http://a")
@given(
    st.dictionaries(st.sampled_from(NAMES + SPARED), VALUES, max_size=3),
    st.sampled_from(["http://a", "https://10.0.0.1:9090", "http://[::1]:1", "http://[::1"]),
)
def test_whatever_httpx_cannot_use_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str
) -> None:
    with environment(monkeypatch, environ):
        try:
            httpx.AsyncClient(verify=TRUST, proxy=proxies.of(url), trust_env=False)
        except (ValueError, ImportError, httpx.InvalidURL):
            assert proxies.mistakes()
