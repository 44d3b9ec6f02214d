"""What a snapshot of many pods costs: the calls beside its fetch, and memory.

No server takes part: a transport in the same process answers as Prometheus would. Calls during a
fetch are compared with calls without one, and the memory of a process that has fetched with that
before it did.
"""

import asyncio
import importlib
import json
import math
import random
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx

from benchmarks import processes, world
from benchmarks.comparison import Goal, Measured, Row
from benchmarks.processes import ServerError
from keda_gpu_scaler.cli.serve import keep_modules, share_interpreter
from keda_gpu_scaler.evaluator.shared_snapshot import SnapshotFetcher
from keda_gpu_scaler.evaluator.shared_source import EvidenceFetcher
from keda_gpu_scaler.query.promql_texts import ALIVE_LABEL, ON_TIME_LABEL
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.snapshot import Snapshot
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts

PODS, POINTS = 10_000, 8
_MIB = 2**20
STEP_SECONDS = 15.0
GPUS_PER_NODE = 8
AT = 1_790_000_010.0
_NAMESPACE = "ml"
_QUERY = SnapshotQuery(
    Signal.UTILIZATION,
    "auto",
    frozenset({_NAMESPACE}),
    span_seconds=POINTS * STEP_SECONDS,
    window_seconds=60.0,
)
_FETCHES = 3
"""The first one reads the last hour as well; the later ones are as each step has them."""
_LATEST = 0.99
_SUBQUERY = re.compile(r"\[(\w+):(\w+)\]$")


@dataclass(frozen=True, slots=True)
class Snapshots:
    """What snapshots cost; lists have one figure for each round."""

    called_seconds: list[float]
    """p99 of calls at KEDA's rate while one fetch follows the other."""
    undisturbed_seconds: list[float]
    """The same without one."""
    idle_bytes: int
    """What a process has in memory before it fetches, the scaler's modules loaded."""
    peak_bytes: int
    """The most it has had in memory after fetches, the last hour among them."""


async def measure(_directory: Path, rounds: int) -> Measured:
    """Measure each in processes of their own, in which nothing else happens."""
    called, undisturbed = await _in_a_process("benchmarks.beside", "serve", str(rounds))
    idle, peak = await _in_a_process("benchmarks.snapshots", str(PODS))
    found = Snapshots(called, undisturbed, idle, peak)
    return Measured(rows(found), raw=asdict(found))


def rows(found: Snapshots) -> list[Row]:
    """Return what has a goal."""
    return [
        Row(
            key="snapshots.calls",
            name=f"p99 of calls at KEDA's rate during a fetch of {PODS:,} pods",
            unit="ms",
            measured=[1000 * seconds for seconds in found.called_seconds],
            reference_name="without one",
            reference=[1000 * seconds for seconds in found.undisturbed_seconds],
            goal=Goal.FIGURE_AT_MOST,
            limit=150.0,
        ),
        Row(
            key=f"snapshots.peak-{PODS}",
            name=f"most memory after fetches of {PODS:,} pods",
            unit="MiB",
            measured=[found.peak_bytes / _MIB],
            reference_name="the process before them",
            reference=[found.idle_bytes / _MIB],
            goal=Goal.RATIO_AT_MOST,
            limit=2.0,
        ),
    ]


async def _in_a_process(*words: str) -> Any:  # noqa: ANN401 - what its function returns
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *words), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    if process.returncode != 0:
        raise ServerError(f"{' '.join(words)} ended with {process.returncode}")
    return json.loads(said)


def p99(found: Iterable[float]) -> float:
    """Return the p99 of figures."""
    ordered = sorted(found)
    return ordered[math.ceil(_LATEST * len(ordered)) - 1]


async def remember(pods: int) -> tuple[int, int]:
    """Return the bytes in memory before snapshots are fetched and kept, and at the most."""
    importlib.import_module("keda_gpu_scaler.app")  # what a scaler has loaded
    share_interpreter()
    keep_modules()
    idle = _memory().resident_bytes
    async with fetcher(Prometheus(pods)) as fetched:
        for number in range(_FETCHES):
            await fetched(AT + number * STEP_SECONDS)
        return idle, _memory().peak_bytes


def _memory() -> processes.Memory:
    return processes.memory(Path("/proc/self/status").read_text())


@asynccontextmanager
async def fetcher(
    prometheus: "Prometheus",
) -> AsyncIterator[Callable[[float], Coroutine[Any, Any, Snapshot]]]:
    """Yield what fetches a snapshot at an instant."""
    asked = source(prometheus, time.monotonic)
    evidence_fetcher = EvidenceFetcher("default", asked.ports(), facts.ignore)
    snapshot_fetcher = SnapshotFetcher(asked, evidence_fetcher)

    async def fetched(at: float) -> Snapshot:
        snapshot = await snapshot_fetcher.fetch(_QUERY, at)
        if snapshot.pod_count != prometheus.pods:
            raise ServerError(f"{snapshot.pod_count} of {prometheus.pods} pods in a snapshot")
        return snapshot

    try:
        yield fetched
    finally:
        await asked.close()


def source(
    prometheus: "Prometheus", clock: Callable[[], float], observe: facts.Observer = facts.ignore
) -> PrometheusSource:
    """Return a source that this Prometheus answers."""
    settings = PrometheusSettings(
        url="http://prometheus:9090", step_seconds=STEP_SECONDS, timeout_seconds=60
    )
    client = PrometheusClient("default", settings, observe, clock, transport=prometheus)
    return PrometheusSource(client)


class Prometheus(httpx.AsyncBaseTransport):
    """Answers a snapshot's queries about made-up pods."""

    def __init__(self, pods: int, clock: Callable[[], float] = time.time) -> None:
        """Answer about so many pods: the answer is made while it is sent, in little memory.

        Args:
            pods: how many there are.
            clock: tells the time of the server.
        """
        self.pods, self._clock = pods, clock
        self._prepared: dict[float, list[bytes]] = {}

    def prepare(self, *instants: float) -> None:
        """Make the answers about these instants now."""
        points = round(2 * evaluation_times.HISTORY_STEP_SECONDS / STEP_SECONDS)
        self._prepared = {at: list(matrix(self.pods, at, points, STEP_SECONDS)) for at in instants}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a query."""
        form = parse_qs((await request.aread()).decode())
        text = form["query"][0]
        if text == "time()":
            now = self._clock()
            return httpx.Response(200, stream=_Parts([_data("scalar", [now, f"{now}"])]))
        at = float(form["time"][0])
        if (asked := _SUBQUERY.search(text)) is not None:
            span, step = map(durations.parse, asked.groups())
            made = matrix(self.pods, at, round(span / step), step)
            return httpx.Response(200, stream=_Parts(self._prepared.get(at, made)))
        return httpx.Response(200, stream=_Parts([_vector(at, text)]))


class _Parts(httpx.AsyncByteStream):
    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


def matrix(pods: int, at: float, points: int, step_seconds: float) -> Iterator[bytes]:
    """Yield what Prometheus answers about a GPU of each pod and the targets, in parts."""
    drawn = random.Random(1)  # noqa: S311 - made-up loads
    times = [f"{at - step_seconds * back:.3f}".rstrip("0").rstrip(".") for back in range(points)]
    times.reverse()
    begin = b'{"status":"success","data":{"resultType":"matrix","result":['
    for first in range(0, pods, GPUS_PER_NODE):
        node = first // GPUS_PER_NODE
        target = {"instance": f"10.0.{node // 250}.{node % 250 + 1}:9400", "job": "dcgm-exporter"}
        scraped = [[time, f"{float(time) - node % 15 - 0.877:.3f}"] for time in times]
        rows = [_row(target, scraped)]
        for gpu in range(min(GPUS_PER_NODE, pods - first)):
            number = first + gpu
            labels = {
                "UUID": f"GPU-{uuid.UUID(int=drawn.getrandbits(128))}",
                "__name__": "DCGM_FI_DEV_GPU_UTIL",
                "exported_namespace": _NAMESPACE,
                "exported_pod": world.Trigger(number // 2).pods[number % 2],
                "gpu": f"{gpu}",
            }
            rows.append(
                _row(labels | target, [[time, f"{drawn.randint(0, 100)}"] for time in times])
            )
        yield begin + ",".join(rows).encode()
        begin = b","
    yield b"]}}"


def _row(labels: Mapping[str, str], points: Iterable[Iterable[str]]) -> str:
    said = ",".join(f'[{time},"{value}"]' for time, value in points)
    return f'{{"metric":{json.dumps(labels, separators=(",", ":"))},"values":[{said}]}}'


def _vector(at: float, text: str) -> bytes:
    """Return the answer to another query: no pod is stale, and the source answers in time."""
    marks = [label for label in (ALIVE_LABEL, ON_TIME_LABEL) if f'"{label}"' in text]
    elements = [{"metric": {label: "1"}, "value": [at, "1"]} for label in marks]
    return _data("vector", elements)


def _data(kind: str, result: object) -> bytes:
    data = {"resultType": kind, "result": result}
    return json.dumps({"status": "success", "data": data}).encode()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(remember(int(sys.argv[1])))))
