"""Which clients may read the pages of the HTTP port, over real sockets."""

import base64
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import CollectorRegistry, Gauge

from keda_gpu_scaler import errors, web
from tests.support.alert_messages import alert, group
from tests.support.browsing import browsing
from tests.support.webhooks import TOKEN as WEBHOOK_TOKEN
from tests.support.webhooks import Hook

TOKEN = "m3trics-t0ken"  # noqa: S105 - no secret
HOW = "Authorization: Bearer …, or as a Basic password"
BASIC = base64.b64encode(f"prometheus:{TOKEN}".encode()).decode()


class Rotating:
    """A token that changes, or cannot be read."""

    def __init__(self) -> None:
        self.now: str | None = TOKEN

    def __call__(self) -> str:
        """Return it."""
        if self.now is None:
            raise errors.SettingsError("the HTTP port's token file cannot be read: gone")
        return self.now


@asynccontextmanager
async def serving(token: Callable[[], str] | None) -> AsyncIterator[httpx.AsyncClient]:
    """Serve every page with this token, and give a client that knows none."""
    registry, hook = CollectorRegistry(), Hook()
    Gauge("answer_ratio", "Of everything.", registry=registry).set(42)
    stands_on = web.Webhook(hook.alerts, hook.secret, hook.broadcast, hook.seen.append)
    app = web.create_app(registry, lambda: True, stands_on, token)
    async with browsing(app) as client:
        yield client


def knowing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_a_client_with_the_token_reads_the_metrics() -> None:
    async with serving(Rotating()) as client:
        for header in (f"Bearer {TOKEN}", f"bearer  {TOKEN}", f"Basic {BASIC}", f"BASIC {BASIC}"):
            answer = await client.get("/metrics", headers={"authorization": header})
            assert answer.status_code == 200, header
            assert "answer_ratio 42.0" in answer.text


async def test_without_the_token_every_page_is_refused_if_it_exists_or_not(
    subtests: pytest.Subtests,
) -> None:
    headers = ("", TOKEN, "Bearer wrong", f"Bearer {WEBHOOK_TOKEN}")
    paths = ("/metrics", "/", "/no/such/page", "//metrics", "/healthz/")
    async with serving(Rotating()) as client:
        for path, header in itertools.product(paths, headers):
            url = str(client.base_url).rstrip("/") + path
            answer = await client.get(url, headers={"authorization": header})
            with subtests.test(f"{path} {header}"):
                assert answer.status_code == 401
                assert answer.text == f"expected the HTTP port's token: {HOW}"
                assert answer.headers["www-authenticate"].startswith("Bearer, Basic realm=")
                assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_the_webhook_and_other_replicas_keep_their_own_token() -> None:
    async with serving(Rotating()) as client:
        for token, webhook, replica in ((WEBHOOK_TOKEN, 200, 200), (TOKEN, 401, 401)):
            headers = knowing(token)
            hooked = await client.post("/webhook", json=group(alert()), headers=headers)
            alerts = await client.get("/alerts", headers=headers)
            assert (hooked.status_code, alerts.status_code) == (webhook, replica)


async def test_a_token_counts_from_the_next_request_on_and_nobody_is_let_in_without_one() -> None:
    token = Rotating()
    async with serving(token) as client:
        token.now = "another"
        old = await client.get("/metrics", headers=knowing(TOKEN))
        new = await client.get("/metrics", headers=knowing("another"))
        token.now = None
        none = await client.get("/metrics", headers=knowing("another"))
        assert (await client.get("/healthz")).status_code == 200
    assert (old.status_code, new.status_code, none.status_code) == (401, 200, 503)
    assert none.text == "the HTTP port's token file cannot be read: gone"
