"""Claims about triggers that are observed beside those that KEDA asks about."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest_asyncio

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.observing import Folder, Observing, Together
from keda_gpu_scaler.observing.observing import LONGEST_PAUSE_SECONDS, REFUSED_SHOWN
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from tests.observing.test_manifests import written
from tests.support.bench import PODS, Bench
from tests.support.scripted import Clock, ScriptedSource
from tests.support.triggers import BERT, access, spec
from tests.support.worlds import World

WAITING = '"sum(waiting)"'
OTHER = ScaledObject("ml", "other")


@dataclass(slots=True)
class Stage:
    """An evaluator that KEDA asks, and a folder beside it."""

    bench: Bench
    path: Path
    beside: Evaluator = field(init=False)
    observing: Observing = field(init=False)
    pauses: list[float] = field(default_factory=list)
    slept: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Build both."""
        self.beside = self.bench.evaluator.observing()
        self.observing = self.observer()

    def observer(self) -> Observing:
        """Return what observes the folder."""
        return Observing(
            Folder(self.path),
            access=access(own_promql=Policy.ALLOW),
            evaluations=self.beside,
            asked_about=self.bench.evaluator.asked_about,
            observe=self.bench.seen.append,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        """Note how long it would wait, and wait for ever."""
        self.pauses.append(seconds)
        self.slept.set()
        await asyncio.Event().wait()

    @property
    def shown(self) -> Together:
        """What people are shown."""
        return Together(self.bench.evaluator, self.observing)

    def write(self, *names: str, more: str = "") -> None:
        """Write the files anew."""
        (self.path / "all.yaml").write_text("---\n".join(written(name) + more for name in names))

    def observed(self) -> list[str]:
        """Return the names of those that were decided without being asked about."""
        return [one.scaled_object.name for one in self.bench.of(facts.Evaluated) if one.is_observed]


@pytest_asyncio.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    clock = Clock()
    bench = Bench(ScriptedSource(World(PODS), clock, numbers={"sum(waiting)": 7.0}), clock)
    made = Stage(bench, tmp_path)
    yield made
    await made.observing.close()
    await made.beside.close()
    await bench.evaluator.close()


async def test_a_trigger_is_decided_though_nobody_asks_about_it(stage: Stage) -> None:
    stage.write("bert", "other")
    assert await stage.observing.round() == 15
    assert stage.observed() == ["bert", "other"]
    found = list(stage.shown.summaries(None))
    assert [(one.scaled_object, one.value, one.recommended) for one in found] == [
        ("ml/bert", 450, 7),
        ("ml/other", 450, 7),
    ]
    assert all(one.is_observed for one in found)
    (record,) = await stage.shown.records(BERT)
    assert (record.is_observed, record.recommended, len(record.pods)) == (True, 7, 5)
    assert not list(stage.shown.summaries("none"))
    assert await stage.shown.records(ScaledObject("ml", "none")) == []


async def test_it_shares_the_snapshot_with_the_triggers_that_keda_asks_about(stage: Stage) -> None:
    stage.write(*(f"bert-{number}" for number in range(100)))
    await stage.bench.ask()
    await stage.observing.round()
    assert len(stage.observed()) == 100
    assert len(stage.bench.source.fetched) == 1


async def test_where_keda_asks_the_live_trigger_alone_is_shown_and_decided(stage: Stage) -> None:
    stage.write("bert", "other")
    await stage.observing.round()
    await stage.bench.ask(spec(threshold="90"))
    await stage.observing.round()
    assert stage.observed() == ["bert", "other"]
    found = list(stage.shown.summaries(None))
    assert [(one.scaled_object, one.is_observed) for one in found] == [
        ("ml/bert", False),
        ("ml/other", True),
    ]
    (record,) = await stage.shown.records(BERT)
    assert (record.is_observed, record.metrics[0].target) == (False, 90)
    stage.bench.clock.seconds += FORGET_SECONDS + 1
    await stage.observing.round()
    assert [one.is_observed for one in stage.shown.summaries("ml")] == [True, True]


async def test_it_is_no_call_and_no_memory_of_the_live_trigger(stage: Stage) -> None:
    stage.write("bert")
    await stage.observing.round()
    assert stage.bench.evaluator.asked_about() == frozenset()
    assert stage.shown.step_seconds == stage.bench.evaluator.step_seconds
    assert list(stage.bench.evaluator.summaries()) == []
    assert await stage.bench.evaluator.records(BERT) == []
    live = await stage.bench.ask()
    stage.bench.clock.seconds += 1
    await stage.beside.evaluate(BERT, spec(), 30.0)  # as the HPA would
    assert await stage.bench.again() == live


async def test_the_demand_of_an_observed_trigger_takes_no_turn_of_the_others(stage: Stage) -> None:
    keys = f"        demandQuery: {WAITING}\n        demandThreshold: '2'\n"
    stage.write("bert", more=keys)
    await stage.observing.round()
    await stage.bench.landed()
    await stage.observing.round()
    assert stage.bench.source.numbers_asked == ["sum(waiting)"]
    (shown,) = stage.shown.summaries(None)
    assert shown.recommended == 7  # four by the demand
    (record,) = await stage.shown.records(BERT)
    assert [one.value for one in record.metrics] == [450, 7]


async def test_files_are_read_again_when_they_change_and_say_what_is_wrong(stage: Stage) -> None:
    assert await stage.observing.round() == LONGEST_PAUSE_SECONDS
    stage.write("bert")
    await stage.observing.round()
    await stage.observing.round()
    (stage.path / "all.yaml").write_text(written("other") + "---\n" + written(threshold="seventy"))
    await stage.observing.round()
    assert [one.scaled_object for one in stage.shown.summaries(None)] == ["ml/other"]
    (refused,) = stage.bench.of(facts.ObserveRefused)
    assert (refused.file, refused.line) == ("all.yaml", 29)
    assert stage.bench.of(facts.ObserveRead) == [
        facts.ObserveRead(0, 0, 0, 0),
        facts.ObserveRead(1, 1, 0, 0),
        facts.ObserveRead(1, 1, 1, 0),
    ]


async def test_a_hundred_mistakes_are_named_and_the_others_counted(stage: Stage) -> None:
    wrong = "---\n".join(written(threshold="x") for _ in range(REFUSED_SHOWN + 3))
    (stage.path / "all.yaml").write_text(wrong)
    await stage.observing.round()
    assert len(stage.bench.of(facts.ObserveRefused)) == REFUSED_SHOWN
    assert stage.bench.of(facts.ObserveRead) == [facts.ObserveRead(1, 0, 103, 3)]


class Faulty(Evaluator):
    """Has a fault of its own, while it is told so."""

    is_faulty = True

    async def evaluate(self, *asked: Any, **how: Any) -> Decision:  # noqa: ANN401 - passed on
        """Fail, or decide."""
        if self.is_faulty:
            raise ZeroDivisionError
        return await super().evaluate(*asked, **how)


async def test_a_fault_is_said_once_until_it_works_again_and_ends_nothing(stage: Stage) -> None:
    faulty = Faulty({"default": stage.bench.source.ports()}, clock=stage.bench.clock)
    stage.beside = faulty
    stage.observing = stage.observer()
    stage.write("bert", "other")
    for is_faulty in (True, True, False, True):
        faulty.is_faulty = is_faulty
        await stage.observing.round()
    failed = stage.bench.of(facts.ObserveFailed)
    assert [one.scaled_object for one in failed] == 2 * [BERT, OTHER]
    assert isinstance(failed[0].error, ZeroDivisionError)


async def test_it_goes_on_at_the_step_of_the_source_until_it_is_closed(stage: Stage) -> None:
    stage.write("bert")
    stage.observing.start()
    await stage.slept.wait()
    assert stage.pauses == [15]
    assert stage.observed() == ["bert"]
    await stage.observing.close()
