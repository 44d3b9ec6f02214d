"""What a source has of accelerators is asked while something is not read, once for all triggers."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest_asyncio

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.evaluator.looks import Looks
from keda_gpu_scaler.record.causes import Look
from keda_gpu_scaler.snapshot.evidence import Evidence, PodStatement
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import LOOK_AGAIN_SECONDS
from testbed.triggers import BERT, spec
from tests.support.bench import Bench
from tests.support.scripted import REFUSED, Clock, ScriptedSource
from tests.support.worlds import World

NONE = "the source has no metric of an exporter of accelerators"
ROW = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "job": "gpu"}
OTHERS = Look(metrics=[ROW], series=[ROW], pods=[{**ROW, "namespace": "web", "pod": "bart-0"}])
KSM = Target("ksm", "10.0.0.9:8080")
STATED = facts.CauseFound(
    "default", f"{NONE}: let it scrape an exporter on each node that has them", ()
)


@pytest_asyncio.fixture
async def unread() -> AsyncIterator[Bench]:
    """Two Deployments with a pod that is Ready for long, and a source without any exporter."""
    clock = Clock()
    pods = {
        ("ml", f"{name}-7b6667bd9-bbbbb"): PodStatement(
            owners=frozenset({Owner("Deployment", name)}),
            ready=True,
            ready_at=1000.0,
            asks_gpu=True,
        )
        for name in ("bert", "bart")
    }
    listed = Evidence(pods, scrapes={KSM: clock() + 3600}, stable_since={KSM: 15.0})
    bench = Bench(ScriptedSource(World(()), clock, said=listed, shows=Look()), clock)
    yield bench
    await bench.evaluator.close()


async def test_a_poll_says_the_cause_once_it_is_known_and_a_record_waits_for_it(
    unread: Bench,
) -> None:
    assert (await unread.ask()).state is State.UNKNOWN
    await unread.landed()
    assert f"; {NONE}: let it scrape" in (await unread.again()).reason
    record = await unread.evaluator.record(BERT, spec(workload="deployment/bart"))
    assert NONE in record.reason
    assert unread.of(facts.CauseFound) == [STATED, STATED]  # of two triggers


async def test_a_workload_that_may_never_have_been_shown_has_a_cause_unless_others_are_shown() -> (
    None
):
    """Its pods may exist: nothing but exporters says which there are."""
    for seen, is_said in ((Look(), True), (OTHERS, False)):
        clock = Clock()
        bench = Bench(ScriptedSource(World(()), clock, shows=seen), clock)
        first = await bench.ask()
        last = await bench.later(60)
        assert last.state is State.ENDED
        for decided in (first, last):
            assert ("the source has no metric" in decided.reason) is is_said
            assert "other namespace" not in decided.reason
        assert bool(bench.of(facts.CauseFound)) is is_said
        await bench.evaluator.close()


async def test_a_thousand_triggers_ask_once_in_two_minutes_whatever_the_answer_is(
    unread: Bench,
) -> None:
    unread.source.shows = REFUSED
    for number in range(1000):
        await unread.ask(scaled_object=ScaledObject("ml", f"bert-{number}"))
    assert unread.source.looked == 1
    decided = await unread.later(LOOK_AGAIN_SECONDS - 15)
    assert f"does not show its metrics of accelerators ({REFUSED})" in decided.reason
    assert unread.source.looked == 1
    await unread.later(30)
    assert unread.source.looked == 2


async def test_nothing_is_asked_while_the_source_fails_or_the_demand_alone_counts(
    unread: Bench,
) -> None:
    by_demand = spec(demandQuery="sum(waiting)", demandThreshold="8", threshold="")
    assert by_demand.demand is not None
    unread.source.numbers[by_demand.demand.text] = 20.0
    decided = await unread.ask(by_demand)
    assert decided.reason.startswith("demand 20 needs 3 replicas")
    unread.source.trouble = REFUSED
    await unread.later(300, by_demand)
    await unread.later(60)
    assert unread.source.looked == 0


async def test_a_fault_of_ours_in_the_look_costs_no_poll_its_answer(unread: Bench) -> None:
    unread.source.shows = Look(metrics=[{}])  # a row that no query asks for
    await unread.ask()
    await unread.landed()
    decided = await unread.again()
    assert decided.state is State.UNKNOWN
    assert "the look for the cause failed (KeyError)" in decided.reason


async def test_a_source_that_cannot_be_asked_gives_no_cause() -> None:
    source = ScriptedSource(World(()), Clock())
    assert await Looks({"default": source.ports()}, source.clock).of("default", "ml", 0.0) is None


async def test_one_that_is_asked_by_namespace_is_asked_in_each() -> None:
    source = ScriptedSource(World(()), Clock(), shows=Look())
    ports = replace(source.ports(is_per_namespace=True), accelerators=source.look)
    at_sources = Looks({"default": ports}, source.clock)
    assert await at_sources.of("default", "ml", source.clock() + 1) is None
    assert list(source.within_namespaces) == ["ml"]
    await at_sources.close()
