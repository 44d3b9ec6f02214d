"""The webhook: alerts of Alertmanager and of an old Grafana wake workloads and keep them awake.

An alert says that there is work, and not how much: none of them ever makes a second replica.
"""

import httpx
import pytest

from tests.e2e import alerting, waking
from tests.e2e.lab import Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN
from tests.support import alert_messages

NAMES = "pushed", "polled", "dashboard"


async def _notify(lab: Lab, state: str) -> None:
    """Send what Grafana 4 does of a rule on a dashboard, whose channel has a user and a password.

    Rules had no labels: the address names the ScaledObject.
    """
    url = f"{alerting.url(lab)}/{lab.name}/dashboard"
    async with httpx.AsyncClient(trust_env=False, auth=("grafana", alerting.TOKEN)) as client:
        (await client.post(url, json=alert_messages.of_dashboard(state))).raise_for_status()


@pytest.mark.core
@pytest.mark.generations
@pytest.mark.needs("alertmanager")
async def test_an_alert_wakes_keeps_up_what_is_idle_and_lets_it_go_when_it_is_resolved(
    lab: Lab,
) -> None:
    await lab.scaler.restart(WEBHOOK_TOKEN=alerting.TOKEN)
    for name in ("polled", "dashboard"):
        await lab.deploy(name)
        await lab.autoscale(name, lab.gpu(name), min_replicas=0)
    await lab.deploy("pushed")
    await waking.asleep(lab, "pushed", waking.push(lab, "pushed"))
    async with alerting.alertmanager(lab, "pushed", "polled"):
        await lab.stays("pushed", 0, for_seconds=2)

        await lab.offer(alerting.REQUESTS, 5)
        await _notify(lab, "alerting")
        await waking.wakes(lab, "pushed")
        await waking.poll_often(lab, "pushed")
        for name in NAMES:
            await lab.reaches(name, 1)
            await lab.becomes(name, "measured")
        await lab.stays("pushed", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)

        await lab.offer(alerting.REQUESTS, 0)
        await _notify(lab, "ok")
        for name in NAMES:
            await lab.reaches(name, 0)
            assert lab.path(name) == [0, 1, 0], lab.story()
