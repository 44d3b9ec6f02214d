"""A real Alertmanager, and the sections of a Prometheus' configuration that send alerts to it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.counts import Counts
from tests.e2e.programs import Program
from tests.support import programs
from tests.support.processes import free_port

READY_WITHIN_SECONDS = 30.0
GROUP_WAIT_SECONDS = 0
"""How long a first message waits for further alerts; 30 s by default."""
_GROUP_INTERVAL = "1s"
"""How long each further message waits, such as that an alert has ended; 5 minutes by default."""
_SELDOM = "1h"
Rule = Mapping[str, Any]


def rule(name: str, expression: str, **labels: str) -> Rule:
    """Return a rule that raises an alert while an expression has a result."""
    return {"alert": name, "expr": expression, "labels": labels}


@dataclass(slots=True)
class Alertmanager:
    """One Alertmanager that notifies no receiver until it is given one, and can be queried."""

    directory: Path
    port: int = field(default_factory=free_port)
    _program: Program = field(init=False)

    def __post_init__(self) -> None:
        """Plan the process."""
        command = [
            programs.path("alertmanager"),
            f"--config.file={self._file}",
            f"--storage.path={self.directory / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            # No address: it has no peers to gossip with.
            "--cluster.listen-address=",
        ]
        nobody = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
        self._file.write_text(json.dumps(nobody))
        self._program = Program("alertmanager", command, self.directory / "alertmanager.log")

    @property
    def url(self) -> str:
        """Where its HTTP API answers, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        await self._program.start_serving(f"{self.url}/-/ready", READY_WITHIN_SECONDS)

    def stop(self) -> None:
        """End it."""
        self._program.stop()

    async def notify(self, url: str, token: str | None, *, repeat: str = _SELDOM) -> None:
        """Notify a webhook of alerts from now on, as soon as possible, and repeat this often."""
        self._file.write_text(json.dumps(_to_webhook(url, token, repeat)))
        async with httpx.AsyncClient(trust_env=False) as client:
            (await client.post(f"{self.url}/-/reload")).raise_for_status()

    def sections(self, rules: Iterable[Rule]) -> dict[str, Any]:
        """Return what makes a Prometheus evaluate these rules and send their alerts here."""
        file = self.directory / "rules.yml"
        file.write_text(json.dumps({"groups": [{"name": "alerts", "rules": list(rules)}]}))
        target = {"static_configs": [{"targets": [f"127.0.0.1:{self.port}"]}]}
        return {"rule_files": [str(file)], "alerting": {"alertmanagers": [target]}}

    async def alerts(self) -> list[dict[str, str]]:
        """Return the labels of every alert that fires now."""
        async with httpx.AsyncClient(trust_env=False) as client:
            response = await client.get(f"{self.url}/api/v2/alerts")
        return [alert["labels"] for alert in response.raise_for_status().json()]

    async def failures(self) -> float:
        """Return how many messages to webhooks have failed, by Alertmanager's own count."""
        return await Counts(f"{self.url}/metrics").total(
            "alertmanager_notifications_failed_total", integration="webhook"
        )

    @property
    def _file(self) -> Path:
        return self.directory / "alertmanager.yml"


def _to_webhook(url: str, token: str | None, repeat: str) -> dict[str, Any]:
    hook: dict[str, Any] = {"url": url}
    if token is not None:
        hook["http_config"] = {"authorization": {"credentials": token}}
    route = {
        "receiver": "webhook",
        # As documented: alerts about one workload wait for none about another.
        "group_by": ["namespace", "scaled_object"],
        "group_wait": f"{GROUP_WAIT_SECONDS}s",
        "group_interval": _GROUP_INTERVAL,
        "repeat_interval": repeat,
    }
    return {"route": route, "receivers": [{"name": "webhook", "webhook_configs": [hook]}]}
