"""Claims about two replicas of the scaler, of which one asks the other for its decision."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import orjson
import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler import trigger as trigger_of
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import TELL_SECONDS, Evaluator
from keda_gpu_scaler.evaluator.peer_decisions import Told, asked_trigger, read_answer
from keda_gpu_scaler.evaluator.snapshot_cache import OWN_QUERIES_PER_NAMESPACE
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.telemetry import facts
from tests.support.bench import PODS, Bench, landed
from tests.support.scripted import Clock, ScriptedAlerts, ScriptedSource
from tests.support.triggers import BERT, access, demanding, spec
from tests.support.worlds import STEP, World

AWAY = errors.SourceUnreachableError("connection refused")
HPA_SECONDS = 30.0
WAITING = "sum(waiting)"
IDLE = World(tuple(replace(one, value=0.0) for one in PODS))


class SlowSource(ScriptedSource):
    """Takes as long for a fetch as there is for an answer to a replica."""

    async def synchronize(self) -> None:
        """Let time pass."""
        self.clock.seconds += TELL_SECONDS


class Pair:
    """One that sees, and one that is cut off and asks it; they share a clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.other = Bench(ScriptedSource(World(PODS), self.clock), self.clock)
        self.source = ScriptedSource(World(PODS), self.clock, trouble=AWAY)
        self.alerts = ScriptedAlerts()
        self.seen: list[facts.Fact] = []
        self.asked = 0
        self.one = Evaluator(
            {"default": self.source.ports()},
            self.seen.append,
            alerts=self.alerts,
            peers=self.ask,
            clock=self.clock,
        )

    async def ask(self, body: bytes) -> Mapping[str, bytes]:
        """Ask the other one."""
        self.asked += 1
        answer = await self.other.evaluator.tell(orjson.loads(body))
        await self.meanwhile()
        return {"other": answer}

    async def meanwhile(self) -> None:
        """Do what a test wants to happen while the other one answers."""

    async def told(self, *triggers: TriggerSpec) -> list[Told]:
        """Ask the other one what it tells replicas of these triggers, or of the usual one."""
        names = [asked_trigger(BERT, one) for one in triggers or (spec(),)]
        fields = ("namespace", "scaled_object", "spec")
        asked = [{field: getattr(name, field) for field in fields} for name in names]
        return read_answer(await self.other.evaluator.tell({"triggers": asked}))

    async def both(
        self, trigger: TriggerSpec | None = None, *, hpa: bool = False
    ) -> tuple[State, float | None, bool | None]:
        """Ask both, a step later; return what the one says that is cut off."""
        self.clock.seconds += STEP + 1
        await self.other.ask(trigger)
        timeout_seconds = HPA_SECONDS if hpa else None
        decided = await self.one.evaluate(BERT, trigger or spec(), timeout_seconds)
        self.reason, self.activated = decided.reason, decided.activated
        return decided.state, decided.value, decided.active


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    yield pair
    await pair.one.close()
    await pair.other.evaluator.close()


async def test_what_the_other_one_measured_is_answered(pair: Pair) -> None:
    assert await pair.both() == (State.MEASURED, 450.0, True)
    assert pair.activated
    pair.other.source.world = IDLE
    pair.clock.seconds += 600
    assert await pair.both() == (State.MEASURED, 0.0, False)


async def test_it_is_asked_only_where_the_last_samples_are_too_old(pair: Pair) -> None:
    pair.source.trouble = None
    await pair.both()
    pair.source.trouble = AWAY
    assert await pair.both() == (State.MEASURED, 450.0, True)
    assert pair.asked == 0
    pair.clock.seconds += 300
    assert await pair.both() == (State.MEASURED, 450.0, True)
    assert pair.asked == 1


async def test_what_the_samples_do_not_tell_it_is_not_asked(pair: Pair) -> None:
    """The source answers: then what is unknown is unknown to all who see it."""
    pair.source.trouble, pair.source.without_history = None, True
    pair.source.world = World(())
    assert (await pair.both())[0] is not State.MEASURED
    assert pair.asked == 0


async def test_samples_that_are_late_as_a_whole_are_as_late_for_the_other_one(pair: Pair) -> None:
    pair.source.trouble, pair.source.real_lag_seconds = None, 900.0
    for _ in range(2):
        assert (await pair.both())[0] is State.UNKNOWN
    assert pair.asked == 0


async def test_one_whose_source_takes_long_tells_nothing_of_old_samples(pair: Pair) -> None:
    await pair.other.ask()
    pair.other.source.gate = asyncio.Event()
    pair.clock.seconds += STEP
    assert len(await pair.told()) == 1
    pair.clock.seconds += STEP
    assert await pair.told() == []
    pair.other.source.gate.set()


async def test_an_own_answer_that_comes_meanwhile_counts(pair: Pair) -> None:
    calls: list[asyncio.Task[Decision]] = []

    async def back() -> None:
        pair.source.trouble, pair.source.world = None, IDLE
        pair.clock.seconds += STEP
        calls.append(asyncio.create_task(pair.one.evaluate(BERT, spec(threshold="80"), None)))
        await asyncio.sleep(0)  # until it has begun to fetch
        await landed()

    await pair.both()
    pair.meanwhile = back  # type: ignore[method-assign]
    assert (await pair.both())[1] == 0
    assert "by the replica" not in pair.reason
    await asyncio.gather(*calls)


async def test_one_whose_own_source_fails_tells_nothing(pair: Pair) -> None:
    """Although it still answers by samples that are young enough for itself."""
    await pair.other.ask()
    pair.other.source.trouble = AWAY
    assert (await pair.both())[0] is State.UNKNOWN
    assert (await pair.other.again()).state is State.MEASURED


async def test_one_that_is_not_sure_is_not_taken_at_its_word(pair: Pair) -> None:
    pair.other.source.history_trouble = AWAY
    assert (await pair.both())[0] is State.UNKNOWN
    assert [one.state for one in await pair.told()] == [State.PARTIAL]


@pytest.mark.slow
async def test_one_with_too_many_queries_tells_nothing_of_one_more(pair: Pair) -> None:
    own = [_own(f"gpu_{number}") for number in range(OWN_QUERIES_PER_NAMESPACE + 1)]
    for trigger in own:
        await pair.other.ask(trigger)
    known = await pair.told(own[0], own[-1])
    assert [one.trigger for one in known] == [asked_trigger(BERT, own[0])]


async def test_it_tells_what_it_can_within_its_time(pair: Pair) -> None:
    pair.other = Bench(SlowSource(World(PODS), pair.clock), pair.clock)
    triggers = spec(), spec(threshold="80")
    for trigger in triggers:
        await pair.other.ask(trigger)
    assert len(await pair.told(*triggers)) == 2
    pair.clock.seconds += STEP
    assert len(await pair.told(*triggers)) == 1


async def test_to_be_asked_by_a_replica_is_no_call_of_the_hpa(pair: Pair) -> None:
    """Nor a poll: a workload at zero stays there, whoever asks."""
    await pair.other.ask(timeout_seconds=HPA_SECONDS)
    pair.other.source.world = World(())
    for _ in range(30):
        pair.clock.seconds += STEP
        await pair.told()
    assert (await pair.told())[0].active is False


async def test_a_demand_that_the_other_one_knows_is_in_its_answer(pair: Pair) -> None:
    """Here it cannot be known: idle pods would be kept for ever."""
    pair.other.source.world, pair.other.source.numbers[WAITING] = IDLE, 0.0
    trigger = demanding(WAITING)
    assert await pair.both(trigger) == (State.MEASURED, 0.0, False)
    pair.other.source.numbers[WAITING] = 7.0
    pair.clock.seconds += 600
    assert await pair.both(trigger) == (State.MEASURED, 0.0, True)
    assert pair.source.numbers_asked == []


async def test_the_other_workload_that_the_other_one_sees_is_in_its_answer(pair: Pair) -> None:
    router = replace(PODS[0], name="router-5c8f7d9b6-bbbbb")
    pair.other.source.world = World((*IDLE.pods, router))
    assert await pair.both(spec(activationWorkload="router")) == (State.MEASURED, 0.0, True)
    pair.other.source.world = World((*IDLE.pods, replace(router, value=0.0)))
    pair.clock.seconds += 600
    assert await pair.both(spec(activationWorkload="router")) == (State.MEASURED, 0.0, False)


async def test_an_alert_that_only_the_one_knows_counts_as_well(pair: Pair) -> None:
    pair.other.source.world, pair.alerts.alert = IDLE, "Busy"
    assert await pair.both() == (State.MEASURED, 0.0, True)
    assert pair.reason.endswith("; alert Busy fires")


async def test_the_hpa_s_calls_contradict_that_there_are_no_pods_after_a_minute(
    pair: Pair,
) -> None:
    """It may ask for so long about replicas that have just gone."""
    pair.other.source.world = World(())
    hpa = [await pair.both(hpa=True) for _ in range(8)]
    assert hpa[0] == (State.ENDED, None, False)
    assert hpa[-1][0] is State.UNKNOWN
    assert hpa[-1][2] is True
    quiet = [await pair.both() for _ in range(8)]
    assert quiet[-1] == (State.ENDED, None, False)


async def test_that_it_had_no_pods_is_remembered_when_the_other_one_is_lost(pair: Pair) -> None:
    pair.other.source.world = World(())
    await pair.both()
    pair.other.source.trouble = AWAY
    assert await pair.both() == (State.UNKNOWN, None, False)
    for _ in range(100):
        assert await pair.both() == (State.UNKNOWN, None, False)


async def test_that_it_had_no_pods_ends_with_the_hpa_s_calls(pair: Pair) -> None:
    """It was woken while both were cut off, by an alert that neither of them knows."""
    pair.other.source.world = World(())
    await pair.both()
    pair.other.source.trouble = AWAY
    assert await pair.both() == (State.UNKNOWN, None, False)
    for _ in range(8):
        last = await pair.both(hpa=True)
    assert last == (State.UNKNOWN, None, True)


async def test_that_it_had_no_pods_is_not_trusted_after_a_pause(pair: Pair) -> None:
    pair.other.source.world = World(())
    await pair.both()
    pair.other.source.trouble = AWAY
    pair.clock.seconds += 300
    assert await pair.both() == (State.UNKNOWN, None, True)


async def test_that_it_was_idle_is_not_remembered(pair: Pair) -> None:
    """Even where the HPA has stopped asking."""
    pair.other.source.world = IDLE
    await pair.both(hpa=True)
    for _ in range(8):
        assert await pair.both() == (State.MEASURED, 0.0, False)
    pair.other.source.trouble = AWAY
    assert await pair.both() == (State.UNKNOWN, None, True)


@pytest.mark.parametrize("had_pods", [True, False])
async def test_what_the_other_one_said_is_newer_than_the_own_samples(
    pair: Pair, *, had_pods: bool
) -> None:
    """What was known before the outage counts no more."""
    before, after = (World(PODS), World(())) if had_pods else (World(()), World(PODS))
    pair.source.trouble, pair.source.world, pair.other.source.world = None, before, before
    await pair.both()
    pair.source.trouble, pair.other.source.world = AWAY, after
    pair.clock.seconds += 600
    assert (await pair.both())[2] is not had_pods
    pair.other.source.trouble = AWAY
    assert await pair.both() == (State.UNKNOWN, None, not had_pods)


async def test_an_answer_of_the_policy_for_an_unknown_load_is_not_told(pair: Pair) -> None:
    """`onUnknown: zero` is the answer of each replica for itself."""
    trigger = spec(onUnknown="zero")
    await pair.other.ask(trigger)
    pair.other.source.trouble = AWAY
    pair.clock.seconds += 600
    assert await pair.told(trigger) == []
    assert (await pair.both(trigger))[1] == 0.0
    assert pair.reason.endswith(": 0 by onUnknown zero")


def _own(text: str) -> TriggerSpec:
    metadata = {
        "query": text,
        "threshold": "70",
        "workload": "bert",
        "activationThreshold": "1",
    }
    return trigger_of.parse(BERT, metadata, access(own_promql=Policy.ALLOW))
