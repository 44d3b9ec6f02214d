"""What replicas tell each other of their decisions, and when the others are asked."""

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator import peer_decisions
from keda_gpu_scaler.evaluator.peer_decisions import (
    ASKED_AT_ONCE,
    LONGEST_BYTES,
    AskedTrigger,
    PeerDecision,
    PeerDecisions,
    Told,
    agreed,
    asked_trigger,
    read_answer,
    read_request,
    written,
)
from keda_gpu_scaler.spec.demand import TOO_LARGE
from tests.support.scripted import Clock
from tests.support.triggers import BERT, spec

ASKED = AskedTrigger("ml", "bert", "a" * 64)
IDLE = Told(ASKED, State.MEASURED, 0.0, active=False, activated=False)
BUSY = Told(ASKED, State.MEASURED, 90.0, active=True, activated=True)
HELD = Told(ASKED, State.MEASURED, None, active=False, activated=False)
ENDED = Told(ASKED, State.ENDED, None, active=False, activated=False)
EMPTY = Told(ASKED, State.EMPTY, 0.0, active=False, activated=False)
UNKNOWN = Told(ASKED, State.UNKNOWN, None, active=True, activated=False)
any_told = st.builds(
    Told,
    st.builds(AskedTrigger, st.text(), st.text(), st.text()),
    st.sampled_from(State),
    st.none() | st.floats(0, TOO_LARGE, exclude_max=True),
    st.none() | st.booleans(),
    st.booleans(),
)
any_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.lists(any_told, max_size=5))
def test_what_is_written_is_read_as_the_same(told: list[Told]) -> None:
    assert read_answer(written(told)) == told


@given(st.binary() | any_json.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_nothing(body: bytes) -> None:
    assert read_answer(body) == []


@given(any_json)
def test_any_other_question_is_refused(payload: object) -> None:
    with pytest.raises(errors.RequestError, match="expected triggers to decide: "):
        read_request(payload)


@pytest.mark.parametrize("value", [-0.5, TOO_LARGE, True, "0", [0]])
def test_a_number_that_is_none_makes_the_whole_answer_nothing(value: object) -> None:
    decisions = orjson.loads(written([IDLE, BUSY]))["decisions"]
    decisions[1]["value"] = value
    assert read_answer(orjson.dumps({"decisions": decisions})) == []


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999", b"-1e999"])
def test_a_number_that_is_not_finite_makes_it_nothing_as_well(number: bytes) -> None:
    assert read_answer(written([BUSY]).replace(b"90.0", number)) == []


def test_as_many_as_are_asked_at_once_fit_with_the_longest_names() -> None:
    longest = AskedTrigger("n" * 63, "o" * 253, "f" * 64)
    told = Told(longest, State.MEASURED, 1234567890.123456, active=False, activated=False)
    answer = written([told] * ASKED_AT_ONCE)
    assert len(answer) <= LONGEST_BYTES
    assert len(read_answer(answer)) == ASKED_AT_ONCE
    assert read_answer(written([told] * (ASKED_AT_ONCE + 1))) == []


def test_a_trigger_is_named_by_all_that_it_asks_for() -> None:
    names = {
        asked_trigger(BERT, spec(**more))
        for more in ({}, {"threshold": "80"}, {"window": "3m"}, {"workload": "other"})
    }
    assert len(names) == 4
    assert asked_trigger(BERT, spec()) in names


def test_processes_name_a_trigger_alike() -> None:
    """Whatever the seed of their hashes."""
    code = (
        "from tests.support.triggers import BERT, spec\n"
        "from keda_gpu_scaler.evaluator.peer_decisions import asked_trigger\n"
        "print(asked_trigger(BERT, spec(activationWorkload='router', onUnknown='zero')).spec)"
    )
    named = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = asked_trigger(BERT, spec(activationWorkload="router", onUnknown="zero"))
    assert named.stdout.strip() == told.spec


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((), None),
        ((IDLE,), IDLE),
        ((ENDED,), ENDED),
        ((ENDED, EMPTY), ENDED),
        ((IDLE, BUSY), BUSY),
        ((ENDED, IDLE), HELD),
        ((BUSY, HELD), Told(ASKED, State.MEASURED, None, active=True, activated=True)),
        ((IDLE, UNKNOWN), None),
        ((BUSY, Told(ASKED, State.ENDED, None, active=None, activated=False)), None),
    ],
)
def test_where_replicas_differ_the_one_that_says_more_counts(
    said: tuple[Told, ...], expected: Told | None
) -> None:
    for order in (said, said[::-1]):
        found = agreed({f"replica-{number}": one for number, one in enumerate(order)})
        assert (None if found is None else found[1]) == expected


@given(st.lists(any_told, min_size=1, max_size=4))
def test_together_they_never_say_less_than_one_of_them(told: list[Told]) -> None:
    found = agreed(dict(zip("abcd", told, strict=False)))
    if found is None:
        return
    most = found[1]
    assert most.active is any(one.active for one in told)
    assert all(one.state in {State.MEASURED, State.EMPTY, State.ENDED} for one in told)
    for one in told:
        number = math.inf if most.value is None else most.value
        assert number >= (math.inf if one.value is None else one.value)


def _own(**more: object) -> Decision:
    unknown = Decision(state=State.UNKNOWN, reason="no answer", value=None, active=None)
    return replace(unknown, **more)  # type: ignore[arg-type]  # fields of a decision


def test_the_reason_names_the_replica_and_why_it_was_asked() -> None:
    decided = PeerDecision("http://10.0.0.7:8080", BUSY, 4.2).instead_of(_own(), "refused")
    assert decided.reason == (
        "measured, value 90, active by the replica http://10.0.0.7:8080, asked 4 s ago, "
        "because here: refused"
    )


def test_a_gpu_that_was_busy_here_makes_it_active() -> None:
    decided = PeerDecision("peer", IDLE, 0).instead_of(_own(activated=True, refused=True), "away")
    assert (decided.value, decided.active, decided.activated) == (0.0, True, True)
    assert not decided.refused


class Replicas:
    """Others that say what a test tells them, and keep what they were asked."""

    def __init__(self, **said: bytes) -> None:
        self.said: Mapping[str, bytes] = said
        self.clock = Clock()
        self.asked: list[list[AskedTrigger]] = []
        self.takes_seconds = 0.0
        self.gate = asyncio.Event()
        self.gate.set()
        self.peers = PeerDecisions(self.ask, self.clock)

    async def ask(self, body: bytes) -> Mapping[str, bytes]:
        """Answer after a while."""
        self.asked.append(read_request(orjson.loads(body)))
        await self.gate.wait()
        self.clock.seconds += self.takes_seconds
        return self.said

    async def of(self, asked: AskedTrigger = ASKED, seconds: float = 30) -> PeerDecision | None:
        """Ask for one trigger, within this time."""
        return await self.peers.of(asked, 15, self.clock() + seconds)


async def test_an_answer_counts_for_one_step_and_names_its_age() -> None:
    others = Replicas(one=written([IDLE]))
    assert await others.of() == PeerDecision("one", IDLE, 0)
    others.clock.seconds += 15
    assert await others.of() == PeerDecision("one", IDLE, 15)
    assert len(others.asked) == 1
    others.clock.seconds += 1
    others.said = {"one": written([BUSY])}
    assert await others.of() == PeerDecision("one", BUSY, 0)


async def test_that_nobody_knows_is_believed_for_one_step_as_well() -> None:
    others = Replicas(one=written([]), other=b"<html>")
    assert [await others.of(), await others.of()] == [None, None]
    assert len(others.asked) == 1
    others.clock.seconds += 16
    others.said = {"one": written([IDLE])}
    assert await others.of() == PeerDecision("one", IDLE, 0)


async def test_what_nobody_asked_about_is_passed_over() -> None:
    stranger = Told(AskedTrigger("ml", "other", "b"), State.ENDED, None, False, False)  # noqa: FBT003
    others = Replicas(one=written([stranger]))
    assert await others.of() is None
    assert await others.of(stranger.trigger) == PeerDecision("one", stranger, 0)


async def test_triggers_that_wait_at_the_same_time_are_asked_about_together() -> None:
    others = Replicas()
    others.gate.clear()
    names = [AskedTrigger("ml", f"bert-{number}", "") for number in range(2 * ASKED_AT_ONCE)]
    calls = [asyncio.create_task(others.of(name)) for name in names]
    await asyncio.sleep(0)
    others.gate.set()
    assert set(await asyncio.gather(*calls)) == {None}
    assert max(map(len, others.asked)) == ASKED_AT_ONCE
    assert len(others.asked) <= 4


async def test_nobody_waits_for_replicas_that_were_silent_for_long() -> None:
    others = Replicas()
    others.takes_seconds = peer_decisions.SLOW_SECONDS
    assert await others.of() is None
    others.gate.clear()
    others.clock.seconds += 16
    assert await others.of() is None  # without waiting: nothing answers
    others.said, others.takes_seconds = {"one": written([IDLE])}, 0.0
    others.gate.set()
    await asyncio.wait({task for task in asyncio.all_tasks() if task.get_name() == "ask replicas"})
    assert await others.of() == PeerDecision("one", IDLE, 0)


async def test_no_call_waits_beyond_its_deadline() -> None:
    others = Replicas()
    others.gate.clear()
    assert await others.of(seconds=0) is None
    await others.peers.close()
