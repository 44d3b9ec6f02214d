"""A real Alertmanager, and the sections of a Prometheus' configuration that send alerts to it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.programs import Program, binary
from tests.processes import free_port

READY_WITHIN_SECONDS = 30.0


@dataclass(slots=True)
class Alertmanager:
    """One Alertmanager that tells nobody and can be asked."""

    directory: Path
    port: int = field(default_factory=free_port)
    _program: Program = field(init=False)

    def __post_init__(self) -> None:
        """Plan the process."""
        configuration = self.directory / "alertmanager.yml"
        command = [
            binary("alertmanager"),
            f"--config.file={configuration}",
            f"--storage.path={self.directory / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            # No address: it has no peers to gossip with.
            "--cluster.listen-address=",
        ]
        nobody = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
        configuration.write_text(json.dumps(nobody))
        self._program = Program("alertmanager", command, self.directory / "alertmanager.log")

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        await self._program.start_serving(
            f"http://127.0.0.1:{self.port}/-/ready", READY_WITHIN_SECONDS
        )

    def stop(self) -> None:
        """End it."""
        self._program.stop()

    def sections(self, expressions: Iterable[str]) -> dict[str, Any]:
        """Return what makes a Prometheus send an alert while an expression has a result.

        An alert is called what its expression says.
        """
        rules = [{"alert": expression, "expr": expression} for expression in expressions]
        file = self.directory / "rules.yml"
        file.write_text(json.dumps({"groups": [{"name": "alerts", "rules": rules}]}))
        target = {"static_configs": [{"targets": [f"127.0.0.1:{self.port}"]}]}
        return {"rule_files": [str(file)], "alerting": {"alertmanagers": [target]}}

    async def alerts(self) -> list[dict[str, str]]:
        """Return the labels of every alert that fires now."""
        async with httpx.AsyncClient(trust_env=False) as client:
            response = await client.get(f"http://127.0.0.1:{self.port}/api/v2/alerts")
        return [alert["labels"] for alert in response.raise_for_status().json()]
