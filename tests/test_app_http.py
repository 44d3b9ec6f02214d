"""Both ports of the whole process with TLS, and the token of HTTP, as settings name them."""

import re
import ssl
from datetime import UTC, datetime
from pathlib import Path

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import LogCapture

from keda_gpu_scaler.settings import ScrapeSettings, Settings
from tests.support import certificates
from tests.support.pki import Pki
from tests.test_app import DEAD_TARGET, LOCAL, running

TOKEN = "m3trics-t0ken"
EXPIRY = 'keda_gpu_scaler_certificate_expiry_timestamp_seconds{{kind="server",server="{}"}} '


async def test_the_ports_speak_tls_and_metrics_are_for_whoever_knows_the_token(
    pki: Pki, lines: LogCapture, tmp_path: Path
) -> None:
    # Each is for the name that its port is asked under, so that a mix-up fails the handshake.
    now = datetime.now(UTC).replace(microsecond=0)
    ends = {"grpc": now + certificates.DAY, "http": now + 2 * certificates.DAY}
    grpc_leaf = pki.ca.issue_cert(certificates.HOST, not_after=ends["grpc"])
    http_leaf = pki.ca.issue_cert("127.0.0.1", not_after=ends["http"])
    grpc_pair = certificates.write(tmp_path, grpc_leaf, "grpc")
    http_pair = certificates.write(tmp_path, http_leaf, "http")
    chosen = Settings(
        grpc_address=LOCAL,
        grpc_cert_file=grpc_pair.cert,
        grpc_key_file=grpc_pair.key,
        http_address=LOCAL,
        http_cert_file=http_pair.cert,
        http_key_file=http_pair.key,
        http_token_file=pki.file("token", TOKEN.encode()),
        sources={"default": ScrapeSettings(targets=(DEAD_TARGET,))},
    )
    trusted = pki.ca.cert_pem.bytes()
    async with running(chosen) as scaler:
        ports = await scaler.ports()
        secure = grpc.ssl_channel_credentials(trusted)
        async with grpc.aio.secure_channel(f"{certificates.HOST}:{ports.grpc_port}", secure) as to:
            answer = await health_pb2_grpc.HealthStub(to).Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        async with httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{ports.http_port}",
            verify=ssl.create_default_context(cadata=trusted.decode()),
            trust_env=False,
        ) as client:
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/metrics")).status_code == 401
            page = await client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(f"http://127.0.0.1:{ports.http_port}/healthz")
    for server, end in ends.items():
        (value,) = re.findall(re.escape(EXPIRY.format(server)) + "(.+)", page.text)
        assert float(value) == end.timestamp()
    (listening,) = (line for line in lines.entries if line["event"] == "serve.listening")
    protected = ("grpc_tls", "grpc_client_ca", "http_tls", "http_token")
    assert [listening[each] for each in protected] == [True, False, True, True]
