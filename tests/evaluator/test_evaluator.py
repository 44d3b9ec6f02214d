"""Claims about one trigger's way to a decision: sharing, waiting, failing, remembering."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from keda_gpu_scaler import trigger
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.evaluator.evaluator import Caller, Evaluator
from keda_gpu_scaler.spec.spec import ScaledObject, Signal, TriggerSpec
from keda_gpu_scaler.spec.workload import Kind, Workload
from keda_gpu_scaler.telemetry import facts
from testbed.clocks import at_once
from testbed.processes import until as wait_until
from testbed.triggers import BERT, access, spec
from tests.support.bench import PODS, Bench
from tests.support.scripted import AWAY, REFUSED, Clock, ScriptedCluster, ScriptedSource
from tests.support.worlds import NODE, STEP, World, until

WEB = ScaledObject("web", "bert")


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    """Five busy pods on one node."""
    clock = Clock()
    bench = Bench(ScriptedSource(World(PODS), clock), clock)
    yield bench
    if bench.source.gate is not None:
        bench.source.gate.set()
    await bench.evaluator.close()


def _spec_in(namespace: str) -> TriggerSpec:
    ours = spec()
    return replace(ours, pods=replace(ours.pods, namespace=namespace))  # type: ignore[type-var]  # the port says less


async def test_a_decision_is_stated_with_the_one_before(bench: Bench) -> None:
    first = await bench.ask()
    await bench.ask(scaled_object=ScaledObject("ml", "other"))
    bench.clock.seconds += 3 * STEP
    second = await bench.ask()
    assert [fact.before for fact in bench.of(facts.Evaluated)] == [None, None, first]
    bench.clock.seconds += 599
    third = await bench.ask()
    bench.clock.seconds += 601
    await bench.ask()
    assert [fact.before for fact in bench.of(facts.Evaluated)][3:] == [second, None]
    assert third == bench.of(facts.Evaluated)[3].decision


async def test_both_questions_of_a_poll_get_one_decision(bench: Bench) -> None:
    assert await bench.ask() is await bench.ask()
    assert len(bench.of(facts.Evaluated)) == 1


@pytest.mark.parametrize(
    ("steps", "caller", "value"),
    [(2, Caller.POLL, 450), (1, Caller.STREAM, 200), (1, Caller.HPA, 200), (3, Caller.POLL, 200)],
    ids=["usable", "usable, and waited for", "as the HPA does", "too old"],
)
async def test_a_newer_snapshot_is_waited_for_by_who_is_patient_or_has_none(
    bench: Bench, steps: int, caller: Caller, value: float
) -> None:
    await bench.ask()
    bench.source.world = World(tuple(replace(one, value=40.0) for one in PODS))
    bench.clock.seconds += steps * STEP
    decided = await bench.evaluator.evaluate(BERT, spec(), None, caller)
    assert decided.value == value
    await bench.landed()
    assert len(bench.source.fetched) == 2


async def test_a_stream_gets_the_newest_decision_also_within_the_second_of_a_poll(
    bench: Bench,
) -> None:
    bench.clock.seconds += 4.8
    await bench.ask()
    bench.source.world = World(tuple(replace(one, value=40.0) for one in PODS))
    bench.clock.seconds += 0.4  # the next step begins
    pushed = await bench.evaluator.evaluate(BERT, spec(), None, Caller.STREAM)
    assert pushed.value == 200
    assert await bench.ask() is pushed


async def test_streams_that_wait_for_one_fetch_leave_turns_to_other_calls(bench: Bench) -> None:
    bench.source.gate = asyncio.Event()
    waiting = [
        asyncio.create_task(
            bench.evaluator.evaluate(ScaledObject("ml", f"bert-{n}"), spec(), None, Caller.STREAM)
        )
        for n in range(50)
    ]
    await asyncio.wait(waiting, timeout=0)
    bench.source.gate.set()
    answered = [0]
    while answered[-1] < len(waiting):
        await asyncio.sleep(0)
        answered.append(sum(stream.done() for stream in waiting))
    assert max(now - before for before, now in itertools.pairwise(answered)) <= 2


async def test_there_is_at_most_one_fetch_per_step(bench: Bench) -> None:
    for _ in range(30):
        bench.clock.seconds += 1.5
        await bench.ask()
        await bench.landed()
    assert len(bench.source.fetched) == 4


async def test_new_namespaces_are_fetched_together_with_the_old_ones(bench: Bench) -> None:
    await bench.ask()
    bench.clock.seconds += 1
    await bench.ask(_spec_in("web"), WEB)
    assert bench.source.fetched[-1].namespaces == {"ml", "web"}
    assert [snapshot_query.namespaces for snapshot_query in bench.source.remembered] == [
        {"ml"},
        {"web"},
    ]


async def test_a_new_namespace_waits_a_moment_to_gather_more(bench: Bench) -> None:
    """The clock stands still here, so the moment never ends and the caller's own time does."""
    await bench.ask()
    decided = await bench.ask(_spec_in("web"), WEB, timeout_seconds=0.2)
    assert decided.state is State.UNKNOWN
    assert len(bench.source.fetched) == 1


async def test_namespaces_nobody_asks_about_are_no_longer_fetched(bench: Bench) -> None:
    await bench.ask(_spec_in("web"), WEB)
    bench.clock.seconds += 601
    await bench.ask()
    assert bench.source.fetched[-1].namespaces == {"ml"}


async def test_a_signal_that_is_refused_takes_no_source_down(bench: Bench) -> None:
    """A trigger on a signal that the server refuses, deleted later; then a real outage."""
    power = spec(signal="power", threshold="200", activationThreshold="50")
    bench.source.refused_signals = {Signal.POWER}
    await bench.ask()
    for _ in range(4):
        bench.clock.seconds += STEP
        assert (await bench.ask(power, WEB)).state is State.UNKNOWN
        assert (await bench.ask()).state is State.MEASURED
        await bench.landed()
    failing = [(fact.query, fact.works) for fact in bench.of(facts.QueryChanged)]
    assert failing == [("power", False)]
    for _ in range(50):
        await bench.later(STEP)  # the trigger on power is gone
    bench.source.trouble = REFUSED
    await bench.later(60)
    assert [change.works for change in bench.of(facts.SourceChanged)] == [True, False]


async def test_a_slow_fetch_costs_no_more_than_the_callers_time_and_is_used(bench: Bench) -> None:
    bench.source.gate = asyncio.Event()
    decided = await bench.ask(timeout_seconds=0.15)
    assert decided.reason.startswith("source default: no answer yet")
    bench.source.gate.set()
    assert (await bench.again()).value == 450


async def test_a_source_that_is_known_to_fail_is_not_waited_for(bench: Bench) -> None:
    await bench.ask()
    bench.source.trouble = REFUSED
    await bench.later(15)
    bench.clock.seconds += 180
    bench.source.gate = asyncio.Event()
    decided = await at_once(bench.ask())
    assert decided.active
    assert str(REFUSED) in decided.reason
    assert len(bench.source.fetched) == 3


@pytest.mark.parametrize("on_unknown", ["hold", "error"])
async def test_a_poll_that_would_fail_waits_for_the_source(bench: Bench, on_unknown: str) -> None:
    """KEDA 2.21 closes a connection that nothing else uses after a poll that failed."""
    asked = spec(onUnknown=on_unknown)
    bench.source.trouble = REFUSED
    assert (await bench.ask(asked)).active is None
    bench.clock.seconds += STEP
    assert (await bench.ask(asked)).active is None
    bench.clock.seconds += STEP
    bench.source.trouble, bench.source.gate = None, asyncio.Event()
    of_hpa = await at_once(bench.ask(asked, timeout_seconds=30))
    assert str(REFUSED) in of_hpa.reason
    bench.clock.seconds += 1.5  # another poll, of the same step
    waiting = asyncio.create_task(bench.ask(asked))
    bench.source.gate.set()
    assert (await waiting).value == 450


async def test_a_fault_of_ours_is_not_taken_for_a_fault_of_the_source(bench: Bench) -> None:
    bench.source.trouble = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        await bench.ask()
    bench.source.trouble = None
    assert (await bench.later(15)).value == 450


async def test_a_window_of_an_hour_is_no_burden_for_the_others(bench: Bench) -> None:
    await bench.ask()
    await bench.ask(spec(window="1h"))
    assert [snapshot_query.span_seconds for snapshot_query in bench.source.fetched] == [255, 3735]


async def test_a_history_that_cannot_be_had_is_asked_for_again_now_and_then(bench: Bench) -> None:
    bench.source.history_trouble = REFUSED
    await bench.ask()
    await bench.later(900)
    assert len(bench.source.remembered) == 4
    assert len(bench.source.fetched) == 61


async def test_an_hour_of_watching_stands_in_for_a_history(bench: Bench) -> None:
    bench.source.world = World(())
    bench.source.history_trouble = REFUSED
    assert (await bench.ask()).state is State.UNKNOWN
    assert (await bench.later(3585)).state is State.UNKNOWN
    assert (await bench.later(30)).state is State.ENDED


async def test_a_pause_of_the_polls_forgets_no_pod(bench: Bench) -> None:
    """KEDA was away for twelve minutes, and so was an exporter, but not its pods."""
    gone_at = bench.clock() + 460
    bench.source.world = replace(bench.source.world, targets={NODE: until(gone_at)})
    bench.source.without_history = True
    for _ in range(30):
        bench.clock.seconds += STEP
        assert (await bench.ask()).state is State.MEASURED
        await bench.landed()
    bench.clock.seconds += 700
    decided = await bench.later(4 * STEP)
    assert (decided.state, decided.active) == (State.UNKNOWN, None)


def _untargeted(**metadata: str) -> TriggerSpec:
    given = {"threshold": "70", **metadata}
    return trigger.parse(BERT, given, access(knows_targets=True))


@pytest_asyncio.fixture
async def aimed() -> AsyncIterator[Bench]:
    """Five busy pods, and a cluster that says what scales them."""
    clock = Clock()
    cluster = ScriptedCluster(targets={BERT: Workload(Kind.DEPLOYMENT, "ml", "bert")})
    bench = Bench(ScriptedSource(World(PODS), clock), clock, cluster=cluster)
    yield bench
    await bench.evaluator.close()


async def test_a_scale_target_that_is_not_known_is_unknown_with_the_reason(aimed: Bench) -> None:
    assert aimed.cluster is not None
    aimed.cluster.targets.clear()
    decided = await aimed.ask(_untargeted(), timeout_seconds=1.1)
    assert (decided.state, decided.value, decided.active) == (State.UNKNOWN, None, None)
    assert decided.reason.startswith(f"{AWAY}: hold, and nothing remembered")
    assert aimed.cluster.patience == [1.0]
    refused = await aimed.ask(_untargeted(onUnknown="error"))
    assert refused.refused
    assert len(aimed.of(facts.Evaluated)) == 2


async def test_a_call_goes_by_its_own_look_at_the_target_and_not_by_a_later_one(
    aimed: Bench,
) -> None:
    assert aimed.cluster is not None
    aimed.source.gate = asyncio.Event()
    waiting = asyncio.create_task(aimed.ask(_untargeted()))
    for _ in range(20):
        await asyncio.sleep(0)
    aimed.cluster.targets.clear()
    failed = await aimed.ask(_untargeted(), timeout_seconds=1.1)
    aimed.source.gate.set()
    decided = await waiting
    assert failed.state is State.UNKNOWN
    assert (decided.state, decided.value) == (State.MEASURED, 450)


async def test_summaries_come_in_the_order_of_objects_or_of_one_namespace(bench: Bench) -> None:
    for scaled_object in (WEB, BERT):
        await bench.ask(scaled_object=scaled_object)
        bench.clock.seconds += 1
    shown = list(bench.evaluator.summaries())
    assert [(one.scaled_object, one.answered_seconds_ago) for one in shown] == [
        ("ml/bert", 1),
        ("web/bert", 2),
    ]
    assert [one.scaled_object for one in bench.evaluator.summaries("web")] == ["web/bert"]
    assert await bench.evaluator.records(ScaledObject("ml", "other")) == []


async def test_the_hpa_s_call_about_any_trigger_shows_that_it_has_replicas(bench: Bench) -> None:
    await bench.ask()
    assert not bench.evaluator.has_replicas(BERT)
    await bench.ask(spec(threshold="80"), timeout_seconds=5.0)
    assert bench.evaluator.has_replicas(BERT)
    assert not bench.evaluator.has_replicas(ScaledObject("ml", "gpt"))
    bench.clock.seconds += 61
    assert not bench.evaluator.has_replicas(BERT)


async def test_a_source_is_asked_while_there_is_no_trigger() -> None:
    source = ScriptedSource(World(()), Clock(), step_seconds=0.01, trouble=AWAY)
    seen: list[facts.Fact] = []

    async def look() -> None:
        if source.trouble is not None:
            raise source.trouble

    ports = {
        "default": replace(source.ports(), url="http://a:9090", look=look),
        "own": source.ports(is_per_namespace=True),  # a namespace has to be known first
    }
    evaluator = Evaluator(ports, seen.append, clock=source.clock)
    looking = asyncio.create_task(evaluator.look_at_sources(), name="look")
    (down,) = await evaluator.sources_down(wait_seconds=30)
    assert down[:3] == ("default", "http://a:9090", str(AWAY))
    source.trouble = None

    async def is_up() -> bool:
        return not await evaluator.sources_down()

    await wait_until(is_up, 30, "the source is up")
    looking.cancel()
    assert [
        (each.source, each.works, each.url)
        for each in seen
        if isinstance(each, facts.SourceChanged)
    ] == [("default", False, "http://a:9090"), ("default", True, "http://a:9090")]
    await evaluator.close()
