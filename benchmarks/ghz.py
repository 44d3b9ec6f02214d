"""The outside client that measures: how it is called, and what its report says.

A report with any status but OK is an error: the answers were not the expected ones.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf.json_format import MessageToDict

from benchmarks.world import Trigger
from tests.support import programs

_ROOT = Path(__file__).parents[1]
PROTO = _ROOT / "proto" / "externalscaler.proto"
CALL = "externalscaler.ExternalScaler/GetMetrics"
CONCURRENCY = 10
"""Calls under way at once, on one connection: KEDA shares one, and the HPA has 5 workers."""
LONGEST_RUN_SECONDS = 60
_NANOSECONDS = 1e9
_P99 = 99


class GhzError(Exception):
    """The client is missing, or did not get the answers it asked for."""


class Trust(NamedTuple):
    """The files of a client that speaks mutual TLS."""

    ca: Path
    cert: Path
    key: Path

    @property
    def credentials(self) -> grpc.ChannelCredentials:
        """The same for a client of our own."""
        ca, cert, key = (each.read_bytes() for each in self)
        return grpc.ssl_channel_credentials(ca, key, cert)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run measured."""

    requests: int
    requests_per_second: float
    p99_seconds: float


def write_calls(path: Path, triggers: Iterable[Trigger]) -> None:
    """Write one request per trigger: the client sends them in turn."""
    path.write_text(json.dumps([MessageToDict(one.request()) for one in triggers]))


async def run(address: str, calls: Path, requests: int, trust: Trust | None = None) -> Run:
    """Send this many requests to one server and return what came of it.

    Raises:
        GhzError: not every answer was OK, or the client failed.
    """
    client = await asyncio.create_subprocess_exec(
        *_command(address, calls, requests, trust),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LONGEST_RUN_SECONDS):
            output, _ = await client.communicate()
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()
    if client.returncode:
        raise GhzError(f"ghz ended with status {client.returncode}; what it said is above")
    return parse(output, requests)


def parse(output: bytes | str, requests: int) -> Run:
    """Read the report of one run.

    Raises:
        GhzError: it is not about this many requests that were all answered with OK.
    """
    try:
        said: dict[str, Any] = json.loads(output)
        codes, latencies = said["statusCodeDistribution"], said["latencyDistribution"]
        slow = [one["latency"] for one in latencies if one["percentage"] == _P99]
        run = Run(said["count"], float(said["rps"]), slow[0] / _NANOSECONDS)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise GhzError(f"not a report of ghz: {output[:200]!r}") from error
    if codes != {"OK": requests} or run.requests != requests:
        raise GhzError(f"expected {requests} answers with OK, got {codes}")
    return run


def _command(address: str, calls: Path, requests: int, trust: Trust | None) -> Sequence[str]:
    if trust is None:
        secured = ["--insecure"]
    else:
        secured = [f"--cacert={trust.ca}", f"--cert={trust.cert}", f"--key={trust.key}"]
    return (
        programs.path("ghz"),
        *secured,
        f"--proto={PROTO}",
        f"--call={CALL}",
        f"--data-file={calls}",
        # The requests are what the file says: no work of the client's own in between.
        "--disable-template-functions",
        "--disable-template-data",
        f"--concurrency={CONCURRENCY}",
        "--connections=1",
        f"--total={requests}",
        "--format=json",
        address,
    )
