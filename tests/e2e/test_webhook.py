"""The webhook: alerts of Alertmanager and of Grafana wake workloads and keep them awake.

An alert says that there is work, and not how much: none of them ever makes a second replica.
"""

import asyncio

import httpx
import pytest

from tests.e2e import alerting, streams, waking
from tests.e2e.alertmanager import Alertmanager
from tests.e2e.lab import Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN
from tests.support import alert_messages as messages

PAIR = "pushed", "polled"
GRAFANAS = "unified", "dashboard"
WRONG_TOKEN = "of-another-webhook"  # noqa: S105 - opens nothing


@pytest.mark.core
@pytest.mark.generations
async def test_an_alert_wakes_keeps_up_what_is_idle_and_lets_it_go_when_it_is_resolved(
    lab: Lab, alertmanager: Alertmanager
) -> None:
    await alerting.open_webhook(lab)
    await alertmanager.notify(alerting.url(lab.scaler), alerting.TOKEN)
    await lab.deploy("polled")
    await lab.autoscale("polled", lab.gpu("polled"), min_replicas=0)
    await lab.deploy("pushed")
    await waking.asleep(lab, "pushed", streams.push(lab, "pushed"))
    rules = [alerting.on_requests(lab, "Wanted", **alerting.about(each)) for each in PAIR]
    await alerting.judge(lab, alertmanager, *rules)
    await lab.stays("pushed", 0, for_seconds=2)

    await lab.offer(alerting.REQUESTS, 5)
    await waking.wakes(lab, "pushed")
    await lab.reaches("polled", 1)
    await waking.poll_often(lab, "pushed")
    for name in PAIR:
        await lab.becomes(name, "measured")
    await lab.stays("pushed", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)

    await lab.offer(alerting.REQUESTS, 0)
    for name in PAIR:
        await lab.reaches(name, 0)
        assert lab.path(name) == [0, 1, 0], lab.story()


async def test_a_message_without_the_token_or_about_nobody_is_refused_and_wakes_nothing(
    lab: Lab, alertmanager: Alertmanager
) -> None:
    await alerting.open_webhook(lab)
    await lab.deploy("bert")
    await lab.autoscale("bert", lab.gpu("bert"), min_replicas=0)
    nobodys = alerting.on_requests(lab, "Nobodys")
    await alerting.judge(lab, alertmanager, nobodys)
    await lab.offer(alerting.REQUESTS, 5)
    await _refused(lab, alertmanager, alerting.TOKEN, 422)

    await alertmanager.notify(alerting.url(lab.scaler), None)
    berts = alerting.on_requests(lab, "Wanted", **alerting.about("bert"))
    await alerting.judge(lab, alertmanager, nobodys, berts)
    await lab.prometheus.wait_for('ALERTS{alertname="Wanted",alertstate="firing"}')
    await _refused(lab, alertmanager, None, 401)
    await _refused(lab, alertmanager, WRONG_TOKEN, 401)

    await lab.stays("bert", 0, for_seconds=3)
    assert lab.path("bert") == [0], lab.story()
    assert await _messages(lab, 200) == 0, lab.story()
    for secret in alerting.TOKEN, WRONG_TOKEN:
        assert secret not in lab.scaler.output()
    # There was no other obstacle.
    await alertmanager.notify(alerting.url(lab.scaler), alerting.TOKEN)
    await lab.reaches("bert", 1)


async def _refused(lab: Lab, alertmanager: Alertmanager, token: str | None, status: int) -> None:
    """Wait until messages with this token fail, as the sender and the scaler count it."""
    await alertmanager.notify(alerting.url(lab.scaler), token)
    failed, refused = await alertmanager.failures(), await _messages(lab, status)

    async def counted() -> bool:
        more = await alertmanager.failures() > failed, await _messages(lab, status) > refused
        return all(more)

    await lab.wait(counted, f"messages with the token {token} are refused with {status}")
    said = lab.scaler.events("webhook.refused")
    assert status in {each["status"] for each in said}, lab.story()


async def _messages(lab: Lab, status: int) -> float:
    return await lab.scaler.counted("keda_gpu_scaler_webhook_notifications_total", code=str(status))


async def test_grafana_of_today_and_of_old_wakes_and_lets_go(lab: Lab) -> None:
    await alerting.open_webhook(lab)
    for name in GRAFANAS:
        await lab.deploy(name)
    triggers = {name: streams.push(lab, name) for name in GRAFANAS}
    await asyncio.gather(*(waking.asleep(lab, *each) for each in triggers.items()))
    await _grafana(lab, fires=True)
    for name in GRAFANAS:
        await waking.wakes(lab, name)
        await waking.poll_often(lab, name)
    await lab.stays("unified", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await _grafana(lab, fires=False)
    for name in GRAFANAS:
        await lab.reaches(name, 0)
        assert lab.path(name) == [0, 1, 0], lab.story()


async def _grafana(lab: Lab, *, fires: bool) -> None:
    """Send what Grafana's alerting of today does, and what that of its dashboards did."""
    url = alerting.url(lab.scaler)
    labels = {"alertname": "Busy", "namespace": lab.name, "scaled_object": "unified"}
    today = messages.of_grafana(messages.alert(fires=fires, labels=labels))
    # Dashboards had no labels: the address names the ScaledObject. Their channels had passwords.
    of_old = messages.of_dashboard("alerting" if fires else "ok")
    async with httpx.AsyncClient(trust_env=False) as client:
        bearer = {"Authorization": f"Bearer {alerting.TOKEN}"}
        (await client.post(url, json=today, headers=bearer)).raise_for_status()
        url, password = f"{url}/{lab.name}/dashboard", ("grafana", alerting.TOKEN)
        (await client.post(url, json=of_old, auth=password)).raise_for_status()
