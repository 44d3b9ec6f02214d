"""Claims about asking for demand: shared, within a budget, and waiting only where it helps."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pytest_asyncio

from keda_gpu_scaler import times
from keda_gpu_scaler.evaluator import demand_queries
from keda_gpu_scaler.evaluator.demand_queries import Demands
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.spec.spec import Demand, Pace, ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from testbed.clocks import at_once
from testbed.triggers import BERT, demanding, spec
from tests.support.bench import landed
from tests.support.scripted import REFUSED, Clock, ScriptedSource
from tests.support.worlds import World

WAITING = "sum(waiting)"
OTHER = ScaledObject("web", "bert")
FactT = TypeVar("FactT", bound=facts.Fact)


@dataclass(slots=True)
class Bench:
    """Demands on a scripted source, with everything they state."""

    pace: Pace = field(default_factory=Pace)
    clock: Clock = field(default_factory=Clock)
    seen: list[facts.Fact] = field(default_factory=list)
    source: ScriptedSource = field(init=False)
    demands: Demands = field(init=False)

    def __post_init__(self) -> None:
        """Build them."""
        self.source = ScriptedSource(World(()), self.clock)
        self.demands = self.asking(self.source.ports())

    def asking(self, ports: Source) -> Demands:
        """Return the demands on a source."""
        return Demands(
            {"default": ports}, self.seen.append, self.clock, times.SLOW_SECONDS, self.pace
        )

    async def ask(
        self, trigger: TriggerSpec | None = None, patience: float = 2.5, whose: ScaledObject = BERT
    ) -> Demand:
        """Ask as an evaluation does."""
        return await self.demands.ask(whose, trigger or demanding(WAITING), self.clock() + patience)

    async def later(self, seconds: float) -> Demand:
        """Ask once more after this time."""
        self.clock.seconds += seconds
        return await self.ask()

    def due(self, *texts: str) -> list[float]:
        """Return in how many seconds there can be something new about these expressions."""
        return [round(self.demands.due_seconds(BERT, demanding(text)), 6) for text in texts]

    def of(self, kind: type[FactT]) -> list[FactT]:
        """Return the facts of one kind."""
        return [fact for fact in self.seen if isinstance(fact, kind)]


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    """Seven wait."""
    bench = Bench()
    bench.source.numbers[WAITING] = 7.0
    yield bench
    await bench.demands.close()


def _texts(count: int) -> Sequence[str]:
    return [f"sum(waiting{number})" for number in range(count)]


async def test_a_source_that_understands_no_expressions_never_says_that_nothing_waits() -> None:
    bench = Bench()
    demand = await bench.asking(Source(bench.source)).ask(BERT, demanding(WAITING), 2.5)
    assert demand == Demand(None, "source default: it understands no demandQuery")


async def test_a_thousand_triggers_ask_one_question(bench: Bench) -> None:
    objects = [ScaledObject("ml", f"object-{number}") for number in range(1000)]
    asked = demanding(WAITING)
    found = await asyncio.gather(*(bench.ask(asked, whose=one) for one in objects))
    assert set(found) == {Demand(7.0)}
    assert bench.source.numbers_asked == [WAITING]


async def test_a_question_is_asked_again_when_its_interval_is_over(bench: Bench) -> None:
    await bench.ask()
    bench.source.numbers[WAITING] = 9.0
    assert await bench.later(4.9) == Demand(7.0)
    assert bench.due(WAITING) == [0.1]
    assert await bench.later(0.1) == Demand(9.0)
    assert bench.due(WAITING) == [5.0]
    assert len(bench.source.numbers_asked) == 2


async def test_what_nobody_asks_for_is_looked_for_once_per_interval(bench: Bench) -> None:
    assert bench.due(WAITING) == [5.0]
    await bench.ask()
    bench.clock.seconds += 6
    assert bench.due(WAITING) == [0.0]
    bench.clock.seconds += 0.1
    assert bench.due(WAITING) == [5.0]
    assert bench.demands.due_seconds(BERT, spec()) == math.inf


async def test_a_question_that_fails_and_works_again_is_stated_once_each(bench: Bench) -> None:
    for said in (REFUSED, REFUSED, None, 3.0, 4.0):
        bench.source.numbers[WAITING] = said
        await bench.later(5)
        await landed()
    wanted = demanding(WAITING).demand
    assert wanted is not None
    assert bench.of(facts.QueryChanged) == [
        facts.QueryChanged("default", wanted.name, False, f"source default: {REFUSED}"),
        facts.QueryChanged("default", wanted.name, True, "it gives a number again"),
    ]


async def test_a_late_answer_is_waited_for_by_nobody_and_used_when_it_comes(bench: Bench) -> None:
    bench.source.number_gate = asyncio.Event()
    await bench.ask(patience=0)
    bench.clock.seconds += 3
    assert (await at_once(bench.ask())).value is None
    bench.source.number_gate.set()
    await landed()
    bench.source.number_gate = asyncio.Event()
    assert await at_once(bench.later(5)) == Demand(7.0)


async def test_a_question_is_asked_once_at_a_time(bench: Bench) -> None:
    bench.source.number_gate = asyncio.Event()
    await bench.ask(patience=0)
    bench.clock.seconds += 20
    await bench.ask(patience=0)
    assert bench.due(WAITING) == [5.0]
    bench.source.number_gate.set()
    await landed()
    assert bench.source.numbers_asked == [WAITING]


async def test_slow_expressions_of_one_namespace_leave_turns_to_others(bench: Bench) -> None:
    bench.source.number_gate = asyncio.Event()
    texts = _texts(demand_queries.AT_ONCE_OF_A_NAMESPACE + 1)
    for text in texts:
        await bench.ask(demanding(text), patience=0)
    await bench.ask(patience=0, whose=OTHER)
    assert bench.source.numbers_asked == [*texts[:-1], WAITING]


async def test_many_expressions_are_asked_less_often_until_they_are_forgotten() -> None:
    bench = Bench(Pace(interval_seconds=0.05, queries_per_second=100))
    first, *others = _texts(20)
    for text in (first, *others):
        await bench.ask(demanding(text), patience=0)
    await landed()
    assert bench.due(first) == [0.2]
    for _ in range(11):
        bench.clock.seconds += 60
        await bench.ask(demanding(first))
    assert bench.due(first) == [0.05]


async def test_a_source_takes_so_many_expressions_and_half_of_them_of_one_namespace() -> None:
    bench = Bench()
    texts = _texts(demand_queries.QUERIES_PER_SOURCE)
    bench.source.numbers[texts[0]] = 1.0
    half = demand_queries.QUERIES_PER_NAMESPACE
    for tenant, asked in ((BERT, texts[:half]), (OTHER, texts[half:])):
        for text in asked:
            await bench.ask(demanding(text), patience=0, whose=tenant)
        if tenant is BERT:
            one_more = await bench.ask()
            assert one_more.trouble == (
                "source default: too many different demandQueries of ml, more than 1,000"
            )
    assert await bench.ask(demanding(texts[0])) == Demand(1.0)
    refused = await bench.ask(whose=ScaledObject("third", "bert"))
    assert refused == Demand(
        None, "source default: too many different demandQueries, more than 2,000"
    )
    assert bench.of(facts.DemandKnown)[-1].demand == refused
    await bench.demands.close()


async def test_a_number_counts_until_it_can_be_asked_for_twice_however_rarely_that_is() -> None:
    bench = Bench(Pace(queries_per_second=0.01))
    bench.source.numbers[WAITING] = 7.0
    assert await bench.ask() == Demand(7.0)
    bench.source.number_gate = asyncio.Event()
    bench.clock.seconds += 200
    assert await bench.ask(patience=0) == Demand(7.0)
    bench.clock.seconds += 1
    assert (await bench.ask(patience=0)).value is None
    await bench.demands.close()


async def test_a_source_per_namespace_is_asked_for_each_of_them(bench: Bench) -> None:
    ports = bench.source.ports(is_per_namespace=True)
    bench.demands = bench.asking(ports)
    await bench.ask()
    bench.source.numbers[WAITING] = REFUSED
    await bench.ask(whose=OTHER)
    asked = {name: one.numbers_asked for name, one in bench.source.within_namespaces.items()}
    assert asked == {"ml": [WAITING], "web": [WAITING]}
    assert [fact.source for fact in bench.of(facts.QueryChanged)] == ["default/web"]


async def test_nothing_is_an_answer_and_counts_at_once(bench: Bench) -> None:
    await bench.ask()
    bench.source.numbers[WAITING] = None
    assert await bench.later(5) == Demand(None, "its query gives nothing")
    bench.source.numbers[WAITING] = REFUSED
    await bench.later(5)
    assert await bench.later(5) == Demand(None, f"source default: {REFUSED}")


async def test_after_a_gap_a_number_is_the_least_until_all_servers_are_scraped_again() -> None:
    """A source that begins anew gives a part of a sum; so does one whose answer was empty."""
    bench = Bench()
    bench.source.numbers[WAITING] = 7.0

    async def is_least(after_seconds: float) -> bool:
        bench.clock.seconds += after_seconds
        return (await bench.ask()).is_least

    gap, settled = times.GAP_SECONDS, times.BEGUN_SECONDS
    assert [await is_least(after) for after in (0, gap, settled - gap)] == [True, True, False]
    assert [await is_least(after) for after in (gap, gap + 1, gap, gap)] == [
        *(False, True),
        *(True, False),
    ]
    bench.source.numbers[WAITING] = None
    await is_least(15)
    bench.source.numbers[WAITING] = 7.0
    assert await is_least(15)


async def test_where_demands_are_queried_rarely_their_usual_pace_is_no_gap() -> None:
    bench = Bench(Pace(interval_seconds=times.BEGUN_SECONDS))
    bench.source.numbers[WAITING] = 7.0
    assert (await bench.ask()).is_least
    for _ in range(3):
        assert not (await bench.later(times.BEGUN_SECONDS)).is_least
    assert (await bench.later(2 * times.BEGUN_SECONDS + 1)).is_least
