"""Following a real cluster: its objects, and lightkube against a server that can fail."""

import asyncio
import contextlib
import math
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lightkube.models.core_v1 import Node, NodeStatus, Pod
from lightkube.models.meta_v1 import ObjectMeta
from starlette.responses import JSONResponse

from keda_gpu_scaler import errors
from keda_gpu_scaler.workbench.world import cluster, kubernetes
from tests.support.api_server import NODES, PODS, ApiServer, node, placed, serving

PATIENCE_SECONDS = 60
Json = dict[str, Any]


def container(gpus: str | None, name: str = "model") -> Json:
    limits = {"cpu": "1"} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return {"name": name, "resources": {"limits": limits}}


def read(*, metadata: Json | None = None, status: Json | None = None, **spec: object) -> Any:
    """Return what is shown of a pod with these fields, beside those of one that is placed."""
    pod = Pod.from_dict(
        {
            "metadata": {"name": "bert-0", "namespace": "team-a", "uid": "1", **(metadata or {})},
            "spec": {"containers": [container("1")], "nodeName": "blue", **spec},
            "status": status or {},
        }
    )
    assert isinstance(pod, Pod)
    return next(kubernetes.pods([pod]), None)


def owned(*owners: tuple[str, str, bool], **labels: str) -> Json:
    """Return the metadata of a pod with owners: kind, name, and whether it is the controller."""
    references = [
        {"apiVersion": "v1", "kind": kind, "name": name, "uid": "0", "controller": controls}
        for kind, name, controls in owners
    ]
    return {"metadata": {"ownerReferences": references, "labels": labels}}


def condition(status: str) -> Json:
    return {"conditions": [{"type": "Ready", "status": status}]}


def test_nodes_are_those_with_gpus_to_give() -> None:
    given = {
        "big": {"nvidia.com/gpu": "8"},
        "huge": {"nvidia.com/gpu": "1k"},
        "plain": {"cpu": "8"},
    }
    found = [
        Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=allocatable))
        for name, allocatable in given.items()
    ]
    assert dict(kubernetes.nodes([*found, Node()])) == {"big": 8, "huge": 1000}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": []},
        {"containers": [container(None)]},
        {"containers": [container("0")]},
        {"nodeName": None},
        {"status": {"phase": "Failed"}},
    ],
)
def test_a_pod_without_a_gpu_or_a_node_and_one_that_ended_are_not_shown(spec: Json) -> None:
    assert read(**spec) is None


HASHED = {"pod-template-hash": "5d4f8"}
BERT = {"workload": cluster.WorkloadKey("team-a", "bert")}
ASKS = {"containers": [container(None, "a"), container("2", "b"), container("1", "c")]}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (ASKS, {"gpus": 3, "container": "b"}),
        (owned(("ReplicaSet", "bert-5d4f8", True), **HASHED), BERT),
        (owned(("ReplicaSet", "bert", True)), BERT),
        (owned(("Quota", "other", False), ("Job", "bert", True)), BERT),
        (owned(), {"workload": cluster.WorkloadKey("team-a", "bert-0")}),
        ({}, {"ready_at": math.inf, "terminating": False}),
        ({"status": condition("True")}, {"ready_at": -math.inf}),
        ({"status": condition("Unknown")}, {"ready_at": math.inf}),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {"terminating": True}),
    ],
)
def test_what_is_shown_of_a_pod(fields: Json, shown: dict[str, object]) -> None:
    """Its controller is its workload, and its condition says Ready."""
    found = read(**fields)
    assert {name: getattr(found, name) for name in shown} == shown


# The lists of a server


@dataclass(slots=True)
class Following:
    """A cluster that is kept up to date, and what was reported while it was."""

    shown: cluster.Cluster = field(default_factory=cluster.Cluster)
    reports: list[str] = field(default_factory=list)
    listed: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def running(
        self, namespace: str | None = None, node_labels: dict[str, str] | None = None
    ) -> AsyncIterator[None]:
        following = kubernetes.following(
            self.shown,
            self.listed.set,
            self.reports.append,
            namespace=namespace,
            node_labels=node_labels,
            pause_seconds=0.01,
        )
        async with following:
            yield

    def pods(self) -> set[str]:
        return {pod.name for pod in self.shown.pods.values()}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.01)


BERT_POD, LLM_POD = "bert-5d4f8-aaaaa", "llm-5d4f8-bbbbb"


@pytest_asyncio.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    """An API server with two nodes in two zones, and a pod on each."""
    nodes = [node("blue", zone="a"), node("green", zone="b")]
    pods = [placed(BERT_POD, "blue", "bert"), placed(LLM_POD, "green", "llm", namespace="team-b")]
    async with serving(ApiServer({NODES: nodes, PODS: pods})) as api:
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path))
        yield api


@pytest.mark.parametrize(
    ("namespace", "labels", "shown"),
    [
        (None, None, {BERT_POD, LLM_POD}),
        ("team-b", None, {LLM_POD}),
        (None, {"zone": "a"}, {BERT_POD}),
    ],
)
async def test_pods_are_shown_as_they_come_and_namespace_and_node_labels_narrow_them(
    api: ApiServer, namespace: str | None, labels: dict[str, str] | None, shown: set[str]
) -> None:
    following = Following()
    async with following.running(namespace, labels):
        await following.listed.wait()
        assert following.pods() == shown
        new = placed("new", "blue", "new", namespace=namespace or "team-a")
        api.objects[PODS].append(new)
        await until(lambda: following.pods() == shown | {"new"})
    assert following.reports == []


async def test_a_list_that_fails_changes_nothing_and_is_said_once(api: ApiServer) -> None:
    following = Following()
    async with following.running():
        await following.listed.wait()
        api.trouble[PODS, "list"] = JSONResponse({"message": "not yet"}, 503)
        await until(lambda: bool(following.reports))
        before = len(api.asked)
        await until(lambda: len(api.asked) > before + 2)
        assert following.pods() == {BERT_POD, LLM_POD}
        assert len(following.shown.nodes) == 2
        api.trouble.clear()
        await until(lambda: len(following.reports) > 1)
    assert following.reports == [
        "cannot list nodes and pods: not yet",
        "nodes and pods are listed again",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "Configuration file "),
        ("{}", "the kubeconfig has no 'clusters'"),
    ],
)
async def test_a_wrong_configuration_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, message: str
) -> None:
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    if text is not None:
        path.write_text(text)
    with pytest.raises(errors.SettingsError, match=re.escape(f"no cluster to follow: {message}")):
        async with Following().running():
            pass
