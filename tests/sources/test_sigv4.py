"""Requests that AWS takes: signed as they are sent, with the credentials of the moment."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from pydantic import ValidationError

from keda_gpu_scaler import errors
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources import query_client
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.telemetry import facts
from tests.cli import test_serve as serve
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer, Request
from tests.support.sigv4 import is_signed

REGION = "eu-central-1"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SECRETS = {KEY: SECRET}
WORKSPACE = "/workspaces/ws-1/api/v1/query"


def vector(names: str, signature: str) -> dict[str, str]:
    """Return the headers of a request of AWS' published test suite."""
    scope = "20150830/us-east-1/service/aws4_request"
    return {
        "host": "example.amazonaws.com",
        "x-amz-date": "20150830T123600Z",
        "content-type": "application/x-www-form-urlencoded",
        "authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}",
    }


VECTORS = {
    "get-vanilla-query-order-key-case": Request(
        "GET",
        "/?Param2=value2&Param1=value1",
        vector(
            "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        ),
        b"",
    ),
    "post-x-www-form-urlencoded": Request(
        "POST",
        "/",
        vector(
            "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        b"Param1=value1",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_the_judge_of_these_tests_takes_the_published_requests_and_no_other(name: str) -> None:
    request = VECTORS[name]
    assert is_signed(request, SECRETS, "us-east-1", "service")
    assert not is_signed(request, {KEY: "another"}, "us-east-1", "service")
    assert not is_signed(request, SECRETS, REGION, "service")
    changed = Request(request.method, request.path, request.headers, request.body + b"x")
    assert not is_signed(changed, SECRETS, "us-east-1", "service")


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
    async with HttpServer(web.says("{}")) as running:
        yield running


def settings(server: HttpServer, **given: str) -> PrometheusSettings:
    url = f"{server.url}/workspaces/ws-1"
    return PrometheusSettings.model_validate(
        {"url": url, "timeout": "20s", "sigv4_region": REGION, **given}
    )


def connected(chosen: PrometheusSettings) -> PrometheusClient:
    http = query_client.create_client(chosen)
    return PrometheusClient("default", chosen, http, facts.ignore, time.monotonic)


async def asked(server: HttpServer, namespace: str | None = None, **given: str) -> Request:
    """Send one query as the source does, and return it as it arrived."""
    chosen = settings(server, **given)
    client = connected(chosen)
    asking = client if namespace is None else client.within(namespace)
    try:
        await asking.ask('DCGM_FI_DEV_GPU_UTIL{pod=~"a b|ü+%"}', 1700000000.5)
    finally:
        await client.close()
        await web.generators_closed()
    return server.requests[-1]


@pytest.mark.usefixtures("with_keys")
async def test_a_query_is_signed_for_the_managed_prometheus_of_its_region(
    server: HttpServer,
) -> None:
    arrived = await asked(server)
    assert arrived.path == WORKSPACE
    assert arrived.form["query"] == 'DCGM_FI_DEV_GPU_UTIL{pod=~"a b|ü+%"}'
    assert is_signed(arrived, SECRETS, REGION, "aps")
    assert "x-amz-security-token" not in arrived.headers


@pytest.mark.usefixtures("with_keys")
async def test_the_namespace_in_the_url_is_signed_with_it(server: HttpServer) -> None:
    arrived = await asked(server, "team-a", namespace_parameter="ns")
    assert arrived.path == f"{WORKSPACE}?ns=team-a"
    assert is_signed(arrived, SECRETS, REGION, "aps")


@pytest.mark.usefixtures("with_keys")
async def test_headers_that_a_proxy_may_change_are_not_signed(server: HttpServer) -> None:
    arrived = await asked(server, headers="X-Scope-OrgID=team-a")
    assert arrived.headers["x-scope-orgid"] == "team-a"
    signed = arrived.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
    assert signed == "content-type;host;x-amz-date"


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


async def queries(server: HttpServer, count: int) -> list[Request]:
    """Send some queries over one client; return them as they arrived."""
    chosen = settings(server)
    client = connected(chosen)
    try:
        for _ in range(count):
            await client.ask("up", None)
    finally:
        await client.close()
        await web.generators_closed()
    return server.requests[-count:]


async def test_the_web_identity_of_a_pod_is_exchanged_once_while_its_keys_count(
    server: HttpServer, tokens: HttpServer
) -> None:
    # The service answers in the event loop of this test: signing must not hold it.
    tokens.reply = web.says(issued(1, timedelta(hours=1)), content_type="text/xml")
    arrived = await queries(server, 3)

    assert all(is_signed(one, ISSUED, REGION, "aps") for one in arrived)
    assert {one.headers["x-amz-security-token"] for one in arrived} == {"session-1"}
    (exchange,) = tokens.requests
    assert exchange.form["WebIdentityToken"] == "of-the-service-account"
    assert exchange.form["RoleArn"] == ROLE


async def test_keys_that_end_soon_are_renewed_with_the_token_of_that_moment(
    server: HttpServer, tokens: HttpServer, tmp_path: Path
) -> None:
    tokens.reply = web.says(issued(1, timedelta(minutes=5)), content_type="text/xml")
    chosen = settings(server)
    client = connected(chosen)
    try:
        await client.ask("up", None)
        (tmp_path / "token").write_text("rotated")
        tokens.reply = web.says(issued(2, timedelta(hours=1)), content_type="text/xml")
        await client.ask("up", None)
    finally:
        await client.close()
        await web.generators_closed()

    first, second = server.requests
    assert first.headers["x-amz-security-token"] == "session-1"
    assert second.headers["x-amz-security-token"] == "session-2"
    assert is_signed(second, ISSUED, REGION, "aps")
    assert tokens.requests[-1].form["WebIdentityToken"] == "rotated"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(
            web.says("<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error>"
                     "</ErrorResponse>", 403, "text/xml"),
            "AccessDenied",
            id="denied",
        ),
        pytest.param(
            web.says("<html><body>Forbidden", 403, "text/html"), "invalid XML", id="of a proxy"
        ),
    ],
)  # fmt: skip
async def test_an_exchange_that_fails_is_the_reason(
    server: HttpServer, tokens: HttpServer, reply: web.Reply, words: str
) -> None:
    tokens.reply = reply
    with pytest.raises(errors.SourceUnreachableError, match="no AWS credentials") as raised:
        await asked(server)
    assert words in str(raised.value)
    assert not server.requests


async def test_a_token_that_cannot_be_read_is_the_reason(
    server: HttpServer, tokens: HttpServer, tmp_path: Path
) -> None:
    (tmp_path / "token").unlink()
    with pytest.raises(errors.SourceUnreachableError, match="No such file"):
        await asked(server)
    assert not tokens.requests


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
                    await stub.IsActive(serve.reference())
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


@pytest.mark.parametrize("region", [REGION, "us-gov-west-1", "ap-southeast-2", "cn-north-1"])
def test_regions_are_taken(region: str) -> None:
    given = PrometheusSettings.model_validate({"url": "https://a", "sigv4_region": region})
    assert given.sigv4_region == region


@pytest.fixture
def without_botocore(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "botocore.py").write_text("raise SystemExit(70)")
    return {"PYTHONPATH": str(tmp_path)}


@pytest.mark.slow
def test_a_region_without_the_extra_is_a_wrong_setting(
    without_botocore: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "botocore.py").write_text("")  # stands in front of the library, and is none
    chosen = serve.environment(
        SCRAPE_TARGETS="", PROMETHEUS_URL="https://a", PROMETHEUS_SIGV4_REGION=REGION
    )
    done = serve.ended(chosen | without_botocore)
    assert (done.returncode, done.stdout) == (2, "")
    expected = "nothing, or the extra aws: pip install 'keda-gpu-scaler[aws]'"
    variable = "KEDA_GPU_SCALER_PROMETHEUS_SIGV4_REGION"
    assert f'{variable}: "{REGION}"; expected {expected}' in done.stderr


@pytest.mark.slow
def test_without_a_region_nothing_of_botocore_is_loaded(
    without_botocore: dict[str, str],
) -> None:
    chosen = serve.environment(SCRAPE_TARGETS="", PROMETHEUS_URL="http://127.0.0.1:1")
    with serve.started(chosen | without_botocore) as process:
        serve.said(process, "serve.listening")
