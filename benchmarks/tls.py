"""GetMetrics over mutual TLS next to the same in plaintext, by the same client in turns.

Each turn has one connection, which is kept: what is compared is encryption, beside one handshake.
All triggers are answered from the decision of the same poll, so that a call has as little else to
do as there is.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path

import trustme

from benchmarks import ghz, processes, throughput, world
from benchmarks.comparison import Measured, Plan, Row
from benchmarks.ghz import Trust
from benchmarks.throughput import Contender, Turn, Turns
from tests.support import certificates
from tests.support.prometheus import PrometheusServer

PLAINTEXT, MUTUAL = "plaintext", "mutual TLS"
_HOST = "127.0.0.1"


async def measure(directory: Path, plan: Plan) -> Measured:
    """Ask two scalers the same, one of them over TLS."""
    calls = directory / "calls.json"
    ghz.write_calls(calls, world.triggers(throughput.WORKLOADS))
    trust, settings = _trust(directory)
    async with AsyncExitStack() as stack:
        prometheus = await stack.enter_async_context(PrometheusServer(directory))
        await world.fill(prometheus, throughput.WORKLOADS, throughput.AHEAD_SECONDS)
        plain = await stack.enter_async_context(processes.scaler(prometheus.url))
        secure = await stack.enter_async_context(processes.scaler(prometheus.url, settings))
        contenders = {
            PLAINTEXT: Contender(plain, [calls]),
            MUTUAL: Contender(secure, [calls], trust=trust),
        }
        for one in contenders.values():
            await throughput.check(one)
        turns = await throughput.warm_turns(contenders, plan.rounds)
        for one in contenders.values():
            await throughput.check(one)
    raw = {name: [asdict(one) for one in found] for name, found in turns.items()}
    return Measured(rows(turns), raw=raw)


def rows(turns: Turns) -> list[Row]:
    """Return what TLS costs; it has no goal."""
    figures: dict[str, tuple[str, Callable[[Turn], float]]] = {
        "rate": ("requests per second", lambda one: one.run.requests_per_second),
        "p99": ("ms", lambda one: 1000 * one.run.p99_seconds),
        "cpu": ("ms", lambda one: one.cpu_ms),
    }
    return [
        Row(
            key=f"tls.{key}",
            name=f"GetMetrics over mutual TLS: {'CPU time of a call' if key == 'cpu' else key}",
            unit=unit,
            measured=[figure(one) for one in turns[MUTUAL]],
            reference_name="the same in plaintext",
            reference=[figure(one) for one in turns[PLAINTEXT]],
        )
        for key, (unit, figure) in figures.items()
    ]


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
