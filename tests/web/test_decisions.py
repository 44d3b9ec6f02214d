"""What other replicas ask about decisions, over HTTP: who may, and how much at once."""

import pytest

from keda_gpu_scaler.evaluator.peer_decisions import ASKED_AT_ONCE, LONGEST_BYTES
from tests.support.webhooks import Hook, serving

ASKED = {"namespace": "ml", "scaled_object": "bert", "spec": "a" * 64}


async def test_of_what_nobody_asks_here_nothing_is_known() -> None:
    async with serving(Hook()) as client:
        answer = await client.post("/decisions", json={"triggers": [ASKED]})
    assert (answer.status_code, answer.json()) == (200, {"decisions": []})


@pytest.mark.parametrize("token", ["Bearer wrong", "", "Basic czpz"])
async def test_decisions_are_for_those_who_know_the_token(token: str) -> None:
    async with serving(Hook()) as client:
        answer = await client.post("/decisions", content=b"[", headers={"authorization": token})
    assert answer.status_code == 401


async def test_without_a_readable_token_nothing_is_told() -> None:
    async with serving(Hook(token=None)) as client:
        answer = await client.post("/decisions", json={"triggers": []})
    assert answer.status_code == 503


async def test_without_a_webhook_there_are_no_decisions() -> None:
    async with serving(None) as client:
        answer = await client.post("/decisions", json={"triggers": []})
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[" * 2000, 400),
        (b"[]", 400),
        (b'{"triggers": [{"namespace": "ml"}]}', 400),
        (b'{"triggers": [' + b"1," * ASKED_AT_ONCE + b"1]}", 400),
        (b" " * (LONGEST_BYTES + 1), 413),
    ],
)
async def test_what_no_replica_asks_is_refused(body: bytes, status: int) -> None:
    async with serving(Hook()) as client:
        answer = await client.post("/decisions", content=body)
    assert answer.status_code == status


async def test_a_replica_is_asked_and_not_read() -> None:
    async with serving(Hook()) as client:
        assert (await client.get("/decisions")).status_code == 405
