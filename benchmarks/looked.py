"""What a look at the status page costs: CPU time of the scaler, next to a scrape of it.

The same process shows the same triggers as a page, as JSON and as metrics, in turns. Each turn is
several requests.
"""

import asyncio
from pathlib import Path
from statistics import median

import grpc
import httpx

from benchmarks import processes, throughput, world
from benchmarks.comparison import Detail, Measured, Plan, Row
from benchmarks.processes import Server, ServerError
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.support.processes import free_port
from tests.support.prometheus import PrometheusServer

TRIGGERS = 1000
"""As many as the page shows at the most."""
AT_ONCE = 50
"""So many calls are under way while the triggers become known."""
REQUESTS = 10
"""Of one turn."""
PAGE, JSON, SCRAPE = "the page", "the list as JSON", "/metrics"


async def measure(directory: Path, plan: Plan) -> Measured:
    """Let a scaler know of triggers, and look at them in turns."""
    used, sent = await look(directory, TRIGGERS, plan.rounds)
    return Measured(rows(used), [detail(used, sent)], {"cpu_seconds": used, "bytes": sent})


def rows(used: dict[str, list[float]]) -> list[Row]:
    """Return each kind of request next to a scrape; it has no goal."""
    return [
        Row(
            key=f"looked.{key}",
            name=f"one look at {TRIGGERS:,} triggers, CPU time: {name}",
            unit="ms",
            measured=[1000 * one for one in used[name]],
            reference_name="/metrics of the same process",
            reference=[1000 * one for one in used[SCRAPE]],
        )
        for key, name in (("page", PAGE), ("json", JSON))
    ]


def detail(used: dict[str, list[float]], sent: dict[str, int]) -> Detail:
    """Return what one request costs."""
    head = [f"one look at {TRIGGERS:,} triggers", "CPU time", "size"]
    cells = [
        [name, f"{1000 * median(seconds):.0f} ms", f"{sent[name] / 2**20:.1f} MiB"]
        for name, seconds in used.items()
    ]
    return Detail("looks", "What a look at the triggers costs the scaler", head, cells)


async def look(
    directory: Path, triggers: int, rounds: int
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Return the CPU seconds of one request in each round, and the bytes of its answer.

    Args:
        directory: for the data of a Prometheus.
        triggers: how many the page shows; a multiple of the benchmarks' workloads.
        rounds: how often each kind of request has its turn.
    """
    asked = world.triggers(throughput.WORKLOADS, triggers // throughput.WORKLOADS)
    port = free_port()
    settings = {"HTTP_ADDRESS": f"127.0.0.1:{port}"}
    async with (
        PrometheusServer(directory) as prometheus,
        processes.scaler(prometheus.url, settings) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        await world.fill(prometheus, throughput.WORKLOADS, throughput.AHEAD_SECONDS)
        await _ask(server, asked)
        used: dict[str, list[float]] = {PAGE: [], JSON: [], SCRAPE: []}
        sent: dict[str, int] = {}
        for _ in range(rounds):
            for name, figures in used.items():
                before = server.cpu_seconds()
                for _ in range(REQUESTS):
                    sent[name] = await _look(client, name, len(asked))
                figures.append((server.cpu_seconds() - before) / REQUESTS)
    return used, sent


async def _ask(server: Server, asked: list[world.Trigger]) -> None:
    """Ask about each trigger once; each answer has to be right."""
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        for begin in range(0, len(asked), AT_ONCE):
            part = asked[begin : begin + AT_ONCE]
            answers = await asyncio.gather(*(stub.GetMetrics(one.request()) for one in part))
            for one, answer in zip(part, answers, strict=True):
                found = [value.metricValueFloat for value in answer.metricValues]
                if found != [one.value]:
                    raise ServerError(f"{one.workload}: answered {found}, expected {one.value}")


async def _look(client: httpx.AsyncClient, name: str, triggers: int) -> int:
    """Request something; return its size."""
    path = {PAGE: "/", JSON: "/api/v1/triggers", SCRAPE: "/metrics"}[name]
    answer = await client.get(path)
    mark = {PAGE: b'<th scope="row">', JSON: b'"scaled_object":', SCRAPE: b"_trigger_average"}[name]
    if answer.status_code != httpx.codes.OK or answer.content.count(mark) < triggers:
        raise ServerError(f"{path}: HTTP {answer.status_code}, and not all {triggers} triggers")
    return len(answer.content)
