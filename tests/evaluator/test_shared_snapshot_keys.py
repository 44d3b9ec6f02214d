"""Which shared snapshot answers for a trigger: one for all, or one for each namespace."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest
import pytest_asyncio

from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.evaluator.shared_snapshot import (
    OWN_QUERIES,
    OWN_QUERIES_PER_NAMESPACE,
    Reading,
    SharedSnapshot,
    Snapshots,
)
from keda_gpu_scaler.snapshot.reported_pods import ABSENT_ELEMENTS_KEPT
from keda_gpu_scaler.spec.spec import OwnQuery, Signal, TriggerSpec
from keda_gpu_scaler.spec.workload import Kind, Workload
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import FORGET_SECONDS, SLOW_SECONDS
from testbed import triggers
from tests.support.scripted import Clock, ScriptedSource
from tests.support.worlds import World, WorldPod


def spec(namespace: str = "ml", signal: Signal = Signal.UTILIZATION) -> TriggerSpec:
    pods = Workload(Kind.DEPLOYMENT, namespace, "bert")
    return replace(triggers.spec(), pods=pods, signal=signal)


@dataclass(slots=True)
class Bench:
    """The shared snapshots of one source."""

    clock: Clock = field(default_factory=Clock)
    source: ScriptedSource = field(init=False)
    snapshots: Snapshots = field(init=False)

    def __post_init__(self) -> None:
        """Put them together."""
        self.source = ScriptedSource(World((WorldPod("bert-7b6667bd9-bbbbb"),)), self.clock)
        self.begin(self.source.ports())

    def begin(self, ports: Source) -> None:
        self.snapshots = Snapshots({"default": ports}, facts.ignore, self.clock, SLOW_SECONDS)

    def ask_by_namespace(self) -> None:
        """Let the source answer about one namespace at a time."""
        self.begin(self.source.ports(is_per_namespace=True))

    def of(self, one: TriggerSpec, namespace: str = "ml") -> SharedSnapshot:
        """Return the snapshot of a trigger."""
        _, key = self.snapshots.needs(one)
        return self.snapshots.of(key, one, namespace)

    async def ask(self, one: TriggerSpec, namespace: str = "ml") -> Reading:
        """Bring the snapshot of a trigger up to date."""
        snapshot_query, _ = self.snapshots.needs(one)
        until = self.clock() + 10
        shared = self.of(one, namespace)
        return await shared.read(snapshot_query, until, lambda found: not found.is_fetching)


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.snapshots.close()


async def test_of_a_source_that_is_asked_by_namespace_each_has_its_own(bench: Bench) -> None:
    bench.ask_by_namespace()
    power = spec("a", Signal.POWER)
    for one in (spec("a"), spec("b"), power):
        await bench.ask(one)
    tenants = bench.source.within_namespaces
    assert bench.source.fetched == []
    assert {name: len(one.fetched) for name, one in tenants.items()} == {"a": 2, "b": 1}
    assert {name: len(one.questioned) for name, one in tenants.items()} == {"a": 1, "b": 1}
    for name, tenant in tenants.items():
        assert {asked.namespaces for asked in tenant.fetched} == {frozenset({name})}
        assert {names for names, _ in tenant.questioned} == {frozenset({name})}
    _, key = bench.snapshots.needs(power)
    assert key.source == "default/a"


async def test_a_namespace_nobody_asks_about_is_let_go_of(bench: Bench) -> None:
    bench.ask_by_namespace()
    await bench.ask(spec("a"))
    kept = bench.of(spec("a"))
    before = bench.source.within_namespaces["a"]
    bench.clock.seconds += FORGET_SECONDS / 2
    await bench.ask(spec("b"))
    assert bench.of(spec("a")) is kept
    bench.clock.seconds += FORGET_SECONDS / 2 + 1
    await bench.ask(spec("c"))
    assert bench.of(spec("a")) is not kept
    assert bench.source.within_namespaces["a"] is not before


async def test_custom_queries_are_bounded_for_each_namespace_and_for_all(bench: Bench) -> None:
    async def trouble(number: int, namespace: str) -> str | None:
        one = replace(spec(), query=OwnQuery(f"x{number}", (), is_complete=True))
        return (await bench.ask(one, namespace)).trouble

    asked = [await trouble(number, "a") for number in range(OWN_QUERIES_PER_NAMESPACE)]
    assert set(asked) == {None}
    refused = await trouble(-1, "a")
    assert refused is not None
    assert "more than 20 different custom queries of namespace a to one source;" in refused
    for number in range(OWN_QUERIES_PER_NAMESPACE, OWN_QUERIES):
        await trouble(number, f"tenant-{number // OWN_QUERIES_PER_NAMESPACE}")
    refused = await trouble(-1, "c")
    assert refused is not None
    assert "more than 100 different custom queries of one source;" in refused
    assert await trouble(0, "c") is None
    assert len(bench.source.fetched) == OWN_QUERIES


@pytest.mark.parametrize(
    ("query", "kept"),
    [(None, ABSENT_ELEMENTS_KEPT + 1), (OwnQuery("x", (), is_complete=True), ABSENT_ELEMENTS_KEPT)],
    ids=["a signal", "a custom query"],
)
async def test_a_custom_query_remembers_fewer_pods_that_are_not_shown(
    bench: Bench, query: OwnQuery | None, kept: int
) -> None:
    """With `@ end()` and `time()` in it, one can show other pods at each step, at all instants."""
    asked = replace(spec(), query=query)
    bench.source.is_selective = True
    names = [f"bert-7b6667bd9-{number:05}" for number in range(ABSENT_ELEMENTS_KEPT + 1)]
    bench.source.world = World(tuple(map(WorldPod, names)))
    await bench.ask(asked)
    bench.clock.seconds += 15
    bench.source.world = World((WorldPod("bert-7b6667bd9-bbbbb"),))
    await bench.ask(asked)
    snapshot = bench.of(asked).snapshot
    assert snapshot is not None
    assert len(snapshot.namespaces["ml"].pods) == kept + 1


async def test_a_clock_that_was_set_back_far_begins_anew(bench: Bench) -> None:
    """All samples are known to arrive late from now on: what was known before is of later times."""
    shared = bench.of(spec())
    await bench.ask(spec())
    before = shared.snapshot
    assert before is not None
    bench.clock.seconds += 15
    bench.source.lag_seconds = 165.0
    await bench.ask(spec())
    assert shared.snapshot is not None
    assert shared.snapshot.at == before.at - 150
    assert bench.source.lag_seconds == 165
    assert [at for _, at in bench.source.questioned] == [before.at, before.at - 150]
    assert len(bench.source.remembered) == 2


async def test_a_clock_that_was_set_back_while_nobody_asked_begins_anew(bench: Bench) -> None:
    """The snapshots are dropped by then, and what the source said of the cluster is kept."""
    await bench.ask(spec())
    bench.clock.seconds += FORGET_SECONDS
    bench.source.lag_seconds = 2 * FORGET_SECONDS
    await bench.ask(spec(signal=Signal.POWER))
    (_, first), (_, second) = bench.source.questioned
    assert second < first


async def test_a_lag_that_is_learnt_in_a_fetch_is_waited_for_if_it_is_short(bench: Bench) -> None:
    shared = bench.of(spec())
    await bench.ask(spec())
    before = shared.snapshot
    bench.clock.seconds += 15
    bench.source.real_lag_seconds = 30.0
    assert (await bench.ask(spec())).trouble is None
    assert bench.source.lag_seconds == 30
    assert shared.snapshot is before
