"""Requests that AWS takes: signed as they are sent, with the credentials of the moment."""

import asyncio
import dataclasses
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from pydantic import ValidationError

from keda_gpu_scaler import errors
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from testbed.triggers import reference
from tests.support import http_replies as web
from tests.support import serving as serve
from tests.support.http_replies import HttpServer, Request
from tests.support.prometheus_source import connected

REGION = "eu-central-1"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SECRETS = {KEY: SECRET}
WORKSPACE = "/workspaces/ws-1/api/v1/query"


def is_signed(request: Request, secrets: Mapping[str, str]) -> bool:
    """Tell whether botocore computes the same signature for a request as it arrived."""
    _, parts = request.headers["authorization"].split(" ", 1)
    given = dict(part.split("=", 1) for part in parts.split(", "))
    key = given["Credential"].partition("/")[0]
    signed = given["SignedHeaders"].split(";")
    url = f"http://{request.headers['host']}{request.path}"
    headers = {name: request.headers[name] for name in signed}
    arrived = AWSRequest(request.method, url, headers, request.body)
    arrived.context["timestamp"] = request.headers["x-amz-date"]
    auth = SigV4Auth(Credentials(key, secrets[key]), "aps", REGION)
    text = auth.string_to_sign(arrived, auth.canonical_request(arrived))
    return bool(auth.signature(text, arrived) == given["Signature"])


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Leave nothing of AWS in the environment but what a test sets."""
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


@pytest.fixture
def with_keys(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_ACCESS_KEY_ID", KEY)
    aws.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.api("vector", [])) as running:
        yield running


@asynccontextmanager
async def signing(
    server: HttpServer,
    **given: Any,
) -> AsyncIterator[PrometheusSource]:
    """Yield a source on a workspace of the managed Prometheus."""
    url = f"{server.url}/workspaces/ws-1"
    async with connected(url, timeout="20s", sigv4_region=REGION, **given) as source:
        yield source


async def asked(server: HttpServer) -> Request:
    """Send one query, and return it as it arrived."""
    async with signing(server) as source:
        await source.number("up")
    return server.requests[-1]


@pytest.mark.usefixtures("with_keys")
async def test_a_query_is_signed_for_the_managed_prometheus_of_its_region(
    server: HttpServer,
) -> None:
    text = 'sum(DCGM_FI_DEV_GPU_UTIL{pod=~"a b|ü+%"})'
    async with signing(server, namespace_parameter="ns", headers="X-Scope-OrgID=a") as source:
        numbers = source.ports().within("team-a").numbers
        assert numbers is not None
        await numbers.number(text)
    (arrived,) = server.requests
    assert arrived.path == f"{WORKSPACE}?ns=team-a"
    assert arrived.form["query"] == text
    assert is_signed(arrived, SECRETS)
    assert not is_signed(dataclasses.replace(arrived, body=arrived.body + b"x"), SECRETS)
    assert "x-amz-security-token" not in arrived.headers
    assert f"/{REGION}/aps/" in arrived.headers["authorization"]
    # A proxy may change all others.
    assert arrived.headers["x-scope-orgid"] == "a"
    assert "SignedHeaders=content-type;host;x-amz-date," in arrived.headers["authorization"]


@pytest.mark.usefixtures("aws")
async def test_without_credentials_the_source_is_unreachable_and_says_why(
    server: HttpServer,
) -> None:
    expected = "no AWS credentials to sign with: Unable to locate credentials"
    with pytest.raises(errors.SourceUnreachableError, match=expected):
        await asked(server)
    assert not server.requests


# The web identity of a service account


ROLE = "arn:aws:iam::111122223333:role/keda-gpu-scaler"


def issued(number: int, lasts: timedelta) -> str:
    """Return what the Security Token Service answers: keys that differ by their number."""
    ends = (datetime.now(UTC) + lasts).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
      <AssumeRoleWithWebIdentityResult>
        <Credentials>
          <AccessKeyId>ASIA{number}</AccessKeyId>
          <SecretAccessKey>secret-{number}</SecretAccessKey>
          <SessionToken>session-{number}</SessionToken>
          <Expiration>{ends}</Expiration>
        </Credentials>
      </AssumeRoleWithWebIdentityResult>
    </AssumeRoleWithWebIdentityResponse>"""


ISSUED = {f"ASIA{number}": f"secret-{number}" for number in range(1, 9)}


@pytest_asyncio.fixture
async def tokens(aws: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[HttpServer]:
    """The Security Token Service, and what a cluster puts into the environment of a pod."""
    async with HttpServer(web.closes) as running:
        token = tmp_path / "token"
        token.write_text("of-the-service-account")
        aws.setenv("AWS_ENDPOINT_URL_STS", running.url)
        aws.setenv("AWS_ROLE_ARN", ROLE)
        aws.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
        yield running


async def test_the_web_identity_of_a_pod_is_exchanged_when_its_keys_end_soon_and_not_before(
    server: HttpServer, tokens: HttpServer, tmp_path: Path
) -> None:
    # The service answers in the event loop of this test: signing must not hold it.
    tokens.reply = web.says(issued(1, timedelta(minutes=5)), content_type="text/xml")
    async with signing(server) as source:
        await source.number("up")
        (tmp_path / "token").write_text("rotated")
        tokens.reply = web.says(issued(2, timedelta(hours=1)), content_type="text/xml")
        for _ in range(3):
            await source.number("up")

    assert all(is_signed(one, ISSUED) for one in server.requests)
    sessions = [one.headers["x-amz-security-token"] for one in server.requests]
    assert sessions == ["session-1", *["session-2"] * 3]
    forms = [one.form for one in tokens.requests]
    assert [form["WebIdentityToken"] for form in forms] == ["of-the-service-account", "rotated"]
    assert forms[0]["RoleArn"] == ROLE


@pytest.mark.slow
async def test_credentials_that_never_come_do_not_keep_the_process(
    aws: pytest.MonkeyPatch, server: HttpServer
) -> None:
    """Each byte of them comes in time, so botocore waits on, in a thread."""
    async with HttpServer(web.drips) as credentials:
        aws.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{credentials.url}/v1/credentials")
        source = {"PROMETHEUS_URL": server.url, "PROMETHEUS_SIGV4_REGION": REGION}
        with serve.started(serve.environment(SCRAPE_TARGETS="", **source)) as process:
            ports = await asyncio.to_thread(serve.said, process, "serve.listening")
            async with grpc.aio.insecure_channel(f"127.0.0.1:{ports['grpc_port']}") as channel:
                stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
                with pytest.raises(grpc.aio.AioRpcError):
                    await stub.IsActive(reference())
            assert credentials.requests
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, serve.PATIENCE_SECONDS) == 0
    assert not server.requests


# Settings


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"sigv4_region": "Frankfurt"}, "String should match pattern"),
        ({"sigv4_region": REGION, "bearer_token": "t"}, "no bearer_token beside it"),
        ({"sigv4_region": REGION, "username": "u", "password": "p"}, "no username beside it"),
    ],
)
def test_a_region_is_a_region_and_the_only_credential(
    given: Mapping[str, str], expected: str
) -> None:
    with pytest.raises(ValidationError, match=expected):
        PrometheusSettings.model_validate({"url": "https://a", **given})


@pytest.mark.slow
def test_a_region_without_the_extra_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "botocore.py").write_text("")  # stands in front of the library, and is none
    chosen = serve.environment(
        SCRAPE_TARGETS="", PROMETHEUS_URL="https://a", PROMETHEUS_SIGV4_REGION=REGION
    )
    done = serve.ended(chosen | {"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    expected = "nothing, or the extra aws: pip install 'keda-gpu-scaler[aws]'"
    variable = "KEDA_GPU_SCALER_PROMETHEUS_SIGV4_REGION"
    assert f'{variable}: "{REGION}"; expected {expected}' in done.stderr
