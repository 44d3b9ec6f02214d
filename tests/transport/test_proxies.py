"""The proxies that an environment names: what httpx cannot use is said, and all else is used."""

import os
import ssl
from collections.abc import Mapping

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from keda_gpu_scaler.transport import proxies

SECRET = "s3cr3t-of-the-test"  # noqa: S105 - guards nothing
NAMES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
SPARED = ("NO_PROXY", "no_proxy")
TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Made once: it takes longer than all else here."""


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        pytest.param({"ALL_PROXY": "socks://proxy:1080"}, ["ALL_PROXY: socks://…"], id="socks"),
        pytest.param({"https_proxy": "socks5h://a:1"}, ["https_proxy: socks5h://…"], id="socks5h"),
        pytest.param({"HTTP_PROXY": "ftp://proxy"}, ["HTTP_PROXY: ftp://…"], id="ftp"),
        pytest.param({"HTTP_PROXY": "proxy:http"}, ["HTTP_PROXY: http://…"], id="port"),
        pytest.param({"HTTP_PROXY": "http://"}, ["HTTP_PROXY: http://…"], id="no host"),
        pytest.param({"NO_PROXY": ".svc,fd00::/8"}, ['NO_PROXY: "fd00::/8"'], id="network"),
        pytest.param({"no_proxy": "[fd00::1]"}, ['no_proxy: "[fd00::1]"'], id="brackets"),
        pytest.param(
            {"ALL_PROXY": "socks://a", "NO_PROXY": "[::1]"},
            ["ALL_PROXY: socks://…", 'NO_PROXY: "[::1]"'],
            id="two",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_its_variable(
    environ: Mapping[str, str], named: list[str]
) -> None:
    found = proxies.mistakes(environ)
    assert [one.partition(";")[0] for one in found] == named


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HTTP_PROXY": "http://proxy:3128", "HTTPS_PROXY": "https://user:pass@proxy"},
        {"HTTP_PROXY": "proxy:3128", "NO_PROXY": "localhost, .svc,10.0.0.0/8,fd00::1,[x"},
        {"ALL_PROXY": "socks://proxy:1080", "NO_PROXY": "a,*"},
        {"HTTP_PROXY": "socks://proxy:1080", "http_proxy": "http://proxy:3128"},
        {"HTTP_PROXY": "socks://proxy:1080", "http_proxy": ""},
        {"TRAVIS_APT_PROXY": "socks://proxy:1080"},
    ],
)
def test_what_can_be_used_or_does_not_count_is_no_mistake(environ: Mapping[str, str]) -> None:
    assert proxies.mistakes(environ) == []


def test_the_password_of_a_proxy_is_not_shown() -> None:
    for value in (
        f"socks://user:{SECRET}@proxy",
        f"user:{SECRET}@proxy:http",
        f"http://{SECRET}@",
        f"{SECRET}@socks://proxy",
    ):
        (shown,) = proxies.mistakes({"HTTP_PROXY": value})
        assert SECRET not in shown
    (shown,) = proxies.mistakes({"NO_PROXY": f"user:{SECRET}@host:bad"})
    assert SECRET not in shown


VALUES = st.one_of(
    st.sampled_from(
        ["", "*", "http://", "https://p:1", "socks5://p", "p:3128", "//p", "http:p", "::1", "a,*"]
    ),
    st.text(st.sampled_from("htps:/.@[]*,% é1a0"), max_size=12),
    st.builds("{}://{}".format, st.sampled_from(["http", "all", "socks5", ""]), st.text("a:1[]@/")),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"NO_PROXY": "fd00::/8"})
@example({"HTTP_PROXY": "http:p"})
@given(st.dictionaries(st.sampled_from(NAMES + SPARED), VALUES, max_size=3))
def test_whatever_httpx_cannot_use_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    with monkeypatch.context() as changed:
        for name in [one for one in os.environ if one.lower().endswith("_proxy")]:
            changed.delenv(name)
        for name, value in environ.items():
            changed.setenv(name, value)
        try:
            assert httpx.AsyncClient(verify=TRUST).trust_env
        except (ValueError, ImportError, httpx.InvalidURL):
            assert proxies.mistakes(environ)
