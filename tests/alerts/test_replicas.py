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
from tests.support.replicas import Replica, forever, running

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


async def test_what_a_replica_did_not_answer_it_is_told_again_when_it_is_back() -> None:
    gone, other = Replica(), Replica()
    replica = Replica([gone.url, other.url])
    async with running(other, replica):
        async with running(gone):
            await replica.peers.meet()
            await replica.receive(group(alert(fingerprint="a")))
        await replica.receive(group(alert(fingerprint="a", fires=False)))
        await replica.receive(group(alert(fingerprint="b")))
        await replica.peers.meet()
        assert replica.asked == (1, 1)
        async with running(gone):
            # A later alert that reaches it does not stand for the earlier ones.
            await replica.receive(group(alert(fingerprint="c")))
            await replica.peers.meet()
            known = {record.key.alert: record.fires for record in gone.alerts.records()}
            assert known == {"a": False, "b": True, "c": True}
        assert (len(other.alerts.records()), replica.asked) == (3, (2, 0))


async def test_a_replica_that_has_answered_is_asked_no_more() -> None:
    async with web.HttpServer(web.says('{"alerts": []}')) as server:
        replica = Replica([server.url])
        async with running(replica):
            await replica.receive(group(alert()))
            await replica.peers.meet()
            await replica.peers.meet()
        assert [request.method for request in server.requests] == ["GET", "POST"]


async def test_replicas_that_start_together_tell_each_other_all_once_they_are_found() -> None:
    replicas = [Replica(["dns+http://replicas:8080"]) for _ in range(2)]
    both = frozenset(replica.url for replica in replicas)
    for replica in replicas:
        # At first each finds itself alone.
        alone = frozenset({replica.url})
        replica.look_up = answering([alone, alone, both, both])
    async with running(*replicas):
        for replica, name in zip(replicas, "ab", strict=True):
            await replica.receive(group(alert(fingerprint=name)))
        assert [len(replica.alerts.records()) for replica in replicas] == [1, 1]
        await replicas[0].peers.meet()
        assert [len(replica.alerts.records()) for replica in replicas] == [2, 2]


async def test_one_that_nobody_knows_yet_asks_again_whom_it_could_not_ask_at_its_start() -> None:
    first = Replica()
    list(first.alerts.receive([FIRES]))
    second = Replica([first.url])
    async with running(second):
        assert firing([second]) == [None]
        async with running(first):
            await second.peers.meet()
            assert firing([second]) == ["Busy"]


async def test_rounds_come_by_themselves_and_less_often_while_a_replica_is_lost() -> None:
    waits, is_back = list[float](), asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 5:
            await is_back.wait()
        if len(waits) == 6:
            await forever(seconds)

    async def rounds_ended() -> bool:
        return len(waits) == (6 if is_back.is_set() else 5)

    gone = Replica()
    async with running(Replica([gone.url], sleep=sleep)):
        await until(rounds_ended, 30, "the replica was asked four times")
        async with running(gone):
            is_back.set()
            await until(rounds_ended, 30, "the replica is asked again")
    assert waits == [5, 10, 20, 30, 30, 5]


async def test_what_nobody_mentions_ends_by_itself_also_without_other_replicas() -> None:
    alone = Replica(sleep=lambda _: asyncio.sleep(0))
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
