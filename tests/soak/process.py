"""A scaler as a process of its own: started, killed, started again, and measured from outside."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.processes import bounded, inner, until

READY_SECONDS = 120.0
STOP_SECONDS = 120.0
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


@dataclass(slots=True)
class Scaler:
    """One replica of the scaler."""

    name: str
    grpc_port: int
    http_port: int
    settings: Mapping[str, str]
    log_file: Path
    life_seconds: float
    kubeconfig: str = ""
    """The way to the Kubernetes API, where the settings ask for it."""
    is_up: bool = False
    """Whether it answers as far as the soak knows: not while it is being killed or started."""
    lives: int = 0
    """How often it was started."""
    _process: asyncio.subprocess.Process | None = None
    _client: httpx.AsyncClient = field(default_factory=lambda: httpx.AsyncClient(trust_env=False))

    async def start(self) -> None:
        """Start it, and wait until it is ready."""
        own = {
            "GRPC_ADDRESS": f"127.0.0.1:{self.grpc_port}",
            "HTTP_ADDRESS": f"127.0.0.1:{self.http_port}",
            **self.settings,
        }
        kept = {name: text for name, text in os.environ.items() if not name.startswith("KEDA_")}
        with self.log_file.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *bounded(self.life_seconds),
                *(sys.executable, "-m", "keda_gpu_scaler", "serve"),
                env=kept
                | {"KUBECONFIG": self.kubeconfig}
                | {f"KEDA_GPU_SCALER_{name}": text for name, text in own.items()},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        await until(self._is_ready, READY_SECONDS, f"{self.name} is ready: see {self.log_file}")
        self.is_up, self.lives = True, self.lives + 1

    async def end(self, number: signal.Signals = signal.SIGTERM) -> float:
        """End it by a signal, and return after how many seconds it had ended."""
        self.is_up = False
        process, self._process = self._process, None
        if process is None:
            return 0.0
        began = asyncio.get_running_loop().time()
        os.kill(inner(process.pid), number)
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            os.kill(inner(process.pid), signal.SIGKILL)
            await process.wait()
            raise
        return asyncio.get_running_loop().time() - began

    async def close(self) -> None:
        """End it and the connections to it."""
        await self.end()
        await self._client.aclose()

    async def page(self, path: str) -> str:
        """Return one of its pages."""
        answer = await self._client.get(f"http://127.0.0.1:{self.http_port}{path}", timeout=10)
        answer.raise_for_status()
        return answer.text

    async def size(self) -> Size:
        """Return what it uses now."""
        assert self._process is not None
        here = Path(f"/proc/{inner(self._process.pid)}")
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

    async def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.returncode is not None:
            message = f"{self.name} ended while it started: see {self.log_file}"
            raise RuntimeError(message)
        try:
            await self.page("/readyz")
        except httpx.HTTPError:
            return False
        return True


def warnings(log_file: Path) -> list[str]:
    """Return the events in a log that no fault of another may cause: tracebacks of its own."""
    found = []
    for line in log_file.read_bytes().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            found.append(line.decode(errors="replace")[:200])
        else:
            if isinstance(event, dict) and (
                "exception" in event or event.get("level") == "critical"
            ):
                found.append(str(event)[:500])
    return found
