"""The webhook: what is accepted, what is refused, and with which answer."""

import pytest

from keda_gpu_scaler.alerts import LIMIT
from tests.support.alert_messages import BERT, alert, group, of_dashboard, of_grafana
from tests.support.webhooks import Hook, serving

UNNAMED = alert(labels={"alertname": "Busy"})


async def test_an_alert_fires_from_the_answer_on_and_is_handed_on_before_it() -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.post("/webhook", json=group(alert()))
    assert (answer.status_code, answer.text) == (200, "taken: 1\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert hook.alerts.firing(BERT) == "Busy"
    assert hook.handed == [hook.alerts.records()]
    assert hook.notified == [("alertmanager", 200)]


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_grafana_sends_either_way_to_the_path_of_an_object(method: str) -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.request(method, "/webhook/ml/bert", json=of_dashboard())
        said_nothing = await client.request(
            method, "/webhook/ml/bert", json=of_dashboard("no_data")
        )
    assert answer.status_code == 200
    assert said_nothing.text == "taken: 0\nignored, because they neither fire nor are resolved: 1\n"
    assert hook.alerts.firing(BERT) == "GPU usage of the cluster"
    assert hook.notified == [("grafana-dashboard", 200)] * 2


async def test_what_can_be_taken_is_taken_and_the_rest_is_named() -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.post("/webhook", json=of_grafana(UNNAMED, alert()))
    assert answer.status_code == 422
    assert answer.text.splitlines() == [
        "taken: 1",
        "not taken: 1",
        (
            "- alerts[0] (Busy): no label namespace and no label scaled_object; add namespace and "
            "scaled_object, the ScaledObject's, to the labels of the rule, or send to "
            "/webhook/NAMESPACE/NAME"
        ),
    ]
    assert hook.alerts.firing(BERT) == "Busy"
    assert len(hook.handed) == 1
    assert hook.notified == [("grafana", 422)]


async def test_of_many_that_are_not_taken_a_few_are_named() -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.post("/webhook", json=group(*[UNNAMED] * 12))
    lines = answer.text.splitlines()
    assert (len(lines), lines[0], lines[1], lines[-1]) == (
        13,
        "taken: 0",
        "not taken: 12",
        "- and 2 more",
    )


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


async def test_what_the_sender_left_out_is_said() -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.post("/webhook", json=group(alert(), truncatedAlerts=3))
    left_out = "left out by the sender (max_alerts), and so not known: 3"
    assert (answer.status_code, answer.text) == (200, f"taken: 1\n{left_out}\n")


async def test_a_full_book_asks_to_send_again() -> None:
    hook = Hook(limit=1)
    alerts = [alert(fingerprint="a"), alert(fingerprint="b"), UNNAMED]
    async with serving(hook) as client:
        answer = await client.post("/webhook", json=group(*alerts))
    assert answer.status_code == 503
    lines = answer.text.splitlines()
    assert (lines[0], lines[-1]) == ("taken: 1", "not taken: 1, since 1 alerts are known already")


@pytest.mark.parametrize("path", ["/webhook", "/webhook/ml/bert", "/alerts"])
async def test_without_a_token_there_is_no_webhook_and_it_is_said_why(path: str) -> None:
    async with serving(None) as client:
        answer = await client.post(path, json=group(alert()))
    assert answer.status_code == 404
    assert "set KEDA_GPU_SCALER_WEBHOOK_TOKEN or KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE" in answer.text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "/webhook/M%20L/bert",
            "expected the names of a namespace and of a ScaledObject, found M L",
        ),
        ("/webhook/ml/Bert", "expected the names of a namespace and of a ScaledObject, found ml"),
    ],
)
async def test_a_path_that_names_no_object_is_refused(path: str, words: str) -> None:
    async with serving(Hook()) as client:
        answer = await client.post(path, json=group(alert()))
    assert answer.status_code == 400
    assert answer.text.startswith(words)


@pytest.mark.parametrize("payload", [[], {"alerts": [1]}, group(alert())])
async def test_what_no_replica_sends_is_refused(payload: object) -> None:
    hook = Hook()
    async with serving(hook) as client:
        answer = await client.post("/alerts", json=payload)
    assert answer.status_code == 400
    assert answer.text.startswith("expected ")
    assert hook.alerts.records() == []
