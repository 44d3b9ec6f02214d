"""Following a real cluster: its objects, and lightkube against a server that can fail."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from lightkube.models.core_v1 import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from starlette.responses import JSONResponse, PlainTextResponse, Response

from keda_gpu_scaler import errors
from keda_gpu_scaler.simulator import cluster, kubernetes
from tests.support import kubernetes as api_server

PATIENCE_SECONDS = 60
KEY = cluster.Key("team-a", "bert")


def owner(kind: str, name: str, *, controller: bool = True) -> OwnerReference:
    return OwnerReference("v1", kind, name, uid="0", controller=controller)


def container(gpus: str | None, name: str = "model") -> Container:
    limits = {"cpu": "1"} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return Container(name, resources=ResourceRequirements(limits=limits))


def real(
    *containers: Container,
    metadata: ObjectMeta | None = None,
    node: str | None = "blue",
    status: PodStatus | None = None,
) -> Pod:
    named = metadata or ObjectMeta(name="bert-0", namespace="team-a", uid="1")
    spec = PodSpec(containers=list(containers or [container("1")]), nodeName=node)
    return Pod(metadata=named, spec=spec, status=status)


# What Kubernetes objects say


def test_nodes_are_those_with_gpus_to_give() -> None:
    def node(name: str, allocatable: dict[str, str] | None) -> Node:
        return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=allocatable))

    found = [
        node("big", {"nvidia.com/gpu": "8"}),
        node("huge", {"nvidia.com/gpu": "1k"}),
        node("broken", {"nvidia.com/gpu": "0"}),
        node("plain", {"cpu": "8"}),
        node("new", None),
        Node(metadata=ObjectMeta(name="newest")),
    ]
    assert dict(kubernetes.nodes(found)) == {"big": 8, "huge": 1000, "broken": 0}


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        pytest.param(real(), True, id="scheduled and not started"),
        pytest.param(real(status=PodStatus(phase="Running")), True, id="running"),
        pytest.param(real(status=PodStatus(phase="Failed")), True, id="failed"),
        pytest.param(real(node=None), False, id="pending without a node"),
        pytest.param(real(container(None)), False, id="asks for no GPU"),
        pytest.param(real(container("0")), False, id="asks for none in words"),
        pytest.param(real(Container("model")), False, id="asks for nothing"),
        pytest.param(Pod(), False, id="empty"),
    ],
)
def test_a_pod_that_was_placed_has_gpus_if_it_asks_for_them(pod: Pod, *, shown: bool) -> None:
    assert bool(list(kubernetes.pods([pod]))) is shown


def test_the_gpus_of_all_containers_count_and_the_first_of_them_names_the_container() -> None:
    (found,) = kubernetes.pods(
        [real(container(None, "proxy"), container("2", "a"), container("1", "b"))]
    )
    assert (found.gpus, found.container) == (3, "a")


@pytest.mark.parametrize(
    ("name", "owners", "labels", "workload"),
    [
        pytest.param(
            "bert-5d4f8-abcde",
            [owner("ReplicaSet", "bert-5d4f8")],
            {"pod-template-hash": "5d4f8"},
            "bert",
            id="Deployment",
        ),
        pytest.param("bert-abcde", [owner("ReplicaSet", "bert")], None, "bert", id="ReplicaSet"),
        pytest.param("bert-0", [owner("StatefulSet", "bert")], {}, "bert", id="StatefulSet"),
        pytest.param("bert-abcde", [owner("Job", "bert")], None, "bert", id="Job"),
        pytest.param(
            "bert-abcde",
            [owner("Quota", "other", controller=False), owner("Job", "bert")],
            None,
            "bert",
            id="an owner that is no controller",
        ),
        pytest.param("bert", None, None, "bert", id="bare pod"),
    ],
)
def test_the_workload_of_a_pod_is_its_controller(
    name: str, owners: list[OwnerReference] | None, labels: dict[str, str] | None, workload: str
) -> None:
    metadata = ObjectMeta(name=name, namespace="team-a", ownerReferences=owners, labels=labels)
    (found,) = kubernetes.pods([real(metadata=metadata)])
    assert found.workload == cluster.Key("team-a", workload)


def condition(kind: str, status: str) -> PodCondition:
    return PodCondition(type=kind, status=status)


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([condition("Initialized", "True"), condition("Ready", "True")], True),
        ([condition("Initialized", "True"), condition("Ready", "False")], False),
        ([condition("Ready", "Unknown")], False),
        (None, False),
    ],
)
def test_a_pod_is_ready_by_its_condition(
    conditions: list[PodCondition] | None, *, ready: bool
) -> None:
    (found,) = kubernetes.pods([real(status=PodStatus(phase="Running", conditions=conditions))])
    assert found.is_ready(0) is ready


def test_a_pod_that_was_deleted_is_terminating() -> None:
    (alive,) = kubernetes.pods([real()])
    gone = ObjectMeta(name="bert-0", deletionTimestamp=datetime(2026, 1, 1, tzinfo=UTC))
    (terminating,) = kubernetes.pods([real(metadata=gone)])
    assert (alive.terminating, terminating.terminating) == (False, True)


@pytest.mark.parametrize(
    ("phase", "ended"), [("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_a_pod_that_succeeded_or_failed_has_completed(phase: str, *, ended: bool) -> None:
    (found,) = kubernetes.pods([real(status=PodStatus(phase=phase))])
    assert found.completed is ended


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
        """Follow the cluster that the environment names."""
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
        """Name all pods that are shown."""
        return {pod.name for pod in self.shown.pods.values()}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.01)


@pytest.fixture
async def api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[api_server.ApiServer]:
    api = api_server.ApiServer(
        nodes=[api_server.node("blue", zone="a"), api_server.node("green", zone="b")],
        pods=[
            api_server.pod("bert-5d4f8-aaaaa", "blue", "bert"),
            api_server.pod("llm-5d4f8-bbbbb", "green", "llm", namespace="team-b"),
        ],
    )
    async with api_server.serving(api):
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path))
        yield api


async def test_nodes_and_pods_of_the_cluster_are_shown(api: api_server.ApiServer) -> None:
    following = Following()
    async with following.running():
        await following.listed.wait()
        assert following.pods() == {"bert-5d4f8-aaaaa", "llm-5d4f8-bbbbb"}
        assert list(following.shown.nodes) == ["blue", "green"]
        api.pods.append(api_server.pod("bert-5d4f8-ccccc", "green", "bert"))
        await until(lambda: len(following.pods()) == 3)
    assert following.reports == []
    assert set(api.asked) == {"/api/v1/nodes", "/api/v1/pods"}


@pytest.mark.parametrize(
    ("namespace", "labels", "shown"),
    [
        ("team-b", None, {"llm-5d4f8-bbbbb"}),
        (None, {"zone": "a"}, {"bert-5d4f8-aaaaa"}),
        ("team-b", {"zone": "a"}, set()),
    ],
)
async def test_namespace_and_node_labels_narrow_what_is_shown(
    api: api_server.ApiServer,
    namespace: str | None,
    labels: dict[str, str] | None,
    shown: set[str],
) -> None:
    following = Following()
    async with following.running(namespace, labels):
        await following.listed.wait()
    assert following.pods() == shown
    assert ("/api/v1/pods" in api.asked) is (namespace is None)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (JSONResponse({"message": "not yet"}, 503), "not yet"),
        (PlainTextResponse("bad gateway", 502), "Server error '502 Bad Gateway'"),
        (
            PlainTextResponse("", 404, headers={"content-type": ""}),
            "Client error '404 Not Found'",
        ),
        (PlainTextResponse("hello"), "JSON is malformed"),
        (JSONResponse({"metadata": {}, "items": [{"spec": 7}]}), "Expected `object | null`"),
    ],
    ids=["error", "proxy", "untyped", "garbage", "other types"],
)
async def test_a_list_that_fails_changes_nothing_and_is_said_once(
    api: api_server.ApiServer, trouble: Response, message: str
) -> None:
    following = Following()
    async with following.running():
        await following.listed.wait()
        api.trouble = trouble
        await until(lambda: bool(following.reports))
        before = len(api.asked)
        await until(lambda: len(api.asked) > before)
        assert following.pods() == {"bert-5d4f8-aaaaa", "llm-5d4f8-bbbbb"}
        assert len(following.shown.nodes) == 2
        api.trouble = None
        await until(lambda: len(following.reports) > 1)
    failure, recovery = following.reports
    assert failure.startswith(f"cannot list nodes and pods: {message}")
    assert recovery == "nodes and pods are listed again"


async def test_a_server_that_is_away_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = api_server.ApiServer(nodes=[api_server.node("blue")])
    async with api_server.serving(api):
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path))
    following = Following()
    async with following.running():
        await until(lambda: bool(following.reports))
        assert not following.listed.is_set()
        async with api_server.serving(api):
            await following.listed.wait()
    assert list(following.shown.nodes) == ["blue"]
    assert following.reports[0].startswith(
        "cannot list nodes and pods: All connection attempts failed"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "Configuration file "),
        ("{}", "the kubeconfig has no 'clusters'"),
        ("{", "while parsing a flow "),
        ("{clusters: [], contexts: []}", "No current context set"),
    ],
)
async def test_a_wrong_configuration_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, message: str
) -> None:
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    if text is not None:
        path.write_text(text)
    with pytest.raises(errors.SettingsError, match=f"no cluster to follow: {message}"):
        async with Following().running():
            pass
