"""GetMetrics over mutual TLS next to the same in plaintext, by the same client in turns.

Each turn has one connection, which is kept: what is compared is encryption, beside one handshake.
All triggers are answered from the decision of the same poll, so that a call has as little else to
do as there is.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import trustme

from benchmarks import ghz, processes, throughput, world
from benchmarks.ghz import Run, Trust
from benchmarks.processes import Server
from benchmarks.throughput import Compared, Contender
from tests.support import certificates
from tests.support.prometheus import PrometheusServer

PLAINTEXT, MUTUAL = "plaintext", "mutual TLS"
_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Secured:
    """What was measured in plaintext and over TLS."""

    runs: dict[str, list[Run]]
    cpu_seconds: dict[str, float]
    """CPU time of each scaler for all of its turns."""

    @property
    def compared(self) -> Compared:
        """TLS next to plaintext."""
        return throughput.compared(self.runs[MUTUAL], self.runs[PLAINTEXT])

    @property
    def cpu_ratio(self) -> float:
        """CPU time over TLS, for each second that plaintext takes."""
        return self.cpu_seconds[MUTUAL] / self.cpu_seconds[PLAINTEXT]


async def measure(directory: Path, rounds: int, requests: int) -> Secured:
    """Ask two scalers the same, one of them over TLS.

    Args:
        directory: for the data of a Prometheus, certificates, and the requests of the client.
        rounds: how often each has its turn.
        requests: how many requests one turn has.
    """
    calls = directory / "calls.json"
    ghz.write_calls(calls, world.triggers(throughput.WORKLOADS))
    trust, settings = _trust(directory)
    async with AsyncExitStack() as stack:
        prometheus = await stack.enter_async_context(PrometheusServer(directory))
        await world.fill(prometheus, throughput.WORKLOADS, throughput.AHEAD_SECONDS)
        plain = await stack.enter_async_context(processes.scaler(prometheus.url))
        secure = await stack.enter_async_context(processes.scaler(prometheus.url, settings))
        contenders = {
            PLAINTEXT: Contender(plain.address, calls, requests),
            MUTUAL: Contender(secure.address, calls, requests, trust=trust),
        }
        return await _measure(contenders, {PLAINTEXT: plain, MUTUAL: secure}, rounds)


async def _measure(
    contenders: Mapping[str, Contender], servers: Mapping[str, Server], rounds: int
) -> Secured:
    for one in contenders.values():
        await throughput.check(one)
    before = {name: server.cpu_seconds() for name, server in servers.items()}
    runs = await throughput.warm_turns(contenders, rounds)
    used = {name: server.cpu_seconds() - before[name] for name, server in servers.items()}
    for one in contenders.values():
        await throughput.check(one)
    return Secured(runs, used)


def _trust(directory: Path) -> tuple[Trust, dict[str, str]]:
    """Write certificates; return those of a client, and the scaler's settings."""
    authority = trustme.CA()
    ca = directory / "ca.crt"
    ca.write_bytes(authority.cert_pem.bytes())
    server = certificates.write(directory, authority.issue_cert(_HOST), "server")
    client = certificates.write(directory, authority.issue_cert("ghz"), "client")
    settings = {
        "GRPC_CERT_FILE": str(server.cert),
        "GRPC_KEY_FILE": str(server.key),
        "GRPC_CLIENT_CA_FILE": str(ca),
    }
    return Trust(ca, client.cert, client.key), settings
