"""Claims about how one trigger checks its signals: in order, and each only when it matters."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.evaluator.evaluator import EXPLAINED_AT_ONCE, LOOKED_AT
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource, PodStatement
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.spec.workload import Kind, Owner, ScaleTarget, Workload
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import SAME_POLL_SECONDS, SETTLE_SECONDS, SPREAD_SECONDS
from testbed.clocks import at_once
from testbed.triggers import BERT, demanding, spec
from tests.support.bench import PODS, Bench
from tests.support.scripted import AWAY, REFUSED, Clock, ScriptedCluster, ScriptedSource
from tests.support.worlds import STEP, World, WorldPod

WAITING = "sum(waiting)"
ROUTER = WorldPod("router-5c8f7d9b6-bbbbb")
IDLE = tuple(replace(one, value=0.0) for one in PODS)
DEMAND = demanding(WAITING)
OLD, NEW = spec(), spec(threshold="60")
BOTH = demanding(WAITING, activationWorkload="router")


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    """No pod anywhere, and seven requests wait."""
    clock = Clock()
    bench = Bench(ScriptedSource(World(()), clock, numbers={WAITING: 7.0}), clock)
    yield bench
    await bench.evaluator.close()


async def test_a_demand_that_scales_is_recommended_also_where_it_is_not_asked(bench: Bench) -> None:
    bench.source.numbers[WAITING] = 40.0
    scales = demanding(WAITING, demandThreshold="2")
    await bench.ask(scales)
    assert next(bench.evaluator.summaries()).recommended == 20
    bench.source.world = World(PODS)
    await bench.later(4 * STEP, scales)
    asked = len(bench.source.numbers_asked)
    await bench.later(2 * STEP, scales)
    assert len(bench.source.numbers_asked) == asked
    assert bench.of(facts.Evaluated)[-1].summary.recommended == 20
    await bench.later(300, scales)  # beyond maxAge the demand is unknown, and the load may raise
    assert bench.of(facts.Evaluated)[-1].summary.recommended == 7


async def test_just_after_a_gap_an_answer_from_before_it_counts_no_replicas(bench: Bench) -> None:
    bench.source.numbers[WAITING] = 40.0
    scales = demanding(WAITING, demandThreshold="2")
    bench.source.world = World(PODS[:4])
    await bench.ask(scales)
    assert (await bench.evaluator.demand(BERT, scales, 3.0)).value == 40
    bench.clock.seconds += 300
    assert (await bench.evaluator.demand(BERT, scales, 3.0)).value is None
    await bench.ask(scales)
    assert (await bench.evaluator.demand(BERT, scales, 3.0)).value == 40


async def test_a_record_says_that_a_scale_out_did_not_help(bench: Bench) -> None:
    scales = demanding(WAITING, threshold="", demandThreshold="2")
    bench.source.world = World(PODS[:4])
    await bench.ask(scales)
    bench.source.world = World(PODS)
    assert not (await bench.later(SETTLE_SECONDS, scales)).futile
    decided = await bench.later(4 * STEP, scales)
    assert decided.futile.startswith(
        "5 replicas instead of 4 did not help: 5m later the demand is 7 "
    )
    assert (await bench.evaluator.record(BERT, scales)).warnings == (decided.futile,)
    assert bench.of(facts.Evaluated)[-1].decision.futile == decided.futile


async def test_what_comes_after_a_signal_is_not_asked(bench: Bench) -> None:
    bench.source.world = World((*PODS, ROUTER))
    bench.alerts.alert = "GpuBusy"
    busy = await bench.ask(BOTH)
    assert busy.reason.endswith("busiest GPU 90 % is above activationThreshold 2 %")
    bench.source.world = World((ROUTER,))
    bench.clock.seconds += 600
    assert (await bench.ask(BOTH)).reason.endswith("; GPUs of deployment/router are busy")
    assert (await bench.ask(DEMAND)).reason.endswith("; alert GpuBusy fires")
    assert bench.source.numbers_asked == []


async def test_another_workload_is_as_unknown_as_its_source(bench: Bench) -> None:
    bench.source.trouble = REFUSED
    decided = await bench.ask(spec(activationWorkload="router"))
    assert (decided.active, decided.activated) == (None, False)
    assert decided.reason.endswith("; deployment/router may be in use (its load is unknown)")


async def test_a_poll_that_would_fail_waits_for_the_demand(bench: Bench) -> None:
    """An unknown demand for a workload without pods is an error by default."""
    bench.source.numbers[WAITING] = AWAY
    assert (await bench.ask(DEMAND)).active is None
    bench.clock.seconds += STEP
    bench.source.numbers[WAITING], bench.source.number_gate = 7.0, asyncio.Event()
    inactive = demanding(WAITING, demandOnEmpty="inactive")
    assert (await at_once(bench.ask(inactive))).active is False
    waiting = asyncio.create_task(bench.ask(DEMAND))
    bench.source.number_gate.set()
    assert (await waiting).activated


async def test_a_stream_looks_when_the_demand_can_be_asked_again_or_there_is_an_instant(
    bench: Bench,
) -> None:
    def until_news(asked: TriggerSpec) -> float:
        return round(bench.evaluator.until_news_seconds(BERT, asked), 6)

    bench.clock.seconds += 6  # a second after an instant
    bench.source.settled_seconds = 2.0
    await bench.ask(DEMAND)
    assert until_news(DEMAND) == 5
    bench.clock.seconds += 4.9
    assert until_news(DEMAND) == 0.1
    bench.clock.seconds += 0.1
    assert until_news(DEMAND) == SAME_POLL_SECONDS  # another trigger may ask
    await bench.ask()
    assert 11 < until_news(spec()) <= 11 + SPREAD_SECONDS


async def test_a_stream_looks_at_a_slow_fetch_again_before_the_next_step(bench: Bench) -> None:
    bench.source.gate = asyncio.Event()
    await bench.ask(timeout_seconds=0.1)
    bench.clock.seconds += 3
    assert 3 < bench.evaluator.until_news_seconds(BERT, spec()) <= 3 + SPREAD_SECONDS
    bench.source.gate.set()
    await bench.landed()


async def test_within_a_step_only_the_demand_changes_a_decision(bench: Bench) -> None:
    bench.source.numbers[WAITING] = 0.0
    bench.clock.seconds += 10  # the first moment of a step
    await bench.ask(DEMAND)
    for number in (0.0, 7.0, 7.0):
        bench.source.numbers[WAITING] = number
        bench.clock.seconds += 4.9
        await bench.ask(DEMAND)
        await bench.landed()
    made = [fact.decision.active for fact in bench.of(facts.Evaluated)]
    assert made == [False, True]


# What is remembered


async def _after_an_outage(bench: Bench, trigger: TriggerSpec | None = None) -> bool | None:
    decided = await bench.later(300, trigger)
    assert decided.state is State.UNKNOWN
    return decided.active


async def test_a_signal_shortly_before_an_outage_is_remembered_through_it(bench: Bench) -> None:
    """The last good snapshot is older than the signal and shows no pods: they may have come."""
    assert (await bench.ask()).state is State.ENDED
    bench.source.trouble = REFUSED
    bench.alerts.alert = "GpuBusy"  # counts within the second of one poll
    assert (await bench.ask()).activated
    bench.alerts.alert = None
    assert (await bench.again()).active is False
    assert await _after_an_outage(bench) is True


async def test_what_is_said_of_an_unknown_load_knows_of_the_signal_at_once() -> None:
    """A pod is listed that no exporter shows, and the source is well: nothing else is new."""
    clock = Clock()
    cluster = ScriptedCluster()
    bench = Bench(ScriptedSource(World(()), clock), clock, cluster=cluster)
    cluster.said = _listed(clock())
    assert (await bench.ask()).state is State.EMPTY
    clock.seconds += STEP
    owned = PodStatement(owners=frozenset({Owner("Deployment", "bert")}), ready=True, asks_gpu=True)
    cluster.said = _listed(clock(), owned)
    await bench.ask()
    await bench.landed()
    decided = await bench.again()
    assert (decided.state, decided.active) == (State.UNKNOWN, False)
    bench.alerts.alert = "GpuBusy"
    assert (await bench.again()).activated
    bench.alerts.alert = None
    assert (await bench.again()).active is True
    await bench.evaluator.close()


def _listed(at: float, *statements: PodStatement) -> Evidence:
    api = Target("kubernetes", "api")
    named = zip("bcd", statements, strict=False)
    return Evidence(
        {("ml", f"bert-7b6667bd9-{letter * 5}"): said for letter, said in named},
        covered=frozenset({"ml"}),
        scrapes={api: at},
        stable_since={api: 0.0},
        evidence_source=EvidenceSource.KUBERNETES,
    )


async def test_an_answer_that_comes_late_undoes_no_memory(bench: Bench) -> None:
    """Two callers ask at once; the one that waits for the demand knows less in the end."""
    bench.source.number_gate = asyncio.Event()
    slow = asyncio.create_task(bench.ask(DEMAND))
    await bench.source.number_begun.wait()
    bench.clock.seconds += 1
    bench.alerts.alert = "GpuBusy"
    assert (await bench.ask(DEMAND)).activated
    bench.alerts.alert, bench.source.numbers[WAITING] = None, 0.0
    bench.source.number_gate.set()
    assert (await slow).active is False
    bench.source.trouble = REFUSED
    assert await _after_an_outage(bench, DEMAND) is True


async def test_a_new_snapshot_counts_at_once(bench: Bench) -> None:
    """Not when the last decision is a step old."""
    bench.source.world = World(PODS)
    bench.clock.seconds += 4
    await bench.ask()
    bench.source.world = World(IDLE)
    bench.clock.seconds += 2  # the next step begins
    assert (await bench.ask()).value == 450
    await bench.landed()
    bench.clock.seconds += 2
    assert (await bench.ask()).value == 0


async def test_while_a_source_has_trouble_every_decision_is_made_anew(bench: Bench) -> None:
    await bench.ask()
    bench.source.trouble = REFUSED
    bench.clock.seconds += STEP
    await bench.ask()
    await bench.landed()
    made = len(bench.of(facts.Evaluated))
    await bench.again()
    await bench.again()
    assert len(bench.of(facts.Evaluated)) == made + 2


async def test_samples_beyond_max_age_are_not_answered_from_again(bench: Bench) -> None:
    """Not even while the same decision would otherwise serve for the rest of its step."""
    bench.source.world = World(PODS)
    trigger = spec(maxAge="20s")
    assert (await bench.ask(trigger)).state is State.MEASURED
    bench.source.gate = asyncio.Event()
    bench.clock.seconds += 10.5
    assert (await bench.ask(trigger, timeout_seconds=0)).state is State.UNKNOWN
    bench.source.gate.set()


async def test_another_workload_is_looked_at_while_nobody_knows_whose_pods_to_measure() -> None:
    clock = Clock()
    cluster = ScriptedCluster()
    bench = Bench(ScriptedSource(World((ROUTER,)), clock), clock, cluster=cluster)
    trigger = replace(
        spec(activationWorkload="router"), pods=ScaleTarget("ml"), workload="the scale target"
    )
    decided = await bench.ask(trigger)
    assert (decided.state, decided.value, decided.activated) == (State.UNKNOWN, None, True)
    assert decided.reason.startswith(f"{AWAY}: ")
    cluster.targets[BERT] = Workload(Kind.DEPLOYMENT, "ml", "bert")
    assert (await bench.again(trigger)).state is State.ENDED
    await bench.evaluator.close()


async def test_a_few_scaled_objects_are_looked_at_at_a_time(bench: Bench) -> None:
    bench.source.world, bench.source.number_gate = World(PODS), asyncio.Event()
    asked = []
    for number in range(EXPLAINED_AT_ONCE + 2):
        one, text = ScaledObject("ml", f"bert-{number}"), f"sum(waiting_{number})"
        await bench.ask(demanding(text, demandThreshold="2"), one)
        bench.source.numbers[text] = 7.0
        asked.append(one)
    looks = [asyncio.create_task(bench.evaluator.records(one)) for one in asked]
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(bench.source.numbers_asked) == EXPLAINED_AT_ONCE
    bench.source.number_gate.set()
    found = await asyncio.gather(*looks)
    assert [one.scaled_object for (one,) in found] == [str(one) for one in asked]


async def test_of_many_triggers_of_one_object_the_last_ones_are_looked_at(bench: Bench) -> None:
    for number in range(1, LOOKED_AT + 5):
        await bench.ask(spec(threshold=str(number), metricName=f"gpus-{number}"))
        bench.clock.seconds += 0.01
    found = await bench.evaluator.records(BERT)
    thresholds = [record.metrics[0].target for record in found]
    assert thresholds == list(range(LOOKED_AT + 4, 4, -1))


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        # An edited trigger is not asked about any more, though KEDA's replicas may alternate.
        ([(0, OLD), (15, NEW)], [NEW]),
        ([(0, OLD), (15, NEW), (16, OLD), (30, NEW)], [NEW, OLD]),
        ([(0, OLD), (15, NEW), (16, OLD), (80, NEW)], [NEW]),
        ([(0, OLD), (15, NEW), (90, OLD)], [OLD]),
        # Two triggers may have the same metric name.
        ([(0, OLD), (0, NEW), (30, OLD), (30, NEW)], [OLD, NEW]),
        ([(0, OLD), (15, spec(metricName="second"))], [spec(metricName="second"), OLD]),
    ],
)
async def test_an_old_version_of_a_trigger_is_not_shown(
    asked: list[tuple[float, TriggerSpec]], shown: list[TriggerSpec], bench: Bench
) -> None:
    began = bench.clock.seconds
    for at, trigger in asked:
        bench.clock.seconds = began + at
        await bench.ask(trigger)
    for _ in range(2):  # a look is no call
        bench.clock.seconds += STEP
        found = await bench.evaluator.records(BERT)
        assert [one.threshold for one in found] == [one.threshold for one in shown]
    listed = [one.threshold for one in bench.evaluator.summaries()]
    assert sorted(listed) == sorted(one.threshold for one in shown)


async def test_a_poll_just_after_a_look_waits_like_any_other(bench: Bench) -> None:
    bench.source.numbers[WAITING] = AWAY
    assert (await bench.ask(DEMAND)).active is None
    bench.clock.seconds += STEP
    bench.source.numbers[WAITING], bench.source.number_gate = 7.0, asyncio.Event()
    look = asyncio.create_task(bench.evaluator.records(BERT))
    await asyncio.sleep(0)
    bench.source.number_gate.set()
    (shown,) = await look
    assert shown.active
    bench.clock.seconds += 0.5
    assert (await bench.ask(DEMAND)).activated


async def test_a_router_that_the_cluster_does_not_list_is_named_where_its_demand_is_not_known() -> (
    None
):
    clock = Clock()
    names = frozenset({"bert", "llama-epp"})
    listed = replace(_listed(clock()), owners={("ml", "Deployment"): names})
    bench = Bench(ScriptedSource(World(()), clock), clock, cluster=ScriptedCluster(listed))
    keys = {"demandPreset": "llm-d-epp-queue", "demandModel": "llama"}
    for router, is_listed in (("llama-ep", False), ("llama-epp", True)):
        reason = (await bench.ask(spec(**keys, demandRouter=router))).reason
        no_such = "there is no deployment/llama-ep (did you mean llama-epp?)"
        assert (no_such not in reason) is is_listed
    await bench.evaluator.close()
