"""Everything that is bounded in bytes, at its edge at once: below the chart's limit, and alive."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keda_gpu_scaler.evaluator.shared_snapshot import OWN_QUERIES_PER_NAMESPACE
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from testbed.triggers import reference
from tests.soak.process import Scaler
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer, Request

CHART = Path(__file__).parents[3] / "deploy/helm/keda-gpu-scaler/values.yaml"
DEADLINE_SECONDS = 15.0
"""Of every call that has to be answered meanwhile, also where other tests run on the machine."""
LIFE_SECONDS = 600.0
ANSWERS = {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
"""What a call may get meanwhile. gRPC cancels one that waits for the event loop for 30 s."""
MIB = 2**20
ANSWER_BYTES = 31 * MIB
"""A little below what an answer may have."""
SIGNALS = ("utilization", "power", "memory", "temperature", "memory-used")
STEPS_OF_OTHER_PODS = 30
"""Each step has a request or two of each query; remembered, their pods would take 730 MiB."""
EMOJI = "\U0001f600"


def limit_bytes() -> int:
    """Return the chart's limit of memory."""
    text = yaml.safe_load(CHART.read_text())["resources"]["limits"]["memory"]
    assert text.endswith("Mi")
    return int(text.removesuffix("Mi")) * MIB


def many(one: bytes) -> bytes:
    """Return an answer of the largest size that consists of one part again and again."""
    head = b'{"status":"success","data":{"resultType":"matrix","result":['
    return head + b",".join([one] * (ANSWER_BYTES // (len(one) + 1))) + b"]}}"


def rows() -> bytes:
    """Return an answer of the largest size, each of whose rows is about another GPU."""
    now = int(time.time())
    values = json.dumps([[now - ago, "90"] for ago in range(270, 0, -15)])
    found, size, number = [], 0, 0
    while size < ANSWER_BYTES:
        labels = {
            "__name__": "DCGM_FI_DEV_GPU_UTIL",
            "exported_namespace": "ml",
            "exported_pod": f"bert-7b6667bd9-{number:05}",
            "UUID": f"GPU-{number:032}",
            "job": "dcgm-exporter",
            "instance": f"10.0.{number // 250}.{number % 250}:9400",
        }
        found.append(f'{{"metric":{json.dumps(labels)},"values":{values}}}')
        size, number = size + len(found[-1]) + 1, number + 1
    body = f'{{"status":"success","data":{{"resultType":"matrix","result":[{",".join(found)}]}}}}'
    return body.encode()


@pytest.fixture(scope="module")
def answers() -> dict[str, web.Reply]:
    long = json.dumps({"status": "error", "error": 'cannot evaluate "" for (' * 60_000})
    return {
        "objects": web.says(many(b"{}")),
        "lists": web.says(many(b"[[[]]]")),
        "rows": web.says(rows()),
        "a long error": web.says(long, 422),
    }


@asynccontextmanager
async def serving(url: str, directory: Path) -> AsyncIterator[Scaler]:
    settings = {"PROMETHEUS_URL": url, "PROMETHEUS_STEP": "1s", "PROMETHEUS_TIMEOUT": "30s"}
    async with Scaler(directory, settings=settings, life_seconds=LIFE_SECONDS) as scaler:
        yield scaler


class Client:
    """What KEDA, the kubelet and an attacker do."""

    def __init__(self, scaler: Scaler, channel: grpc.aio.Channel) -> None:
        self.scaler = scaler
        self.stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self.health = health_pb2_grpc.HealthStub(channel)

    async def is_alive(self) -> None:
        """See that another tenant's call and the probe are answered in time."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await self.scaler.page("/healthz") == "ok\n"
        await self.spec("other", "gpt", workload="gpt")

    async def spec(self, namespace: str, name: str, **metadata: str) -> Any:
        """Ask for a spec, which needs no source."""
        asked = reference(name, namespace, activationThreshold="5", **metadata)
        return await self.stub.GetMetricSpec(asked, timeout=DEADLINE_SECONDS)

    async def look(self, namespace: str, name: str, **metadata: str) -> None:
        """Ask whether something is active; what the source says is no answer."""
        asked = reference(name, namespace, activationThreshold="5", **metadata)
        call = self.stub.IsActive(asked, timeout=LIFE_SECONDS)
        code = await call.code()
        assert code in ANSWERS, await call.details()
        assert code is not grpc.StatusCode.OK or (await call).result


def other_pods(at: float, pods: int = 4_000) -> list[dict[str, object]]:
    """Return the elements of `count_values by (namespace) ("pod", time() … @ end())` at an instant.

    At each instant other pods, all of them at all points.
    """
    return [
        {"metric": {"namespace": "ml", "pod": f"{at:.0f}{number:06}"}, "values": [[at, "90"]]}
        for number in range(pods)
    ]


@pytest.mark.slow(minutes=2)
async def test_custom_queries_that_name_other_pods_at_each_step(tmp_path: Path) -> None:
    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        at, query = float(request.form.get("time", time.time())), request.form["query"]
        if query == "time()":
            answer = web.api("scalar", [at, str(at)])
        elif query.startswith("({"):
            answer = web.api("matrix", other_pods(at))
        else:
            answer = web.api("matrix" if query.endswith("]") else "vector", [])
        await answer(request, writer)

    async with (
        HttpServer(reply) as source,
        serving(source.url, tmp_path) as scaler,
        grpc.aio.insecure_channel(f"127.0.0.1:{scaler.grpc_port}") as channel,
    ):
        client = Client(scaler, channel)
        names = [f"x{number}" for number in range(OWN_QUERIES_PER_NAMESPACE)]
        while len(source.requests) < STEPS_OF_OTHER_PODS * len(names):
            await asyncio.gather(*(client.look("ml", name, query=name) for name in names))
            await client.is_alive()
        size = await scaler.size()
    assert size.peak_bytes < limit_bytes()


@pytest.mark.slow(minutes=1)
@pytest.mark.parametrize(
    "kind",
    [
        "rows",
        *(
            pytest.param(kind, marks=pytest.mark.nightly)
            for kind in ("objects", "lists", "a long error")
        ),
    ],
)
async def test_every_bound_at_its_edge_at_once(
    answers: dict[str, web.Reply], kind: str, tmp_path: Path
) -> None:
    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        is_clock = request.form.get("query") == "time()"
        now = time.time()
        clock = web.api("scalar", [now, str(now)])
        await (clock if is_clock else answers[kind])(request, writer)

    async with (
        HttpServer(reply) as source,
        serving(source.url, tmp_path) as scaler,
        grpc.aio.insecure_channel(f"127.0.0.1:{scaler.grpc_port}") as channel,
    ):
        client = Client(scaler, channel)
        for begin in range(0, 9_000, 50):
            large = {"scalerAddress": EMOJI + "x" * 12_000}
            calls = (
                client.spec(
                    "ml",
                    f"bert-{number}",
                    demandQuery=f'sum(x{{a="{number}{EMOJI * 400}"}})',
                    **large,
                )
                for number in range(begin, begin + 50)
            )
            await asyncio.gather(*calls)
        looks = [
            asyncio.create_task(client.look("ml", f"bert-{signal}", signal=signal))
            for signal in SIGNALS
        ]
        looks += [
            asyncio.create_task(client.look(f"team-{number % 4}", "bert", query=f"x{number}"))
            for number in range(600)
        ]
        while not all(look.done() for look in looks):
            await client.is_alive()
        await asyncio.gather(*looks)
        await client.is_alive()
        assert (await client.health.Check(health_pb2.HealthCheckRequest())).status == 1
        size = await scaler.size()
    assert len(source.requests) > len(SIGNALS)
    assert size.peak_bytes < limit_bytes()
