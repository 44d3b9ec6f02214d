"""The webhook: alerts of Alertmanager and of an old Grafana wake workloads and keep them awake.

An alert says that there is work, and not how much: none of them ever makes a second replica.
"""

import contextlib
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from testbed import programs
from testbed.processes import Program, free_port
from tests.e2e import waking
from tests.e2e.lab import Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN
from tests.support import alert_messages

NAMES = "pushed", "polled", "dashboard"
READY_WITHIN_SECONDS = 30.0
TOKEN = "of-the-webhook"
REQUESTS = "requests"
"""Load offered under this name raises alerts; no workload has the name."""
_ROUTE = {
    "receiver": "webhook",
    # As documented: alerts about one workload wait for none about another.
    "group_by": ["namespace", "scaled_object"],
    "group_wait": "0s",
    # How long each further message waits, such as that an alert has ended.
    "group_interval": "1s",
    "repeat_interval": "1h",
}


def _url(lab: Lab) -> str:
    return f"http://{lab.scaler.http_address}/webhook"


@contextlib.asynccontextmanager
async def _alertmanager(lab: Lab, *workloads: str) -> AsyncIterator[None]:
    """Tell the webhook of a lab's scaler of alerts about these workloads, until the block ends."""
    port, folder = free_port(), lab.directory
    config = folder / "alertmanager.yml"
    hook = {"url": _url(lab), "http_config": {"authorization": {"credentials": TOKEN}}}
    receivers = [{"name": "webhook", "webhook_configs": [hook]}]
    config.write_text(json.dumps({"route": _ROUTE, "receivers": receivers}))
    command = [
        programs.path("alertmanager"),
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        # No address: it has no peers to gossip with.
        "--cluster.listen-address=",
    ]
    program = Program("alertmanager", command, folder / "alertmanager.log")
    wanted = {"alert": "Wanted", "expr": f"{lab.offered(REQUESTS)} > 0"}
    rules = [wanted | {"labels": {"scaled_object": workload}} for workload in workloads]
    file = folder / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "alerts", "rules": rules}]}))
    managers = {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]}
    lab.prometheus.sections = {"rule_files": [str(file)], "alerting": managers}
    try:
        await program.start_serving(f"http://127.0.0.1:{port}/-/ready", READY_WITHIN_SECONDS)
        await lab.prometheus.reload(lab.prometheus.scrape_configs)
        yield
    finally:
        program.stop()


async def _notify(lab: Lab, state: str) -> None:
    """Send what Grafana 4 does of a rule on a dashboard, whose channel has a user and a password.

    Rules had no labels: the address names the ScaledObject.
    """
    url = f"{_url(lab)}/{lab.name}/dashboard"
    async with httpx.AsyncClient(trust_env=False, auth=("grafana", TOKEN)) as client:
        (await client.post(url, json=alert_messages.of_dashboard(state))).raise_for_status()


@pytest.mark.core
@pytest.mark.generations
@pytest.mark.needs("alertmanager")
async def test_an_alert_wakes_keeps_up_what_is_idle_and_lets_it_go_when_it_is_resolved(
    lab: Lab,
) -> None:
    await lab.scaler.restart(WEBHOOK_TOKEN=TOKEN)
    for name in ("polled", "dashboard"):
        await lab.deploy(name)
        await lab.autoscale(name, lab.gpu(name), min_replicas=0)
    await lab.deploy("pushed")
    await waking.asleep(lab, "pushed", waking.push(lab, "pushed"))
    async with _alertmanager(lab, "pushed", "polled"):
        await lab.stays("pushed", 0, for_seconds=2)

        await lab.offer(REQUESTS, 5)
        await _notify(lab, "alerting")
        await waking.wakes(lab, "pushed")
        await waking.poll_often(lab, "pushed")
        for name in NAMES:
            await lab.reaches(name, 1)
            await lab.becomes(name, "measured")
        await lab.stays("pushed", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)

        await lab.offer(REQUESTS, 0)
        await _notify(lab, "ok")
        for name in NAMES:
            await lab.reaches(name, 0)
            assert lab.path(name) == [0, 1, 0], lab.story()
