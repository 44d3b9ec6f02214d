"""What is written on pods before a scale-in, and removed after it, on an API server's real port."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightkube
import pytest
from lightkube.config.kubeconfig import SingleConfig
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling.scale_in import COST, MARK
from keda_gpu_scaler.evidence.kubernetes.api import Api
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.workbench.costs import CostWriter
from keda_gpu_scaler.workbench.world import web
from testbed.triggers import access
from tests.support import api_server
from tests.support.api_server import Json
from tests.support.bench import Bench
from tests.support.scripted import Clock, ScriptedSource
from tests.support.worlds import World, WorldPod

NAMES = {letter: f"bert-7b6667bd9-{letter * 5}" for letter in "bcd"}
LOADS = {"b": 90.0, "c": 0.0, "d": 40.0}
OF_LOADS = {"b": "-1", "c": "-3", "d": "-2"}
AHEAD = 30.0
ML = "/namespaces/ml"


async def _at_once() -> None: ...


@dataclass(slots=True)
class FakeCluster:
    """A Deployment with three pods, an HPA without a stabilization window, and patches of pods."""

    pods: dict[str, Json]
    replicas: int = 3
    average: str = "10"
    set_replicas: int | None = None
    """What the HPA has just set; None: it is what there was at its last sync."""
    triggers: list[Json] = field(default_factory=list)
    kind: str = "deployments"
    owner: tuple[str, str] = ("Deployment", "bert")
    patches: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    refusal: Response | None = None
    """Of patches."""
    shown: Json = field(default_factory=dict)
    """In place of what a ScaledObject has."""
    before_patch: Callable[[], None] = lambda: None
    hold_back: Callable[[], Awaitable[None]] = _at_once
    """Of patches."""
    on_list: Callable[[], None] = lambda: None

    def application(self) -> Starlette:
        pods, answers = f"/api/v1{ML}/pods", self._lists()
        routes = [Route(path, self._answering(made)) for path, made in answers.items()]
        routes.append(Route(f"{pods}/{{name}}", self._patch, methods=["PATCH"]))
        return Starlette(routes=routes)

    def _lists(self) -> dict[str, Callable[[], list[Json]]]:
        return {
            f"/apis/keda.sh/v1alpha1{ML}/scaledobjects": self._scaled_objects,
            f"/apis/autoscaling/v2{ML}/horizontalpodautoscalers": self._hpas,
            f"/apis/apps/v1{ML}/replicasets": lambda: [
                {"metadata": api_server.metadata("bert-7b6667bd9", self.owner)}
            ],
            f"/api/v1{ML}/pods": lambda: list(self.pods.values()),
        }

    def _answering(self, made: Callable[[], list[Json]]) -> Any:
        async def answer(request: Request) -> Response:
            assert request.method == "GET"
            self.on_list()
            items, begin = made(), int(request.query_params.get("continue", "0"))
            end = begin + 2 if "limit" in request.query_params else len(items)
            following = {"continue": str(end)} if end < len(items) else {}
            version = {"resourceVersion": "7", **following}
            return JSONResponse({"metadata": version, "items": items[begin:end]})

        return answer

    async def _patch(self, request: Request) -> Response:
        assert request.headers["content-type"] == "application/merge-patch+json"
        self.before_patch()
        await self.hold_back()
        if self.refusal is not None:
            return self.refusal
        name, metadata = request.path_params["name"], (await request.json())["metadata"]
        pod = self.pods.get(name)
        if pod is None:
            return api_server.failure(404, "not found")
        if pod["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            return api_server.failure(409, "the object has been modified")
        annotations = pod["metadata"].get("annotations", {}) | metadata["annotations"]
        kept = {key: value for key, value in annotations.items() if value is not None}
        pod["metadata"] |= {"annotations": kept, "resourceVersion": str(len(self.patches) + 100)}
        self.patches.append((name, metadata["annotations"]))
        return JSONResponse(pod)

    def _scaled_objects(self) -> list[Json]:
        target = {"group": "apps", "version": "v1", "kind": "Deployment", "resource": self.kind}
        metadata = api_server.metadata("bert", creationTimestamp=api_server.BEGUN, generation=1)
        scaled = {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": metadata,
            "spec": {"scaleTargetRef": {"name": "bert"}, "triggers": self.triggers},
            "status": {"hpaName": "keda-hpa-bert", "scaleTargetGVKR": target},
        }
        return [scaled | self.shown]

    def _hpas(self) -> list[Json]:
        target = {"external": {"metric": {"name": "gpu"}, "target": {"averageValue": "70"}}}
        current = {
            "external": {"metric": {"name": "gpu"}, "current": {"averageValue": self.average}}
        }
        status = {
            "currentReplicas": self.replicas,
            "desiredReplicas": self.set_replicas or self.replicas,
            "currentMetrics": [current],
            "conditions": [{"type": "ScalingActive", "status": "True"}],
        }
        behavior = {"scaleDown": {"stabilizationWindowSeconds": 0}}
        spec = {"maxReplicas": 9, "metrics": [target], "behavior": behavior}
        return [{"metadata": {"name": "keda-hpa-bert"}, "spec": spec, "status": status}]

    def annotate(self, letter: str, **given: str | None) -> None:
        """Set a cost and a mark of a pod, as someone else does."""
        named = {COST: given.get("cost"), MARK: given.get("mark")}
        found = {key: value for key, value in named.items() if value is not None}
        self.pods[NAMES[letter]]["metadata"] |= {"annotations": found, "resourceVersion": "9"}

    def annotations(self, letter: str) -> tuple[str | None, str | None]:
        notes = self.pods[NAMES[letter]]["metadata"].get("annotations", {})
        return notes.get(COST), notes.get(MARK)

    @property
    def costs(self) -> dict[str, str]:
        """The costs that are marked as this program's."""
        return {
            letter: cost
            for letter in NAMES
            if NAMES[letter] in self.pods
            for cost, mark in [self.annotations(letter)]
            if cost is not None and cost == mark
        }


@dataclass(slots=True)
class Stage:
    """A cluster, the loads of its pods, and what writes costs."""

    cluster: FakeCluster
    bench: Bench
    configuration: SingleConfig
    dry_run: bool = False
    namespaces: list[str] = field(default_factory=lambda: ["ml"])
    writer: CostWriter = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin anew, as a process that has just started."""
        self.writer = CostWriter(
            Api(configuration=self.configuration),
            self.namespaces,
            access=access(),
            evaluator=self.bench.evaluator,
            observe=self.bench.seen.append,
            ahead_seconds=AHEAD,
            dry_run=self.dry_run,
            clock=self.bench.clock,
        )

    async def round(self) -> None:
        self.bench.clock.seconds += 5
        await self.writer.round()

    async def end(self) -> None:
        """Run until a round is over, and end as at SIGTERM."""
        task = asyncio.create_task(self.writer.run())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    @property
    def told(self) -> list[tuple[str, ...]]:
        """The letters of the pods that were said to go first."""
        return [tuple(pod[-1] for pod in fact.pods) for fact in self.bench.of(facts.DeletionCosts)]


def trigger(**more: str) -> Json:
    metadata = {"workload": "bert", "threshold": "70", **more}
    return {"type": "external", "metadata": metadata}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    owner = "ReplicaSet", "bert-7b6667bd9"
    pods = {name: {"metadata": api_server.metadata(name, owner)} for name in NAMES.values()}
    cluster = FakeCluster(pods, triggers=[trigger()])
    server = web.server(cluster.application())
    known: Json = {"clusters": [{"name": "c", "cluster": {"server": ""}}], "current-context": "x"}
    known |= {"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}
    known |= {"users": [{"name": "u", "user": {"token": api_server.TOKEN}}]}
    known["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{await server.start()}"
    (tmp_path / "kubeconfig").write_text(json.dumps(known))
    configuration = lightkube.KubeConfig.from_file(tmp_path / "kubeconfig").get()
    assert configuration is not None
    clock = Clock()
    world = World(tuple(WorldPod(name, value=LOADS[letter]) for letter, name in NAMES.items()))
    bench = Bench(ScriptedSource(world, clock), clock, is_observing=True)
    made = Stage(cluster, bench, configuration)
    try:
        yield made
        await made.end()
    finally:
        await bench.evaluator.close()
        await server.stop()


async def test_the_least_busy_pod_has_the_lowest_cost_before_a_scale_in(stage: Stage) -> None:
    await stage.round()
    assert stage.cluster.costs == OF_LOADS
    assert stage.told == [("c", "d")]  # 10 for each of three is enough for one
    for _ in range(3):
        await stage.round()
    assert len(stage.cluster.patches) == 3


async def test_when_the_scale_in_is_over_its_costs_are_removed_and_nothing_else(
    stage: Stage,
) -> None:
    stage.cluster.annotate("d", cost="7")
    await stage.round()
    assert stage.cluster.costs == {"b": "-1", "c": "-3"}
    del stage.cluster.pods[NAMES["c"]]
    stage.cluster.replicas, stage.cluster.average = 2, "70"
    for _ in range(3):
        await stage.round()
    assert stage.cluster.costs == {}
    assert stage.cluster.annotations("d") == ("7", None)
    assert len(stage.cluster.patches) == 3
    assert stage.told == [("c", "d"), ()]


async def test_until_the_hpa_looks_again_the_pods_of_its_step_may_still_be_there(
    stage: Stage,
) -> None:
    stage.cluster.average = "30"
    await stage.round()
    stage.cluster.set_replicas = 2
    for _ in range(3):
        await stage.round()
    assert stage.cluster.costs == OF_LOADS
    stage.cluster.replicas, stage.cluster.average = 2, "45"
    await stage.round()
    assert stage.cluster.costs == {}


async def test_at_a_load_that_stays_nothing_is_written(stage: Stage) -> None:
    stage.cluster.average = "70"
    for _ in range(5):
        await stage.round()
    assert stage.cluster.patches == []


async def test_each_step_of_a_scale_in_has_costs_of_its_own(stage: Stage) -> None:
    await stage.round()
    stage.cluster.replicas, stage.cluster.average = 2, "15"
    del stage.cluster.pods[NAMES["c"]]
    stage.bench.source.world = World((WorldPod(NAMES["b"], value=0), WorldPod(NAMES["d"])))
    stage.bench.clock.seconds += 600
    await stage.round()
    assert stage.told == [("c", "d"), ("b",)]
    assert stage.cluster.costs["b"] == "-2"


async def test_a_pod_that_gets_work_while_a_scale_in_is_near_loses_its_cost_to_another(
    stage: Stage,
) -> None:
    stage.cluster.average = "30"
    await stage.round()
    assert stage.told == [("c",)]
    source = stage.bench.source
    source.world = World((*source.world.pods[:1], WorldPod(NAMES["c"]), *source.world.pods[2:]))
    stage.bench.clock.seconds += 600
    await stage.round()
    assert stage.told == [("c",), ("d",)]
    assert stage.cluster.costs == {"b": "-1", "d": "-3"}


async def test_what_a_killed_process_has_left_goes_at_the_next_start(stage: Stage) -> None:
    stage.cluster.average = "70"
    stage.cluster.annotate("b", cost="-1", mark="-1")
    stage.cluster.annotate("c", cost="5", mark="-3")  # changed by someone else since
    stage.cluster.annotate("d", mark="-2")
    await stage.round()
    assert [stage.cluster.annotations(letter) for letter in NAMES] == [
        (None, None),
        ("5", None),
        (None, None),
    ]


async def test_at_its_end_it_removes_what_it_wrote_although_one_namespace_fails(
    stage: Stage,
) -> None:
    stage.namespaces = ["unknown", "ml"]
    stage.start()
    await stage.round()
    assert stage.cluster.costs
    await stage.end()
    assert stage.cluster.costs == {}
    stage.start()


async def test_a_patch_under_way_when_the_command_ends_is_removed_too(stage: Stage) -> None:
    """An API server carries out what it was sent, also if nobody waits for the answer."""
    cluster, task = stage.cluster, asyncio.create_task(stage.writer.run())
    listed = asyncio.Event()

    async def hold_back() -> None:
        if task.cancel():  # the first one: others are removals, after the task has ended its round
            cluster.hold_back = _at_once
            cluster.on_list = listed.set
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(listed.wait(), 0.2)

    cluster.hold_back = hold_back
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert cluster.patches
    assert cluster.costs == {}
    stage.start()


async def test_an_unknown_load_takes_the_costs_away(stage: Stage) -> None:
    await stage.round()
    assert stage.cluster.costs
    stage.bench.source.trouble = errors.SourceUnreachableError("connection refused")
    stage.bench.clock.seconds += 3600
    await stage.round()
    assert stage.cluster.costs == {}


async def test_a_pod_that_changes_between_list_and_patch_is_not_patched(stage: Stage) -> None:
    def other_cost() -> None:
        stage.cluster.annotate("c", cost="100")

    stage.cluster.before_patch = other_cost
    await stage.round()
    assert stage.cluster.annotations("c") == ("100", None)
    assert "c" not in stage.cluster.costs


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "statefulsets"},
        {"owner": ("Rollout", "bert")},
        {"owner": ("Deployment", "other")},
        {"triggers": [{"type": "cpu", "metadata": {"value": "80"}}]},
        {"triggers": [trigger(threshold="seventy")]},
        {"shown": {"status": {}}},
        {"shown": {"spec": {}}},
    ],
    ids=str,
)
async def test_other_workloads_and_triggers_get_no_cost(
    stage: Stage, change: dict[str, Any]
) -> None:
    for name, value in change.items():
        setattr(stage.cluster, name, value)
    await stage.round()
    assert stage.cluster.patches == []


async def test_a_pod_that_ends_is_left_alone(stage: Stage) -> None:
    stage.cluster.pods[NAMES["c"]]["metadata"]["deletionTimestamp"] = api_server.BEGUN
    await stage.round()
    assert stage.cluster.costs == {"b": "-1", "d": "-2"}


async def test_a_dry_run_only_says_which_pods_would_go(stage: Stage) -> None:
    stage.dry_run = True
    stage.start()
    await stage.round()
    assert stage.told == [("c", "d")]
    assert stage.cluster.patches == []


async def test_why_nothing_can_be_written_is_said_once_and_when_it_can_again(stage: Stage) -> None:
    stage.cluster.refusal = api_server.failure(403, "pods is forbidden")
    for _ in range(2):
        await stage.round()
    stage.cluster.refusal = None
    await stage.round()
    changes = [(fact.works, fact.reason) for fact in stage.bench.of(facts.WatchChanged)]
    assert changes == [
        (False, "cannot patch pods: HTTP 403, pods is forbidden"),
        (True, "they can be written again"),
    ]
    assert stage.cluster.costs == OF_LOADS
