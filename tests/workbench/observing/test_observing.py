"""Claims about the triggers of a folder, on a real disk, and about asking for them like KEDA."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest_asyncio

from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.workbench.observing import Observing, contents
from testbed.triggers import BERT, access
from tests.support.bench import PODS, Bench
from tests.support.scripted import Clock, ScriptedSource
from tests.support.worlds import STEP, World
from tests.workbench.observing.test_manifests import written

WAITING = '"sum(waiting)"'


@dataclass(slots=True)
class Stage:
    """A folder, and what observes it."""

    bench: Bench
    path: Path
    observing: Observing = field(init=False)

    def __post_init__(self) -> None:
        self.observing = Observing(
            self.path,
            access=access(own_promql=Policy.ALLOW),
            evaluator=self.bench.evaluator,
            observe=self.bench.seen.append,
        )

    def write(self, *names: str, more: str = "") -> None:
        (self.path / "all.yaml").write_text("---\n".join(written(name) + more for name in names))

    def shown(self) -> list[tuple[str, float | None, int | None]]:
        """Return what is shown of each trigger: its name, its value, and what it asks for."""
        return [
            (one.scaled_object, one.value, one.recommended)
            for one in self.bench.evaluator.summaries()
        ]


@pytest_asyncio.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    clock = Clock()
    source = ScriptedSource(World(PODS), clock, numbers={"sum(waiting)": 7.0})
    bench = Bench(source, clock, is_observing=True)
    made = Stage(bench, tmp_path)
    yield made
    await bench.evaluator.close()


async def test_triggers_of_files_are_decided_by_one_snapshot(stage: Stage) -> None:
    stage.write(*(f"bert-{number}" for number in range(100)))
    await stage.observing.round()
    assert {one[1:] for one in stage.shown()} == {(450, 7)}
    assert len(stage.shown()) == 100
    assert len(stage.bench.source.fetched) == 1


async def test_what_nobody_ever_showed_is_never_seen_and_asks_for_nothing(
    stage: Stage,
) -> None:
    """Not idle: a name that no workload has looks the same."""
    stage.bench.source.world = World(())
    stage.write("bert")
    await stage.observing.round()
    (evaluated,) = stage.bench.of(facts.Evaluated)
    seen = "never seen: no exporter has shown a pod of deployment/bert; "
    assert evaluated.decision.reason.startswith(seen)
    assert (evaluated.decision.active, stage.shown()) == (None, [("ml/bert", None, None)])


async def test_a_demand_with_a_threshold_is_asked_for_as_by_the_hpa(stage: Stage) -> None:
    keys = f"        demandQuery: {WAITING}\n        demandThreshold: '2'\n"
    stage.write("bert", more=keys)
    await stage.observing.round()
    await stage.bench.landed()
    await stage.observing.round()
    assert stage.bench.source.numbers_asked == ["sum(waiting)"]
    assert stage.shown() == [("ml/bert", 450, 7)]  # four by the demand
    (record,) = await stage.bench.evaluator.records(BERT)
    assert [one.value for one in record.metrics] == [450, 7]


async def test_files_are_read_again_when_they_change_and_say_what_is_wrong(stage: Stage) -> None:
    await stage.observing.round()
    stage.write("bert")
    await stage.observing.round()
    await stage.observing.round()
    (stage.path / "all.yaml").write_text(written("other") + "---\n" + written(threshold="seventy"))
    stage.bench.clock.seconds += STEP
    await stage.observing.round()
    assert [one.scaled_object.name for one in stage.bench.of(facts.Evaluated)] == ["bert", "other"]
    (refused,) = stage.bench.of(facts.ObserveRefused)
    assert (refused.file, refused.line) == ("all.yaml", 29)
    assert stage.bench.of(facts.ObserveRead) == [
        facts.ObserveRead(0, 0, 0),
        facts.ObserveRead(1, 1, 0),
        facts.ObserveRead(1, 1, 1),
    ]


async def test_the_mistakes_of_a_file_are_one_line_with_their_number(stage: Stage) -> None:
    wrong = "---\n".join([written(threshold="seventy")] * 3)
    for name in ("a.yaml", "b.yaml"):
        (stage.path / name).write_text(wrong)
    await stage.observing.round()
    refused = stage.bench.of(facts.ObserveRefused)
    assert sorted(refusal.file for refusal in refused) == ["a.yaml", "b.yaml"]
    assert all(refusal.reason.endswith("; and 2 more in this file") for refusal in refused)
    assert stage.bench.of(facts.ObserveRead) == [facts.ObserveRead(2, 0, 6)]


def test_a_mounted_config_map_is_read_through_its_links(tmp_path: Path) -> None:
    """Kubernetes swaps a link to a hidden folder, and each file is a link through it."""
    (tmp_path / "..1").mkdir()
    (tmp_path / "..1" / "a.yaml").write_text("a: 1")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / ".hidden.yaml").write_text("b: 1")
    (tmp_path / "README.md").write_text("not read")
    assert contents(tmp_path) == ({"a.yaml": "a: 1", "b.json": "{}"}, [])


def test_what_is_no_readable_text_is_refused_and_hides_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    os.mkfifo(tmp_path / "b.yaml")
    (tmp_path / "c.yaml").symlink_to("nowhere")
    (tmp_path / "d.yaml").write_bytes(b"\xff")
    (tmp_path / "e.yaml").write_bytes(b"\xef\xbb\xbfe: 1")
    texts, refused = contents(tmp_path)
    assert texts == {"e.yaml": "e: 1"}
    assert [(refusal.file, refusal.reason[:30]) for refusal in refused] == [
        ("a.yaml", "it is no file"),
        ("b.yaml", "it is no file"),
        ("c.yaml", "it is no file"),
        ("d.yaml", "'utf-8' codec can't decode byt"),
    ]


def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    _, (refused,) = contents(tmp_path / "none")
    assert refused.reason == "the folder cannot be read: No such file or directory"
