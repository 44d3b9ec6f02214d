"""A tenant's PromQL costs another tenant nothing: asked of a process, over its own ports."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import pytest

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.cli.test_serve import PATIENCE_SECONDS, serving

DEADLINE_SECONDS = 5.0
"""Of every call; a process that is kept busy answers none of them in time."""

_WIDE = r'{a=~"\\w{200}"}'
_SLOW = {
    "three patterns and a mistake": f"{'+'.join([_WIDE] * 3)} x y",
    "ten patterns and a mistake": f"{'+'.join([_WIDE] * 10)} x y",
    "many patterns": "+".join([_WIDE] * 66),
    "patterns of every letter": "x{" + ",".join([r"a=~`\pL{9}`"] * 99) + "}",
    "one huge pattern": "x{a=~`" + r"\pL" * 640 + "`}",
    "patterns of a function": "+".join([r'label_replace(x,"a","","b",`\pL{9}`)'] * 30),
    "comments that end with a carriage return": "#\r".join(["x+"] * 390) + "x",
    "minuses": "-" * 399 + "x",
    "quotes": '"\\' * 1000,
}


@dataclass(frozen=True, slots=True)
class Scaler:
    """A process, as KEDA and the kubelet see it."""

    stub: Any
    web: httpx.Client

    def refusal(self, query: str) -> tuple[grpc.StatusCode, str] | None:
        """Return how a tenant's query is refused, if it is."""
        metadata = {"workload": "bert", "threshold": "70", "query": query}
        asked = pb.ScaledObjectRef(name="bert", namespace="tenant", scalerMetadata=metadata)
        try:
            self.stub.GetMetricSpec(asked, timeout=DEADLINE_SECONDS)
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        return None

    def answers_others(self) -> bool:
        """Ask for another tenant's spec, and whether the process lives."""
        metadata = {"workload": "gpt", "threshold": "70"}
        asked = pb.ScaledObjectRef(name="gpt", namespace="other", scalerMetadata=metadata)
        spec = self.stub.GetMetricSpec(asked, timeout=DEADLINE_SECONDS).metricSpecs[0]
        return spec.targetSize == 70 and self.web.get("/healthz").status_code == 200


@pytest.fixture(scope="module")
def scaler() -> Iterator[Scaler]:
    with serving(SCRAPE_TARGETS="", PROMETHEUS_URL="http://127.0.0.1:1") as (process, ports):
        address = f"127.0.0.1:{ports['grpc_port']}"
        base = f"http://127.0.0.1:{ports['http_port']}"
        with (
            grpc.insecure_channel(address) as channel,
            httpx.Client(base_url=base, timeout=DEADLINE_SECONDS, trust_env=False) as web,
        ):
            yield Scaler(externalscaler_pb2_grpc.ExternalScalerStub(channel), web)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize("query", _SLOW.values(), ids=_SLOW)
def test_no_query_keeps_the_process_from_answering_others(scaler: Scaler, query: str) -> None:
    refused = scaler.refusal(query)
    assert refused is None or refused[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert scaler.answers_others()
