"""Claims about label selectors of scale targets: when they are read, and what they are good for.

`test_groups.py` and `test_following.py` read them from an API server on a real port.
"""

import asyncio
from dataclasses import replace

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.evidence.kubernetes import selections
from keda_gpu_scaler.evidence.kubernetes.api import Api
from keda_gpu_scaler.evidence.kubernetes.objects import Resource, ScaleReference
from keda_gpu_scaler.evidence.kubernetes.selections import Selections
from keda_gpu_scaler.snapshot.evidence import PodStatement
from keda_gpu_scaler.spec.workload import Owner, Selected
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import FORGET_SECONDS
from tests.support.scripted import Clock

SCALE = ScaleReference("ml", Resource("example.com", "v1", "models"), "bert")
OWNER = SCALE.pods.selected_by
FORBIDDEN = errors.SourceRefusedError("HTTP 403, x is forbidden")
TRUSTED = frozenset({("ml", OWNER)})


class ScriptedApi(Api):
    """Answers with the selectors that a test gives it, by the target's name."""

    def __init__(self) -> None:
        """Let one target have a selector."""
        self.selectors: dict[str, str | Exception] = {"bert": "app=bert"}
        self.reads: list[str] = []
        self.held: set[str] = set()

    async def selector(self, scale: ScaleReference) -> str:
        """Answer at once, or never."""
        self.reads.append(scale.name)
        if scale.name in self.held:
            await asyncio.Event().wait()
        answer = self.selectors[scale.name]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bench:
    """Selections of one cluster, and what was stated of them."""

    def __init__(self) -> None:
        self.api, self.clock, self.seen = ScriptedApi(), Clock(), list[facts.Fact]()
        self.selections = Selections(self.api, self.seen.append, self.clock)

    async def read_again(self, *namespaces: str) -> None:
        """Let the time of the next reading come, and wait until it is over."""
        self.clock.seconds += selections.READ_SECONDS
        self.selections.renew(namespaces or {"ml"})
        await settled()

    @property
    def trusted(self) -> frozenset[tuple[str, Owner]]:
        return self.selections.trusted({"ml"}, {})

    @property
    def works(self) -> list[bool]:
        return [fact.works for fact in self.seen if isinstance(fact, facts.WatchChanged)]

    def selecting(self, **labels: str) -> set[Owner]:
        return self.selections.selecting("ml", "bert-0", labels)


async def settled() -> None:
    """Give tasks that wait for nothing the steps in which they end."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_target_selects_the_pods_of_its_namespace_with_its_labels(bench: Bench) -> None:
    assert not bench.trusted, "nobody asked"
    await bench.selections.learn(SCALE)
    assert bench.selections.pods(SCALE) == Selected("ml", "models.example.com", "bert")
    assert bench.selecting(app="bert", tier="gpu") == {OWNER}
    assert not bench.selecting(app="gemma")
    assert not bench.selections.selecting("web", "bert-0", {"app": "bert"})
    assert bench.trusted == TRUSTED
    assert not bench.selections.trusted({"web"}, {})


async def test_a_selector_that_changes_is_read_again(bench: Bench) -> None:
    for _ in range(3):
        await bench.selections.learn(SCALE)
    assert len(bench.api.reads) == 1
    bench.api.selectors["bert"] = "app=gemma"
    await bench.read_again()
    assert (bench.selecting(app="gemma"), bench.selecting(app="bert")) == ({OWNER}, set())
    await bench.read_again("web")
    assert len(bench.api.reads) == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "the selector of models.example.com/bert in ml: it is empty, which would be every"),
        ("!app", "the selector of models.example.com/bert in ml: '!app' is no label with one"),
        (FORBIDDEN, "HTTP 403, x is forbidden"),
    ],
)
async def test_a_selector_that_was_never_known_is_a_reason(
    bench: Bench, answer: str | Exception, reason: str
) -> None:
    bench.api.selectors["bert"] = answer
    await bench.selections.learn(SCALE)
    assert str(bench.selections.pods(SCALE)).startswith(reason)
    assert not bench.trusted
    assert not bench.selecting(app="bert")
    assert bench.works == [False]


async def test_a_selector_that_takes_long_is_neither_known_nor_trouble(bench: Bench) -> None:
    slow, bench.api.held = SCALE._replace(name="slow"), {"slow"}
    learning = asyncio.create_task(bench.selections.learn(slow))
    await bench.selections.learn(SCALE)
    assert bench.selections.pods(slow) == "its selector was not read yet"
    assert bench.works == [True]
    await bench.selections.close()
    await learning


async def test_a_selector_that_was_known_is_trusted_for_a_minute(bench: Bench) -> None:
    await bench.selections.learn(SCALE)
    bench.api.selectors["bert"] = FORBIDDEN
    for _ in range(4):
        await bench.read_again()
        assert bench.trusted
    await bench.read_again()
    assert not bench.trusted
    assert bench.selecting(app="bert") == {OWNER}, "what was known of them stays"
    assert bench.selections.pods(SCALE) == SCALE.pods
    bench.api.selectors["bert"] = "app=bert"
    await bench.read_again()
    assert bench.trusted
    bench.api.selectors["bert"] = ""
    await bench.read_again()
    assert not bench.trusted, "an empty one is not trusted for a moment"
    assert bench.works == [True, False, True, False]


async def test_what_nobody_uses_any_more_is_forgotten(bench: Bench) -> None:
    bench.api.selectors["bert"] = FORBIDDEN
    await bench.selections.learn(SCALE)
    bench.clock.seconds += FORGET_SECONDS + 1
    await bench.read_again()
    assert len(bench.api.reads) == 1
    assert bench.works == [False, True]


async def test_no_more_selectors_are_read_than_the_limit(bench: Bench) -> None:
    scales = [SCALE._replace(name=f"bert-{number}") for number in range(selections.LIMIT + 1)]
    bench.api.selectors = {scale.name: "app=bert" for scale in scales}
    for scale in scales:
        await bench.selections.learn(scale)
    assert [bench.selections.pods(scale) for scale in scales] == [
        *(scale.pods for scale in scales[:-1]),
        "500 other selectors are read already",
    ]


@pytest.mark.parametrize(
    ("selected", "left_out"),
    [
        (("StatefulSet", "bert"), ("StatefulSet", "bert-0")),
        (("Role", "decode"), ("Role", "decode")),
    ],
    ids=["a worker of a group", "another pod of the same owner"],
)
async def test_a_selector_that_leaves_out_pods_of_a_replica_is_not_trusted(
    bench: Bench, selected: tuple[str, str], left_out: tuple[str, str]
) -> None:
    """It is made for the HPA, which counts replicas: it selects one pod of each."""
    await bench.selections.learn(SCALE)
    worker = PodStatement(owners=frozenset({Owner(*left_out)}), asks_gpu=True)
    pods = {
        ("ml", "bert-0"): PodStatement(owners=frozenset({Owner(*selected), OWNER}), asks_gpu=True),
        ("ml", "proxy-0"): replace(worker, asks_gpu=False),
        ("ml", "bert-0-1"): worker,
    }
    assert not bench.selections.trusted({"ml"}, pods)
    assert "leaves out bert-0-1, which belongs to selected pods" in str(bench.seen[-1])
    pods["ml", "bert-0-1"] = replace(worker, ended=True)
    assert bench.selections.trusted({"ml"}, pods) == TRUSTED
    assert bench.works == [True, False, True]
