"""The door for the JSON of servers: what is not read, and how that is said."""

import json

import msgspec
import pytest
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources import query_client
from keda_gpu_scaler.transport.client import Answer

ANY = Decoder(msgspec.Raw)


def answer(body: bytes, status: int = 200) -> Answer:
    return Answer(status, "application/json", body, limit_bytes=4096)


@pytest.mark.parametrize("body", [b"{}," * 40, b"[" * 140, b'"a":"",' * 260, b"0," * 520])
def test_more_values_than_usual_are_not_read(body: bytes) -> None:
    with pytest.raises(errors.SourceMalformedError, match=r"more than .* times .; expected fewer"):
        query_client.decoded(answer(body), ANY, "JSON")


def test_an_answer_about_many_pods_is_as_large_as_it_may_be() -> None:
    labels = {f"label_{number}": "a-usual-text-of-a-label" for number in range(10)}
    points = [[1_700_000_000 + 15 * number, "87"] for number in range(4)]
    usual = {"result": [{"metric": labels, "values": points}] * 8}
    body = json.dumps(usual, separators=(",", ":")).encode()
    assert len(body) > 3500
    assert query_client.decoded(answer(body), Decoder(), "JSON") == usual


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep = Answer(200, "application/json", b"[" * 100_000 + b"]" * 100_000)
    with pytest.raises(errors.SourceMalformedError, match="instead of a list"):
        query_client.decoded(deep, Decoder(), "a list")
