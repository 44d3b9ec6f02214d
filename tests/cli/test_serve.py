"""`keda-gpu-scaler serve` as a container runs it: a process, its ports, its signals."""

import asyncio
import gc
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keda_gpu_scaler.cli.serve import free_cycles
from testbed.triggers import reference
from tests.support import certificates
from tests.support.serving import (
    PATIENCE_SECONDS,
    ended,
    environment,
    said,
    serving,
    started,
)
from tests.workbench.observing.test_manifests import written

pytestmark = pytest.mark.slow

SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("number", SIGNALS)
def test_it_serves_until_a_signal_and_ends_with_0_despite_streams(number: signal.Signals) -> None:
    with serving() as scaler:
        check = health_pb2_grpc.HealthStub(scaler.channel).Check
        answer = check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_SECONDS)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert scaler.get("/readyz") == "ready\n"
        stream = scaler.stub.StreamIsActive(reference())
        scaler.specify()  # answered after the stream was opened
        assert scaler.end(number) == 0
        assert list(stream) == []
        assert stream.code() is grpc.StatusCode.OK
        said(scaler.process, "serve.stopped")
        assert scaler.process.stderr is not None
        assert scaler.process.stderr.read() == ""


def test_a_signal_during_the_start_ends_with_0() -> None:
    with started(environment()) as process:
        said(process, "serve.starting")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_it_at_once(number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving(SCRAPE_TARGETS=target, SCRAPE_INTERVAL="60s") as scaler:
            waiting = scaler.stub.IsActive.future(reference())
            scaler.specify()  # answered after the call has begun
            scaler.process.send_signal(signal.SIGTERM)
            said(scaler.process, "serve.stopping")
            assert scaler.end(number) == 128 + number
            assert waiting.exception(PATIENCE_SECONDS) is not None


def test_what_prevents_its_start_is_said_without_a_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = f"127.0.0.1:{holder.getsockname()[1]}"
        done = ended(environment(HTTP_ADDRESS=taken))
    assert done.returncode == 1
    words = "keda-gpu-scaler: KEDA_GPU_SCALER_HTTP_ADDRESS: cannot listen on"
    assert done.stderr.splitlines()[-1].startswith(words)
    assert "Traceback" not in done.stderr


AT_A_SIGNAL = """
import asyncio, gc, signal, sys, threading
from keda_gpu_scaler import cli

class Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        loop = super().new_event_loop()
        loop.add_signal_handler(signal.SIGUSR1, lambda: ({}))
        return loop

asyncio.set_event_loop_policy(Policy())
cli.main()
"""
"""Runs the command line, and does something in its event loop at SIGUSR1."""
LOADED = AT_A_SIGNAL.format("print(*sys.modules, file=sys.stderr)")
SHARED = AT_A_SIGNAL.format(
    "print(gc.get_freeze_count(), sys.getswitchinterval() < 0.001, "
    "'free_cycles' in str(asyncio.all_tasks()), file=sys.stderr)"
)
DROPPED = """
import collections, weakref
from keda_gpu_scaler.cli.serve import free_cycles
from keda_gpu_scaler.cli import serve

class Cycle:
    def __init__(self):
        self.itself = self

serve.share_interpreter()
existing, held = weakref.WeakSet(), collections.deque(maxlen=2_000)
for _ in range(200_000):
    held.append(Cycle())
    existing.add(held[-1])
print(len(existing))
"""
"""Drops cycles that were in use for a while, as failed TLS handshakes are, and counts the rest."""
WAITS = "loop.run_in_executor(None, threading.Event().wait)"
FAILS = "[task.cancel() for task in asyncio.all_tasks() if task.get_name() == 'alerts']"
UNUSED = {
    "botocore",
    "cryptography",
    "httpx2",
    "jinja2",
    "jsonschema",
    "lightkube",
    "opentelemetry",
}
UNUSED |= {"h2", "promql_parser", "pygments", "re2", "rich.console", "yaml"}
UNUSED |= {"keda_gpu_scaler.workbench"}
UNUSED |= {f"keda_gpu_scaler.sources.{name}.source" for name in ("influxdb", "scrape")}
UNUSED |= {"keda_gpu_scaler.evidence.kubernetes", "keda_gpu_scaler.transport.certificates"}


def told(script: str, environ: Mapping[str, str]) -> set[str]:
    """Return what a process tells that listened, and that nobody called."""
    with started(environ, [sys.executable, "-c", script, "serve"]) as process:
        said(process, "serve.listening")
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        found = set(process.stderr.readline().split())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
        return found


def test_cycles_that_were_in_use_for_a_while_are_freed() -> None:
    command = [sys.executable, "-c", DROPPED]
    done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_SECONDS)
    assert int(done.stdout) < 100_000


class Cycle:
    """Freed only by a look for garbage."""

    def __init__(self) -> None:
        self.itself = self


async def test_garbage_that_has_become_old_is_freed() -> None:
    """As of a TLS handshake that began before a fetch, and failed after it."""
    cycle, freed = Cycle(), asyncio.Event()
    existing = weakref.ref(cycle, lambda _: freed.set())
    gc.collect()  # it survives, and is old now
    del cycle
    assert existing() is not None
    freeing = asyncio.create_task(free_cycles(0.001))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await freed.wait()
    freeing.cancel()


@pytest.mark.parametrize(
    ("then", "status", "words"),
    [("None", 0, ""), (FAILS, 1, "RuntimeError: the exchange of alerts ended by surprise\n")],
    ids=["a signal", "a failure"],
)
def test_it_ends_although_a_thread_waits_for_ever(then: str, status: int, words: str) -> None:
    """As one does in getaddrinfo while no name server answers."""
    script = AT_A_SIGNAL.format(f"{WAITS}, {then}")
    with started(environment(), [sys.executable, "-c", script, "serve"]) as process:
        said(process, "serve.listening")
        process.send_signal(signal.SIGUSR1)
        if not status:
            process.send_signal(signal.SIGTERM)
            said(process, "serve.stopped")
        assert process.wait(PATIENCE_SECONDS) == status
        assert process.stderr is not None
        assert process.stderr.read().endswith(words)


def test_it_loads_nothing_for_other_commands_and_for_what_is_not_set() -> None:
    found = told(LOADED, environment(SCRAPE_TARGETS="", PROMETHEUS_URL="http://127.0.0.1:1"))
    assert {"grpc", "httpx", "structlog", "keda_gpu_scaler.service"} <= found
    assert found & UNUSED == set()


def test_threads_take_short_turns_and_no_collection_looks_at_modules() -> None:
    """Else calls wait for a thread that computes, and for a look at all modules."""
    frozen, is_short = sorted(told(SHARED, environment()))
    assert int(frozen) > len(sys.modules)
    assert is_short == "True"


def test_what_a_setting_asks_for_is_loaded_before_the_first_call(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("localhost")
    pair = certificates.write(tmp_path, issued)
    files = {"GRPC_CERT_FILE": str(pair.cert), "GRPC_KEY_FILE": str(pair.key)}
    found = told(LOADED, environment(**files))
    used = {"sources.scrape.source", "transport.certificates"}
    assert {"cryptography", *(f"keda_gpu_scaler.{name}" for name in used)} <= found


def test_observe_opens_no_grpc_port_and_ends_at_a_signal(tmp_path: Path) -> None:
    (tmp_path / "bert.yaml").write_text(written())
    command = [sys.executable, "-m", "keda_gpu_scaler", "observe", str(tmp_path)]
    with serving(command, GRPC_ADDRESS="192.0.2.1:6000") as scaler:
        assert scaler.grpc_port == 0
        assert scaler.get("/readyz") == "ready\n"
        assert scaler.end() == 0
