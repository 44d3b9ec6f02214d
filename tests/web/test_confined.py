"""Tokens that show one namespace alone, over a real socket and with real files."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import httpx
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry

from keda_gpu_scaler import web
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings.tokens import OfNamespaces
from keda_gpu_scaler.telemetry.history import History
from testbed.showroom import Room
from tests.support.browsing import browsing
from tests.support.snapshots import NOW
from tests.web.test_triggers import PATH, answers

MAIN = "everything"


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    (tmp_path / "ml").write_text("of-ml\n")
    (tmp_path / "web").write_text("of-web")
    app = web.create_app(
        CollectorRegistry(),
        lambda: True,
        token=lambda: MAIN,
        shown=web.Shown(cast("Evaluator", Room(answers())), History(lambda: NOW)),
        allowed=OfNamespaces(tmp_path).allowed,
    )
    async with browsing(app) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


OWN = [
    f"{PATH}/ml",
    f"{PATH}/ml/bert",
    f"{PATH}/ml/bert/history",
    "/triggers/ml",
    "/triggers/ml/bert",
    "/static/style.css",
]
OTHERS = [
    "/",
    "/metrics",
    PATH,
    f"{PATH}/",
    f"{PATH}/web",
    f"{PATH}/ml-2",
    f"{PATH}/web/a",
    f"{PATH}/web/a/history",
    f"{PATH}/ml%2F..%2Fweb/a",
    f"{PATH}/ml/../web/a",
    f"{PATH}//web/a",
    "/triggers/web",
    "/triggers/web/a",
    "/triggers/ml%2fbert/../../web/a",
    "/nothing",
]


@pytest.mark.parametrize("path", OWN)
async def test_a_token_shows_what_is_of_its_namespace(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=bearer("of-ml"))
    assert answer.status_code == 200
    assert "web" not in answer.text.replace("-webkit", "")


@pytest.mark.parametrize("path", OTHERS)
async def test_it_shows_nothing_else(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=bearer("of-ml"))
    assert answer.status_code == 403
    assert "this token shows namespace ml alone: /api/v1/triggers/ml and below" in answer.text


async def test_the_token_of_the_port_shows_everything(client: httpx.AsyncClient) -> None:
    for path in [*OWN, PATH, "/", "/metrics", f"{PATH}/web/a"]:
        assert (await client.get(path, headers=bearer(MAIN))).status_code == 200
    assert (await client.get("/healthz")).status_code == 200


async def test_any_other_token_is_refused(client: httpx.AsyncClient) -> None:
    for token in ("of", "of-ml2"):
        assert (await client.get(f"{PATH}/ml", headers=bearer(token))).status_code == 401
