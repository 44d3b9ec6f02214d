"""A scaler with a webhook, and a real Alertmanager that notifies it of alerts."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tests.e2e import router
from tests.e2e.lab import Lab
from tests.support.processes import Program, free_port
from tools import programs

READY_WITHIN_SECONDS = 30.0
TOKEN = "of-the-webhook"  # noqa: S105 - of a scaler on loopback that lives for minutes
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


def url(lab: Lab) -> str:
    return f"http://{lab.scaler.http_address}/webhook"


def _about(lab: Lab, workload: str) -> Mapping[str, Any]:
    """Return a rule that raises an alert about a workload while there are requests."""
    expression = f"{router.offered(lab.name, REQUESTS)} > 0"
    return {"alert": "Wanted", "expr": expression, "labels": {"scaled_object": workload}}


@contextlib.asynccontextmanager
async def alertmanager(lab: Lab, *workloads: str) -> AsyncIterator[None]:
    """Tell the webhook of a lab's scaler of alerts about these workloads, until the block ends."""
    port, folder = free_port(), lab.directory
    config = folder / "alertmanager.yml"
    hook = {"url": url(lab), "http_config": {"authorization": {"credentials": TOKEN}}}
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
    rules = [_about(lab, workload) for workload in workloads]
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
