"""The HTTP port of the whole process with TLS and a token, as settings name them."""

import ssl

import httpx
import pytest
from structlog.testing import LogCapture

from keda_gpu_scaler.settings import ScrapeSettings, Settings
from tests.support import certificates
from tests.support.pki import Pki
from tests.test_app import DEAD_TARGET, LOCAL, running

TOKEN = "m3trics-t0ken"  # noqa: S105 - no secret
EXPIRY = 'keda_gpu_scaler_certificate_expiry_timestamp_seconds{kind="server",server="http"} '


def settings(pki: Pki) -> Settings:
    cert, key = pki.pair(pki.ca.issue_cert(certificates.HOST))
    return Settings(
        grpc_address=LOCAL,
        http_address=LOCAL,
        http_cert_file=cert,
        http_key_file=key,
        http_token_file=pki.file("token", TOKEN.encode()),
        sources={"default": ScrapeSettings(targets=(DEAD_TARGET,))},
    )


def browser(port: int, pki: Pki) -> httpx.AsyncClient:
    """Return a client that trusts the first CA, and connects anew for each request."""
    context = ssl.create_default_context(cafile=pki.ca_file)
    return httpx.AsyncClient(
        base_url=f"https://{certificates.HOST}:{port}",
        verify=context,
        trust_env=False,
        headers={"connection": "close"},
    )


@pytest.mark.usefixtures("lines")
async def test_the_port_speaks_https_and_shows_metrics_to_whoever_knows_the_token(pki: Pki) -> None:
    async with running(settings(pki)) as scaler:
        port = (await scaler.ports()).http_port
        async with browser(port, pki) as client:
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/metrics")).status_code == 401
            page = await client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        async with httpx.AsyncClient(trust_env=False) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(f"http://127.0.0.1:{port}/healthz")
    assert page.status_code == 200
    assert EXPIRY in page.text


async def test_a_certificate_that_rotates_is_shown_to_the_next(pki: Pki, lines: LogCapture) -> None:
    async with (
        running(settings(pki)) as scaler,
        browser((await scaler.ports()).http_port, pki) as client,
    ):
        assert (await client.get("/healthz")).status_code == 200
        pki.pair(pki.other.issue_cert(certificates.HOST))
        with pytest.raises(httpx.ConnectError, match="unable to get local issuer certificate"):
            await client.get("/healthz")
        pki.pair(pki.ca.issue_cert(certificates.HOST))
        assert (await client.get("/healthz")).status_code == 200
    (listening,) = (line for line in lines.entries if line["event"] == "serve.listening")
    protected = ("grpc_tls", "grpc_client_ca", "http_tls", "http_token")
    assert [listening[each] for each in protected] == [False, False, True, True]
    loaded = [line for line in lines.entries if line["event"] == "certificate.loaded"]
    assert [line["server"] for line in loaded] == ["http"] * 3
