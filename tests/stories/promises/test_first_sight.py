"""A door before a real Prometheus is shut: an installation's check says which, and what to set.

The scaler is a process with an operator's settings, and is asked what the chart's test asks. With
the setting that was named the same door lets it in.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import yaml

from testbed import charts
from testbed.prometheus import PrometheusServer
from tests.support.http_replies import HttpServer, Reply, Request, hangs, says
from tests.support.pki import Pki
from tests.support.probing import HEALTHY, failed, probing
from tests.support.serving import serving

IS_SHUT = Callable[[Request], Reply | None]
LOGIN = "<!doctype html><html><title>Sign in</title></html>"
FORBIDDEN = "Forbidden (user=system:serviceaccount:keda:reader, verb=create)"


def needs(header: str, value: str, refusal: Reply) -> IS_SHUT:
    return lambda request: None if request.headers.get(header) == value else refusal


def is_below(path: str) -> IS_SHUT:
    return lambda request: (
        None if request.path.startswith(path) else says("404 page not found\n", 404, "text/plain")
    )


@dataclass(frozen=True)
class Door:
    """What stands before Prometheus, what is set at first, and which setting opens it."""

    is_shut: IS_SHUT
    named: str
    """The setting, as it is named."""
    opened: Mapping[str, str]
    seen: str
    """What the client saw."""
    shut: Mapping[str, str] = field(default_factory=dict)
    tls: bool = False


DOORS = {
    "a CA of its own": Door(
        lambda _: None,
        "set ca_file to the CA",
        {"CA_FILE": "{ca}"},
        "TLS: certificate verify failed",
        tls=True,
    ),
    "a token": Door(
        needs("authorization", "Bearer abc", says("Unauthorized\n", 401, "text/plain")),
        "set bearer_token_file",
        {"BEARER_TOKEN": "abc"},
        "HTTP 401 with text/plain",
    ),
    "a tenant": Door(
        needs("x-scope-orgid", "gpus", says("no org id\n", 401, "text/plain")),
        "set headers to the tenant",
        {"HEADERS": "X-Scope-OrgID=gpus"},
        "HTTP 401 with text/plain instead of Prometheus' JSON: no org id",
    ),
    "an account without the right": Door(
        needs("authorization", "Bearer viewer", says(FORBIDDEN, 403, "text/plain")),
        "let the account of bearer_token_file, username or sigv4_region query it",
        {"BEARER_TOKEN": "viewer"},
        "HTTP 403 with text/plain",
        shut={"BEARER_TOKEN": "reader"},
    ),
    "a login page": Door(
        needs("authorization", "Bearer abc", says(LOGIN, 200, "text/html")),
        "set url to the API behind it, and bearer_token_file",
        {"BEARER_TOKEN": "abc"},
        "HTTP 200 with text/html",
    ),
    "a redirect to a login page": Door(
        needs("authorization", "Bearer abc", says("", 302, "text/html", location="/login")),
        "set url to the API behind it, and bearer_token_file",
        {"BEARER_TOKEN": "abc"},
        "HTTP 302 with text/html",
    ),
    "nobody who answers": Door(
        lambda _: hangs,
        "set url to an address that no NetworkPolicy and no firewall keeps",
        {"URL": "{prometheus}"},
        "no answer within 0.5 s",
        shut={"TIMEOUT": "500ms"},
    ),
    "a path of its own": Door(
        is_below("/prometheus/api/"),
        "set url to all that is before /api/v1",
        {"URL": "{door}/prometheus"},
        "HTTP 404 with text/plain",
    ),
}


def passing_to(prometheus: PrometheusServer, is_shut: IS_SHUT) -> Reply:
    async def reply(request: Request, *answer: asyncio.StreamWriter) -> None:
        refusal = is_shut(request)
        if refusal is None:
            url = prometheus.url + request.path.removeprefix("/prometheus")
            async with httpx.AsyncClient(trust_env=False) as client:
                passed = await client.post(url, data=request.form)
            refusal = says(passed.content, passed.status_code)
        await refusal(request, *answer)

    return reply


def flags_of_the_chart() -> list[str]:
    """Return what the test of the chart adds to an address, by the golden file of the defaults."""
    golden = Path(charts.GOLDEN, "default.yaml").read_text()
    (pod,) = [each for each in yaml.safe_load_all(golden) if each and each["kind"] == "Pod"]
    (container,) = pod["spec"]["containers"]
    assert container["args"][0] == "probe"
    return list(container["args"][2:])


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
async def test_the_door_that_is_shut_is_named_with_the_setting_that_opens_it(
    door: Door, prometheus: PrometheusServer, pki: Pki
) -> None:
    tls = None
    if door.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pki.ca.issue_cert("127.0.0.1").configure_cert(tls)
    async with HttpServer(passing_to(prometheus, door.is_shut), tls) as before:
        filled = {"ca": pki.ca_file, "door": before.url, "prometheus": prometheus.url}
        shut = {"URL": before.url, "STEP": "100ms", **door.shut}
        opened = {name: text.format(**filled) for name, text in door.opened.items()}
        said = await probed(shut)
        assert f"source default at {before.url}: {door.seen}" in said
        assert door.named in said
        assert await probed({**shut, "TIMEOUT": "10s", **opened}) == ""


async def probed(settings: Mapping[str, str]) -> str:
    """Return what is wrong by the chart's test with a scaler with these settings."""
    named = {f"PROMETHEUS_{name}": value for name, value in settings.items()}
    with serving(SCRAPE_TARGETS="", **named) as scaler:
        # It is no reason to end a pod, or to send it no calls.
        assert scaler.is_ready()
        result = await asyncio.to_thread(probing, scaler.grpc_port, *flags_of_the_chart())
    assert result.stdout.startswith(HEALTHY)
    return failed(result) if result.exit_code else ""
