"""`keda-gpu-scaler serve` as a process of its own, and what is asked of it over its ports."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import grpc
import httpx

from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from testbed.processes import free_port
from testbed.triggers import reference

COMMAND = [sys.executable, "-m", "keda_gpu_scaler", "serve"]
PREFIX = "KEDA_GPU_SCALER_"
PATIENCE_SECONDS = 30
"""Bounds a test that hangs; the grace is longer, so that waiting it out shows."""
GRACE = "120s"
DEADLINE_SECONDS = 5.0
"""The caller's own: a call that takes longer fails, and its test with it."""
Output = BinaryIO | int


def environment(**settings: str) -> dict[str, str]:
    """Return this process's environment with these settings and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    local = {
        "GRPC_ADDRESS": "127.0.0.1:0",
        "HTTP_ADDRESS": "127.0.0.1:0",
        "SCRAPE_TARGETS": "http://127.0.0.1:1/metrics",
        "SHUTDOWN_GRACE": GRACE,
    }
    return kept | {PREFIX + name: value for name, value in (local | settings).items()}


@contextmanager
def started(
    environ: Mapping[str, str], command: Sequence[str] = COMMAND
) -> Iterator[subprocess.Popen[str]]:
    """Run the command until the block ends."""
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """Read the log up to the first line of this event."""
    assert process.stdout is not None
    for line in process.stdout:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event:
            return found
    raise AssertionError(f"the process ended without {event}")


def ended(environ: Mapping[str, str], *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *flags],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def peak_bytes(process: subprocess.Popen[Any]) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@dataclass
class Scaler:
    """A running scaler, asked over its ports, each time within the deadline."""

    process: subprocess.Popen[Any]
    grpc_port: int
    http_port: int
    pages: httpx.Client = field(init=False)
    channel: grpc.Channel = field(init=False)

    def __post_init__(self) -> None:
        url = f"http://127.0.0.1:{self.http_port}"
        self.pages = httpx.Client(base_url=url, timeout=DEADLINE_SECONDS, trust_env=False)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}")
        self.stub = externalscaler_pb2_grpc.ExternalScalerStub(self.channel)

    def get(self, page: str, seconds: float = DEADLINE_SECONDS) -> str:
        return self.pages.get(page, timeout=seconds).raise_for_status().text

    def specify(self, name: str = "bert", namespace: str = "ml", **metadata: str) -> float:
        """Ask what needs neither a source nor a decision; return the target."""
        asked = reference(name, namespace, **metadata)
        answer = self.stub.GetMetricSpec(asked, timeout=DEADLINE_SECONDS)
        return float(answer.metricSpecs[0].targetSizeFloat)

    def is_ready(self) -> bool:
        assert self.process.poll() is None, "it ended at its start"
        with suppress(httpx.TransportError, httpx.HTTPStatusError):
            return self.get("/readyz") == "ready\n"
        return False

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        self.pages.close()
        self.channel.close()


@contextmanager
def serving(
    command: Sequence[str] = COMMAND, environ: Mapping[str, str] | None = None, /, **settings: str
) -> Iterator[Scaler]:
    """Run the command with these settings, and give it once it listens."""
    with started(environ or environment(**settings), command) as process:
        ports = said(process, "serve.listening")
        scaler = Scaler(process, ports["grpc_port"], ports["http_port"])
        yield scaler
        scaler.close()


@contextmanager
def writing_to(
    stdout: Output, stderr: Output = subprocess.DEVNULL, **settings: str
) -> Iterator[Scaler]:
    """Run a scaler that writes there. Its ports are chosen, because its log may not be readable."""
    ports = free_port(), free_port()
    environ = environment(
        GRPC_ADDRESS=f"127.0.0.1:{ports[0]}", HTTP_ADDRESS=f"127.0.0.1:{ports[1]}", **settings
    )
    with subprocess.Popen(COMMAND, env=environ, stdout=stdout, stderr=stderr) as process:
        try:
            scaler = Scaler(process, *ports)
            ends_at = time.monotonic() + PATIENCE_SECONDS
            while not scaler.is_ready():
                assert time.monotonic() < ends_at, "it is not ready"
                time.sleep(0.05)
            yield scaler
            scaler.close()
        finally:
            process.kill()
