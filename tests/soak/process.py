"""A scaler as a process of its own: started, killed, started again, and measured from outside."""

import asyncio
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from testbed.processes import free_port
from testbed.servers import Server

_KIB = 1024
_TASKS = re.compile(r"^keda_gpu_scaler_tasks (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Size:
    """What a process uses."""

    resident_bytes: int
    peak_bytes: int
    files: int
    threads: int
    tasks: int
    """Tasks of its event loop."""
    series: int
    """The lines of its page of metrics."""


@dataclass(slots=True, kw_only=True)
class Scaler(Server):
    """One replica of the scaler; its port is that of HTTP."""

    PROGRAM: ClassVar[str] = "scaler"
    READY: ClassVar[str] = "/readyz"
    STARTS_WITHIN_SECONDS: ClassVar[float] = 120.0
    STOPS_WITHIN_SECONDS: ClassVar[float] = 120.0

    name: str = "scaler"
    settings: dict[str, str]
    kubeconfig: str = ""
    """The way to the Kubernetes API, where the settings ask for it."""
    grpc_port: int = field(default_factory=free_port)
    is_up: bool = False
    """Whether it answers as far as the soak knows: not while it is being killed or started."""
    lives: int = 0
    """How often it was started."""

    async def start(self) -> None:
        await Server.start(self)
        self.is_up, self.lives = True, self.lives + 1

    async def kill(self) -> None:
        self.is_up = False
        await Server.kill(self)

    async def stop(self) -> None:
        self.is_up = False
        began = asyncio.get_running_loop().time()
        await Server.stop(self)
        took = asyncio.get_running_loop().time() - began
        assert took < self.STOPS_WITHIN_SECONDS, f"see {self.log_file}"

    async def page(self, path: str) -> str:
        # A connection that rested may be closed by the server while the next request is sent.
        anew = {"connection": "close"}
        answer = await self._client.get(f"{self.url}{path}", timeout=10, headers=anew)
        answer.raise_for_status()
        return answer.text

    async def size(self) -> Size:
        here = Path(f"/proc/{self.pid}")
        lines = (here / "status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines if ":" in line)
        page = await self.page("/metrics")
        return Size(
            int(status["VmRSS"].split()[0]) * _KIB,
            int(status["VmHWM"].split()[0]) * _KIB,
            len(list((here / "fd").iterdir())),
            int(status["Threads"]),
            int(float(_TASKS.findall(page)[0])),
            sum(not line.startswith("#") for line in page.splitlines()),
        )

    def _configure(self) -> None:
        """Its settings are in its environment."""

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "keda_gpu_scaler", "serve"]

    def _environment(self) -> dict[str, str]:
        ports = {"GRPC_ADDRESS": self.grpc_port, "HTTP_ADDRESS": self.port}
        addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        given = self.settings | addresses
        own = {f"KEDA_GPU_SCALER_{name}": text for name, text in given.items()}
        return own | {"KUBECONFIG": self.kubeconfig}


def warnings(log_file: Path) -> list[str]:
    """Return the lines of a log that no fault of another may cause: tracebacks of its own."""
    lines = log_file.read_text(errors="replace").splitlines()
    signs = '"exception": ', '"level": "critical"'
    return [
        line[:500]
        for line in lines
        if not line.startswith("{") or any(sign in line for sign in signs)
    ]
