"""A whole process that observes triggers, and shows them to a namespace: files in, HTTP out."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import LogCapture

from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.settings import ScrapeSettings, Settings
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access
from keda_gpu_scaler.workbench.observing import Observing
from tests.support import http_replies as web
from tests.test_app import LOCAL, SAMPLES, browser, running
from tests.workbench.observing.test_manifests import written

MAIN = {"authorization": "Bearer everything"}
OF_ML = {"authorization": "Bearer of-ml"}
API = "/api/v1/triggers"


@pytest.fixture
def observed(tmp_path: Path) -> Path:
    folder = tmp_path / "observed"
    folder.mkdir()
    (folder / "bert.yaml").write_text(written() + "---\n" + written("wrong", threshold="x"))
    return folder


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    folder = tmp_path / "tokens"
    folder.mkdir()
    (folder / "ml").write_text("of-ml")
    return folder


async def test_a_folder_of_scaled_objects_is_shown_and_nothing_can_ask_for_it(
    lines: LogCapture, observed: Path, tokens: Path
) -> None:
    async with web.HttpServer(web.says(SAMPLES, content_type="text/plain")) as exporter:
        chosen = Settings(
            http_address=LOCAL,
            http_token=SecretStr("everything"),
            http_namespace_tokens=tokens,
            sources={"default": ScrapeSettings(targets=(exporter.url,))},
        )

        def asking(
            access: Access, evaluator: Evaluator, observe: facts.Observer
        ) -> Coroutine[None, None, None]:
            return Observing(observed, access=access, evaluator=evaluator, observe=observe).run()

        async with running(chosen, asking) as scaler:
            ports = await scaler.ports()
            assert ports.grpc_port == 0
            async with browser(ports.http_port) as client:
                found: list[dict[str, object]] = []
                while not found or found[0]["active"] is not True:  # the test's limit ends it
                    found = (await client.get(API, headers=MAIN)).json()["triggers"]
                    await asyncio.sleep(0)
                assert [one["scaled_object"] for one in found] == ["ml/bert"]
                assert (await client.get(f"{API}/ml/bert", headers=OF_ML)).status_code == 200
                assert (await client.get(API, headers=OF_ML)).status_code == 403
                history = (await client.get(f"{API}/ml/bert/history", headers=OF_ML)).json()
                assert history["changes"][-1]["active"] is True
                metrics = (await client.get("/metrics", headers=MAIN)).text
                assert 'trigger_active{metric="gpu-utilization",namespace="ml"' in metrics
                assert (await client.get("/readyz")).status_code == 200
        await web.generators_closed()
    (refused,) = (line for line in lines.entries if line["event"] == "observe.refused")
    assert (refused["file"], refused["line"]) == ("bert.yaml", 29)
