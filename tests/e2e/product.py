"""The product's own command as a process: `serve` of this checkout, as KEDA calls it."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.processes import Program, free_port
from tests.e2e.counts import Counts

READY_WITHIN_SECONDS = 60.0
_COMMAND = str(Path(sys.executable).with_name("keda-gpu-scaler"))


@dataclass(slots=True)
class Scaler:
    """One `keda-gpu-scaler serve`, or a command with its settings, always at the same address."""

    directory: Path
    prometheus_url: str
    port: int = field(default_factory=free_port)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further KEDA_GPU_SCALER_… settings, without that beginning."""
    kubeconfig: Path | None = None
    """The kubeconfig of the API server, where its settings use one."""
    http_port: int = field(default_factory=free_port)
    command: Sequence[str] = ("serve",)
    _program: Program = field(init=False)

    def __post_init__(self) -> None:
        log = self.directory / f"scaler-{self.port}.log"
        self._program = Program("scaler", [_COMMAND, *self.command], log, self._environment())

    @property
    def address(self) -> str:
        """The value of a trigger's `scalerAddress`."""
        return f"127.0.0.1:{self.port}"

    @property
    def http_address(self) -> str:
        """Where its own metrics and its webhook are, as host:port."""
        return f"127.0.0.1:{self.http_port}"

    async def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        await self._program.start_serving(
            f"http://{self.http_address}/readyz", READY_WITHIN_SECONDS
        )

    def stop(self) -> None:
        """End it as Kubernetes does."""
        self._program.stop()

    def kill(self) -> None:
        """End it as a lost node does."""
        self._program.kill()

    async def restart(self, **settings: str) -> None:
        """Kill it and start it again, with these settings changed."""
        self.kill()
        self.settings = {**self.settings, **settings}
        self._program.environment = self._environment()
        await self.start()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what it logged under one event's name, oldest first."""
        written, _, _ = self._program.output().rpartition("\n")  # the last line may be half written
        # Most lines are about something else, and tests read them repeatedly.
        lines = (each for each in written.splitlines() if each[:1] == "{" and f'"{name}"' in each)
        return [found for found in map(json.loads, lines) if found.get("event") == name]

    def output(self) -> str:
        return self._program.output()

    def tail(self) -> str:
        return self._program.tail()

    async def counted(self, metric: str, **labels: str) -> float:
        """Return the sum of one of its own metrics over all series with these labels."""
        return await Counts(f"http://{self.http_address}/metrics").total(metric, **labels)

    def _environment(self) -> dict[str, str]:
        settings = {
            "GRPC_ADDRESS": self.address,
            "HTTP_ADDRESS": self.http_address,
            "PROMETHEUS_URL": self.prometheus_url,
            "PROMETHEUS_STEP": "1s",
            # The simulator looks at the pods once a second, and the API answers in less than one.
            "PROMETHEUS_COLLECTION": "2s",
            "DEMAND_INTERVAL": "1s",
            "LOG_LEVEL": "debug",
            "LOG_FORMAT": "json",
            **self.settings,
        }
        named = {f"KEDA_GPU_SCALER_{name}": value for name, value in settings.items()}
        return named if self.kubeconfig is None else named | {"KUBECONFIG": str(self.kubeconfig)}
