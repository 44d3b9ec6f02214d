"""Nothing depends on who reads what `serve` writes: a real process on pipes that misbehave."""

import asyncio
import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

import grpc
import httpx
import pytest
import trustme

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.cli import test_serve
from tests.support import certificates
from tests.support.processes import free_port, until

pytestmark = pytest.mark.slow

DEADLINE_SECONDS = 5
"""The caller's own: a call that takes longer fails, and its test with it."""
PATIENCE_SECONDS = test_serve.PATIENCE_SECONDS
PIPE_BYTES = 4096
"""The smallest pipe that Linux has: full after a few lines."""
REFUSED = grpc.StatusCode.INVALID_ARGUMENT
Output = BinaryIO | int
DROPPED = "keda_gpu_scaler_log_lines_dropped_total"


class Scaler:
    """A running scaler, asked over its ports."""

    def __init__(self, process: subprocess.Popen[bytes], grpc_port: int, http_port: int) -> None:
        self.process = process
        self.grpc_port = grpc_port
        self.http_port = http_port
        self._pages = httpx.Client(base_url=f"http://127.0.0.1:{http_port}", trust_env=False)
        self._channel = grpc.insecure_channel(f"127.0.0.1:{grpc_port}")
        self.stub = externalscaler_pb2_grpc.ExternalScalerStub(self._channel)

    def get(self, page: str, seconds: float = DEADLINE_SECONDS) -> str:
        """Return a page, or fail when it does not come in time."""
        return self._pages.get(page, timeout=seconds).raise_for_status().text

    async def is_ready(self) -> bool:
        """Say whether it takes calls."""
        assert self.process.poll() is None, "it ended at its start"
        with contextlib.suppress(httpx.TransportError, httpx.HTTPStatusError):
            return self.get("/readyz") == "ready\n"
        return False

    def refuse(self, name: str) -> grpc.StatusCode:
        """Ask about a wrong trigger, which is a line of the log; return the status."""
        asked = pb.ScaledObjectRef(name=name, namespace="ml", scalerMetadata={"x" * 100: ""})
        with pytest.raises(grpc.RpcError) as failed:
            self.stub.GetMetricSpec(asked, timeout=DEADLINE_SECONDS)
        code: grpc.StatusCode = failed.value.code()
        return code

    def specify(self) -> None:
        """Ask what needs neither a source nor a decision."""
        assert self.stub.GetMetricSpec(test_serve.reference(), timeout=DEADLINE_SECONDS).metricSpecs

    def decide(self, name: str) -> bool:
        """Ask about a trigger for the first time, which is a line too; return the answer.

        Its load is unknown. To the HPA, which sets a deadline, it is then active.
        """
        right = {"workload": "bert", "threshold": "70"}
        asked = pb.ScaledObjectRef(name=name, namespace="ml", scalerMetadata=right)
        answer: bool = self.stub.IsActive(asked, timeout=DEADLINE_SECONDS).result
        return answer

    def dropped(self) -> int:
        """Return how many lines could not be written."""
        shown = dict(line.rsplit(" ", 1) for line in self.get("/metrics").splitlines())
        return int(float(shown[DROPPED]))

    def end(self) -> int:
        """Send SIGTERM and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """Close the connections to it."""
        self._pages.close()
        self._channel.close()


@contextmanager
def writing_to(
    stdout: Output,
    stderr: Output = subprocess.DEVNULL,
    command: Sequence[str] = test_serve.COMMAND,
    **settings: str,
) -> Iterator[Scaler]:
    """Run a scaler that writes there. Its ports are chosen, because its log may not be readable."""
    ports = free_port(), free_port()
    environ = test_serve.environment(
        GRPC_ADDRESS=f"127.0.0.1:{ports[0]}", HTTP_ADDRESS=f"127.0.0.1:{ports[1]}", **settings
    )
    with subprocess.Popen(command, env=environ, stdout=stdout, stderr=stderr) as process:
        try:
            scaler = Scaler(process, *ports)
            asyncio.run(until(scaler.is_ready, PATIENCE_SECONDS, "it is ready"))
            yield scaler
            scaler.close()
        finally:
            process.kill()


@contextmanager
def pipe(size: int = PIPE_BYTES) -> Iterator[tuple[TextIO, BinaryIO]]:
    """Give a pipe's ends; the test may close them earlier."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, size)
    with os.fdopen(reader) as read, os.fdopen(writer, "wb", buffering=0) as written:
        yield read, written


@contextmanager
def broken(how: str) -> Iterator[Scaler]:
    """Run a scaler whose output cannot be written, from its start or from the first call on."""
    with contextlib.ExitStack() as stack:
        reader, writer = stack.enter_context(pipe())
        if how == "full disk":
            writer = stack.enter_context(Path("/dev/full").open("wb"))
        if how == "no reader":
            reader.close()
        scaler = stack.enter_context(writing_to(writer, writer))
        if how == "reader ends":
            reader.close()
            writer.close()
        yield scaler


@pytest.mark.parametrize("how", ["full disk", "no reader", "reader ends", "reader hangs"])
def test_output_that_cannot_be_written_changes_no_answer_and_no_exit(how: str) -> None:
    with broken(how) as scaler:
        for number in range(20):
            assert scaler.refuse(f"refused-{number}") is REFUSED
            assert scaler.decide(f"decided-{number}")
        assert scaler.get("/healthz") == "ok\n"
        if how in {"full disk", "reader ends"}:
            assert scaler.dropped() >= 40
        assert scaler.end() == 0


def test_a_hanging_reader_of_the_error_output_does_not_stop_grpc(tmp_path: Path) -> None:
    """The library writes a line of its own for each handshake that fails."""
    authority = trustme.CA()
    pair = certificates.write(tmp_path, authority.issue_cert("127.0.0.1"))
    tls = {"GRPC_CERT_FILE": str(pair.cert), "GRPC_KEY_FILE": str(pair.key)}
    credentials = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    with pipe() as (_, writer), writing_to(subprocess.DEVNULL, writer, **tls) as scaler:
        address = "127.0.0.1", scaler.grpc_port
        for _ in range(3 * PIPE_BYTES // 200):
            with socket.create_connection(address, DEADLINE_SECONDS) as stranger:
                stranger.sendall(b"no TLS")
                with contextlib.suppress(ConnectionResetError):
                    assert stranger.recv(1) == b""
        with grpc.secure_channel(f"127.0.0.1:{scaler.grpc_port}", credentials) as channel:
            stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
            assert stub.GetMetricSpec(test_serve.reference(), timeout=DEADLINE_SECONDS)
        assert scaler.end() == 0


def test_no_flood_of_lines_when_file_descriptors_run_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as log, writing_to(log, log) as scaler:
        assert scaler.refuse("before") is REFUSED  # the channel is open
        taken = len(list(Path(f"/proc/{scaler.process.pid}/fd").iterdir()))
        resource.prlimit(scaler.process.pid, resource.RLIMIT_NOFILE, (taken + 4, taken + 4))
        address = "127.0.0.1", scaler.http_port
        strangers = [socket.create_connection(address, DEADLINE_SECONDS) for _ in range(40)]
        for number in range(20):
            assert scaler.refuse(f"meanwhile-{number}") is REFUSED
        for stranger in strangers:
            stranger.close()
        # asyncio looks again after a second.
        assert scaler.get("/healthz", PATIENCE_SECONDS) == "ok\n"
        assert scaler.end() == 0
    found = Counter(json.loads(line)["event"] for line in path.read_text().splitlines())
    assert found["trigger.refused"] == 21
    assert 1 <= found["library.logged"] <= 3
