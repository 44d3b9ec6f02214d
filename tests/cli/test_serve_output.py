"""Nothing depends on who reads what `serve` writes into its log."""

import contextlib
import fcntl
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

import grpc
import pytest
import trustme

from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from testbed.triggers import reference
from tests.support import certificates
from tests.support.serving import (
    DEADLINE_SECONDS,
    PATIENCE_SECONDS,
    Scaler,
    writing_to,
)

pytestmark = pytest.mark.slow

PIPE_BYTES = 4096
"""The smallest pipe that Linux has: full after a few lines."""
REFUSED = grpc.StatusCode.INVALID_ARGUMENT
DROPPED = "keda_gpu_scaler_log_lines_dropped_total"


def refuse(scaler: Scaler, name: str) -> grpc.StatusCode:
    """Ask about a wrong trigger, which is a line of the log; return the status."""
    with pytest.raises(grpc.RpcError) as failed:
        scaler.specify(name, **{"x" * 100: "-"})
    code: grpc.StatusCode = failed.value.code()
    return code


def decide(scaler: Scaler, name: str) -> bool:
    """Ask about a trigger for the first time, which is a line too; return the answer.

    Its load is unknown. To the HPA, which sets a deadline, it is then active.
    """
    answer: bool = scaler.stub.IsActive(reference(name), timeout=DEADLINE_SECONDS).result
    return answer


def dropped(scaler: Scaler) -> int:
    """Return how many lines could not be written."""
    shown = dict(line.rsplit(" ", 1) for line in scaler.get("/metrics").splitlines())
    return int(float(shown[DROPPED]))


@contextmanager
def pipe(size: int = PIPE_BYTES) -> Iterator[tuple[TextIO, BinaryIO]]:
    """Give a pipe's ends."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, size)
    with os.fdopen(reader) as read, os.fdopen(writer, "wb", buffering=0) as written:
        yield read, written


@pytest.mark.parametrize("is_full", [True, False], ids=["full disk", "reader hangs"])
def test_output_that_cannot_be_written_changes_no_answer_and_no_exit(*, is_full: bool) -> None:
    with pipe() as (_, hanging), Path("/dev/full").open("wb") as full:
        output = full if is_full else hanging
        with writing_to(output, output) as scaler:
            for number in range(20):
                assert refuse(scaler, f"refused-{number}") is REFUSED
                assert decide(scaler, f"decided-{number}")
            assert scaler.get("/healthz") == "ok\n"
            ends_at = time.monotonic() + PATIENCE_SECONDS
            while is_full and dropped(scaler) < 40:
                assert time.monotonic() < ends_at, "a thread of its own drops them"
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
            assert stub.GetMetricSpec(reference(), timeout=DEADLINE_SECONDS)
        assert scaler.end() == 0
