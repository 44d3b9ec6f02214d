"""Sources behind an HTTP proxy that the environment names, with a real one on a real socket."""

import os
import ssl
from pathlib import Path

import pytest
import trustme

from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.sources.scrape.source import fetch_page
from tests.support import http_replies as web
from tests.support import serving as serve
from tests.support.forward_proxy import ForwardProxy
from tests.support.http_replies import HttpServer
from tests.support.prometheus_source import connected

HOST = "prometheus.monitoring.invalid"
"""A name that only the proxy can lead anywhere."""

TOKEN = "of-the-source"


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Leave no proxy in the environment but those of a test."""
    for name in [variable for variable in os.environ if variable.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    return monkeypatch


async def test_queries_go_through_the_proxy_of_http_which_alone_gets_its_user(
    environ: pytest.MonkeyPatch,
) -> None:
    async with (
        HttpServer(web.api("vector", [])) as server,
        ForwardProxy({(HOST, 9090): server.port}) as proxy,
    ):
        environ.setenv("HTTP_PROXY", proxy.url.replace("//", "//Aladdin:open%20sesame@"))
        async with connected(f"http://{HOST}:9090", bearer_token=TOKEN) as asking:
            assert await asking.number("up") is None

    assert proxy.requests == [f"POST http://{HOST}:9090/api/v1/query HTTP/1.1"]
    assert proxy.credentials == ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]
    assert server.requests[0].form["query"] == "up"
    assert server.requests[0].headers["host"] == f"{HOST}:9090"
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


async def test_queries_over_tls_go_through_a_tunnel_of_the_proxy_of_https(
    environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    async with (
        HttpServer(web.api("vector", []), tls=context) as secured,
        ForwardProxy({(HOST, 443): secured.port}) as proxy,
    ):
        environ.setenv("HTTPS_PROXY", proxy.url)
        async with connected(f"https://{HOST}", ca_file=tmp_path / "ca.pem") as asking:
            assert await asking.number("up") is None

    assert proxy.requests == [f"CONNECT {HOST}:443 HTTP/1.1"]
    assert secured.requests[0].form["query"] == "up"


async def test_exporters_are_scraped_through_the_proxy_unless_they_are_spared(
    environ: pytest.MonkeyPatch,
) -> None:
    page = (
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",exported_namespace="ml",exported_pod="a"} 50\n'
    )
    async with (
        HttpServer(web.says(page, content_type="text/plain")) as exporters,
        ForwardProxy({("127.0.0.1", exporters.port): exporters.port}) as proxy,
    ):
        environ.setenv("ALL_PROXY", proxy.url)
        target = f"{exporters.url}/metrics"
        for spared in ("", "127.0.0.0/8"):
            environ.setenv("NO_PROXY", spared)
            settings = ScrapeSettings(targets=(target,))
            assert await fetch_page(target, settings, ssl.create_default_context()) == page

        assert len(exporters.requests) == 2
        assert proxy.requests == [f"GET {target} HTTP/1.1"]


# A proxy that cannot be used


@pytest.mark.slow
def test_a_proxy_that_cannot_be_used_ends_the_process_with_2_and_its_variable() -> None:
    wrong = {"ALL_PROXY": "socks://user:hunter2@proxy:1080", "HTTP_PROXY": "", "http_proxy": ""}
    done = serve.ended(serve.environment(LOG_LEVEL="loud") | wrong)
    assert (done.returncode, done.stdout) == (2, "")
    heading, *mistakes = done.stderr.strip().splitlines()
    assert heading == "keda-gpu-scaler: 2 mistakes in the process settings:"
    assert mistakes[0].startswith("- KEDA_GPU_SCALER_LOG_LEVEL: ")
    assert mistakes[1].startswith("- ALL_PROXY: socks://…; expected an HTTP proxy")
    assert "hunter2" not in done.stderr
