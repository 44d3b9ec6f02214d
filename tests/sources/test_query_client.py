"""Queries to one server: which facts they become, and which answers are too much to read."""

import asyncio
import json

import msgspec
import pytest
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources import query_client
from keda_gpu_scaler.sources.query_client import QueryClient
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.http_client import HttpAnswer
from testbed.clocks import Clock


async def test_a_query_is_one_fact_unless_a_fault_of_ours_ends_it() -> None:
    seen: list[facts.Fact] = []
    settings = PrometheusSettings(url="http://prometheus")
    client = QueryClient("default", settings, seen.append, Clock())
    with client.reported("snapshot"):
        pass
    with pytest.raises(KeyError), client.reported("snapshot"):
        raise KeyError("a fault")
    with pytest.raises(asyncio.CancelledError), client.reported("snapshot"):
        raise asyncio.CancelledError
    await client.close()
    assert seen == [
        facts.Queried("default", "snapshot", 0.0, None),
        facts.Queried("default", "snapshot", 0.0, facts.GIVEN_UP),
    ]


def answer(body: bytes) -> HttpAnswer:
    return HttpAnswer(200, "application/json", body, limit_bytes=4096)


@pytest.mark.parametrize("body", [b"{}," * 40, b"[" * 140, b'"a":"",' * 260, b"0," * 520])
def test_more_values_than_usual_are_not_read(body: bytes) -> None:
    with pytest.raises(errors.SourceMalformedError, match=r"more than .* times .; expected fewer"):
        query_client.decoded(answer(body), Decoder(msgspec.Raw), "JSON")


def test_an_answer_about_many_pods_is_as_large_as_it_may_be() -> None:
    labels = {f"label_{number}": "a-usual-text-of-a-label" for number in range(10)}
    points = [[1_700_000_000 + 15 * number, "87"] for number in range(4)]
    usual = {"result": [{"metric": labels, "values": points}] * 8}
    body = json.dumps(usual, separators=(",", ":")).encode()
    assert len(body) > 3500
    assert query_client.decoded(answer(body), Decoder(), "JSON") == usual
