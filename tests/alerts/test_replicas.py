"""Every replica learns of each alert, and none waits for a replica that is gone."""

import asyncio
import socket

import httpx
import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import AlertUpdate
from keda_gpu_scaler.alerts.store import Key
from keda_gpu_scaler.transport import resolver
from testbed.processes import free_port, until
from tests.support import http_replies as web
from tests.support.alert_messages import BERT, alert, group
from tests.support.replicas import Replica, running

NOWHERE = socket.gaierror(socket.EAI_NONAME, "no such name")
FIRES = AlertUpdate(Key(BERT, "a"), "Busy", fires=True)


def three() -> list[Replica]:
    """Return three replicas that know all three addresses, their own included."""
    replicas = [Replica() for _ in range(3)]
    for replica in replicas:
        replica.targets = [each.url for each in replicas]
    return replicas


def answering(answers: list[frozenset[str] | OSError]) -> resolver.LookUp:
    """Return a lookup function that gives these answers in turn."""

    async def look_up(_url: httpx.URL) -> frozenset[str]:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    return look_up


def firing(replicas: list[Replica]) -> list[str | None]:
    return [replica.alerts.firing(BERT) for replica in replicas]


async def test_an_alert_that_one_of_three_hears_fires_in_all_when_it_is_answered() -> None:
    replicas = three()
    async with running(*replicas):
        answer = await replicas[1].receive(group(alert()))
        assert answer.status_code == 200
        assert firing(replicas) == ["Busy"] * 3
        await replicas[2].receive(group(alert(fires=False)))
        assert firing(replicas) == [None] * 3


async def test_what_a_replica_missed_it_learns_at_the_next_exchange() -> None:
    first = Replica()
    second = Replica([first.url], exchange_seconds=0.02)
    async with running(first, second):
        list(first.alerts.receive([FIRES]))  # not sent to the other replica

        async def knows() -> bool:
            return second.alerts.firing(BERT) == "Busy"

        await until(knows, 30, "the second replica has asked")


async def test_what_nobody_mentions_ends_by_itself_also_without_other_replicas() -> None:
    alone = Replica(exchange_seconds=0.02)
    async with running(alone):
        list(alone.alerts.receive([FIRES]))
        alone.clock.now += 3600

        async def forgotten() -> bool:
            return alone.alerts.records() == []

        await until(forgotten, 30, "the alert is forgotten")
    assert alone.asked is None


async def test_a_replica_that_is_gone_is_told_once_and_again_when_it_is_back() -> None:
    gone = Replica()
    replica = Replica([gone.url])
    async with running(replica):
        assert (replica.peers_changed, replica.asked) == ([(gone.url, False)], (0, 1))
        answer = await replica.receive(group(alert()))
        assert (answer.status_code, answer.text) == (200, "taken: 1\n")
        assert replica.peers_changed == [(gone.url, False)]
        async with running(gone):
            await replica.receive(group(alert()))
            assert gone.alerts.firing(BERT) == "Busy"
    assert (replica.peers_changed, replica.asked) == ([(gone.url, False), (gone.url, True)], (1, 0))


async def test_a_name_that_is_found_later_is_back_and_an_address_it_loses_is_no_loss() -> None:
    name, gone = "dns+http://replicas:8080", f"http://127.0.0.1:{free_port()}"
    other = Replica()
    lookups = [frozenset({other.url, gone}), frozenset({other.url})]
    replica = Replica([name], look_up=answering([NOWHERE, *lookups]))
    async with running(other, replica):
        await replica.receive(group(alert()))
        await replica.receive(group(alert()))
    assert replica.peers_changed == [(name, False), (name, True), (gone, False)]
    assert replica.asked == (1, 0)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (web.says("{}", 401), "401: it has another token"),
        (web.says("{}", 404), "404: it has no webhook"),
        (web.says("try later\n", 500), "500: try later"),
        (web.says("<html>"), "an answer of another kind: "),
        (web.says('{"alerts": 1}'), "an answer of another kind: expected the alerts that another"),
        (web.cuts(b'{"alerts":'), ""),
        (web.closes, ""),
    ],
)
async def test_what_is_no_replica_is_said_to_be_none(reply: web.Reply, words: str) -> None:
    async with web.HttpServer(reply) as server:
        replica = Replica([server.url])
        async with running(replica):
            assert replica.asked == (0, 1)
            assert replica.reasons[0].startswith(words)
            assert (await replica.receive(group(alert()))).status_code == 200
        await web.generators_closed()


@pytest.mark.slow
async def test_a_replica_that_hangs_is_waited_for_within_a_bound() -> None:
    async with web.HttpServer(web.hangs) as server:
        replica = Replica([server.url])
        async with asyncio.timeout(30), running(replica):
            assert replica.reasons == ["no answer within 2 s"]
        await web.generators_closed()


async def test_without_a_readable_token_nobody_is_asked() -> None:
    class Unreadable(Replica):
        def secret(self) -> str:
            raise errors.SettingsError("the webhook's token file cannot be read: gone")

    async with web.HttpServer(web.says('{"alerts": []}')) as server:
        replica = Unreadable([server.url])
        async with running(replica):
            assert replica.reasons == ["the webhook's token file cannot be read: gone"]
        assert server.requests == []


async def test_the_token_is_sent_and_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with web.HttpServer(web.says('{"alerts": []}')) as server:
        replica = Replica([server.url])
        async with running(replica):
            await replica.receive(group(alert()))
        assert [(request.method, request.path) for request in server.requests] == [
            ("GET", "/alerts"),
            ("POST", "/alerts"),
        ]
        assert {request.headers["authorization"] for request in server.requests} == {
            "Bearer s3cr3t-t0ken"
        }
