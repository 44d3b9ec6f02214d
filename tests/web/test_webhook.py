"""The webhook: what is accepted, what is refused, and with which answer."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest
from structlog.testing import LogCapture

from keda_gpu_scaler.alerts import LIMIT, AlertRecord
from keda_gpu_scaler.alerts.replicas import written_records
from keda_gpu_scaler.alerts.store import Key
from keda_gpu_scaler.telemetry.log_lines import LogObserver, Observers
from keda_gpu_scaler.telemetry.metrics import Telemetry
from tests.support.alert_messages import BERT, alert, group, of_dashboard, of_grafana
from tests.support.webhooks import Hook, serving

UNNAMED = alert(labels={"alertname": "Busy"})
NO_LABELS = (
    "- alerts[0] (Busy): no label namespace and no label scaled_object; add namespace and "
    "scaled_object, the ScaledObject's, to the labels of the rule, or send to "
    "/webhook/NAMESPACE/NAME"
)
PANEL = "GPU usage of the cluster"


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize(
    ("path", "message", "status", "lines", "sender", "firing"),
    [
        ("", group(alert()), 200, ["taken: 1"], "alertmanager", "Busy"),
        ("/ml/bert", of_dashboard(), 200, ["taken: 1"], "grafana-dashboard", PANEL),
        (
            "/ml/bert",
            of_dashboard("no_data"),
            200,
            ["taken: 0", "ignored, because they neither fire nor are resolved: 1"],
            "grafana-dashboard",
            None,
        ),
        # What can be taken is taken, and the rest is named.
        (
            "",
            of_grafana(UNNAMED, alert()),
            422,
            ["taken: 1", "not taken: 1", NO_LABELS],
            "grafana",
            "Busy",
        ),
        (
            "",
            group(alert(), truncatedAlerts=3),
            200,
            ["taken: 1", "left out by the sender (max_alerts), and so not known: 3"],
            "alertmanager",
            "Busy",
        ),
    ],
)
async def test_what_is_answered(
    path: str,
    message: dict[str, Any],
    status: int,
    lines: list[str],
    sender: str,
    firing: str | None,
    method: str,
) -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.request(method, f"/webhook{path}", json=message)
    assert (answer.status_code, answer.text.splitlines()) == (status, lines)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert hook.alerts.firing(BERT) == firing
    # Other replicas are told before the answer.
    assert hook.handed == [hook.alerts.records()]
    assert hook.notified == [(sender, status)]


async def test_of_many_that_are_not_taken_a_few_are_named() -> None:
    async with serving(Hook()) as client:
        answer = await client.post("/webhook", json=group(*[UNNAMED] * 12))
    first, second, *named, last = answer.text.splitlines()
    assert (first, second, last) == ("taken: 0", "not taken: 12", "- and 2 more")
    assert len(named) == 10


@pytest.mark.parametrize(("number", "status"), [(LIMIT, 422), (LIMIT + 1, 400)])
async def test_a_message_has_at_most_as_many_alerts_as_the_store(number: int, status: int) -> None:
    async with serving(Hook()) as client:
        answer = await client.post("/webhook", json={"alerts": [{}] * number})
    assert answer.status_code == status
    if number > LIMIT:
        assert answer.text == (
            f"expected at most {LIMIT} alerts, found {number}; "
            "group_by in Alertmanager's route makes messages smaller"
        )


async def test_a_full_book_asks_to_send_again() -> None:
    alerts = [alert(fingerprint="a"), alert(fingerprint="b"), UNNAMED]
    async with serving(Hook(limit=1)) as client:
        answer = await client.post("/webhook", json=group(*alerts))
    assert answer.status_code == 503
    lines = answer.text.splitlines()
    assert (lines[0], lines[-1]) == ("taken: 1", "not taken: 1, since 1 alerts are known already")


async def test_a_namespace_leaves_room_for_others_and_is_named() -> None:
    flood = [alert(fingerprint=f"{number}") for number in range(100)]
    async with serving(Hook(limit=100)) as client:
        full = await client.post("/webhook", json=group(*flood))
        other = await client.post("/webhook/nlp/bert", json=group(alert()))
    assert (full.status_code, other.status_code) == (503, 200)
    assert full.text.splitlines() == [
        "taken: 75",
        "not taken: 25, since namespace ml has its share of the 100 alerts, at most three quarters",
    ]


def saying(path: str, number: int) -> bytes:
    """Return a message with that many firing alerts, of a sender or of another replica."""
    if path == "/webhook":
        return msgspec.json.encode(group(*(alert(fingerprint=f"{each}") for each in range(number))))
    now = Hook().clock.now
    return written_records(
        [AlertRecord(Key(BERT, f"{each}"), "Busy", now, now) for each in range(number)]
    )


@pytest.mark.parametrize("path", ["/webhook", "/alerts"])
async def test_of_many_alerts_the_log_has_one_line_and_the_metrics_have_each(
    path: str, lines: LogCapture
) -> None:
    metrics = Telemetry(lines_dropped=lambda: 0, tasks=lambda: 0)
    hook = Hook(observe=Observers({"metrics": metrics, "log": LogObserver()}))
    async with serving(hook) as client:
        assert (await client.post(path, content=saying(path, 30))).is_success
    (line,) = [line for line in lines.entries if line["event"].startswith("alert")]
    assert (line["event"], line["firing"], line["ended"]) == ("alerts.changed", 30, 0)
    labels = {"namespace": "ml", "scaled_object": "bert"}
    assert metrics.registry.get_sample_value("keda_gpu_scaler_alerts_firing", labels) == 30


@pytest.mark.parametrize("path", ["/webhook", "/alerts"])
async def test_a_large_message_leaves_time_for_others(path: str) -> None:
    hook, number, turns, seen = Hook(limit=2_000), 1_000, 0, list[int]()

    async def other_work() -> None:
        nonlocal turns
        while len(seen) < number:
            turns += 1
            await asyncio.sleep(0)

    async with serving(hook) as client:
        with hook.alerts.listen(BERT, lambda: seen.append(turns)):
            answer, _ = await asyncio.gather(
                client.post(path, content=saying(path, number)), other_work()
            )
    assert answer.is_success
    # Between two turns of the other work no more than a hundred alerts were taken.
    assert max(Counter(seen).values()) <= 100


@pytest.mark.parametrize("path", ["/webhook", "/webhook/ml/bert", "/alerts"])
async def test_without_a_token_there_is_no_webhook_and_it_is_said_why(path: str) -> None:
    async with serving(None) as client:
        answer = await client.post(path, json=group(alert()))
    assert answer.status_code == 404
    assert "set KEDA_GPU_SCALER_WEBHOOK_TOKEN or KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE" in answer.text


NAMES = "expected the names of a namespace and of a ScaledObject, found"


@pytest.mark.parametrize(
    ("path", "message", "words"),
    [
        ("/webhook/M%20L/bert", group(alert()), f"{NAMES} M L"),
        ("/webhook/ml/Bert", group(alert()), f"{NAMES} ml"),
        # What no replica sends.
        ("/alerts", [], "expected "),
        ("/alerts", {"alerts": [1]}, "expected "),
        ("/alerts", group(alert()), "expected "),
    ],
)
async def test_what_is_no_message_is_refused(path: str, message: object, words: str) -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.post(path, json=message)
    assert answer.status_code == 400
    assert answer.text.startswith(words)
    assert hook.alerts.records() == []
