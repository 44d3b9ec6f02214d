"""Following a real cluster: lightkube against a server on a real port that can fail."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from keda_gpu_scaler.simulator import cluster, mirror
from keda_gpu_scaler.simulator.kubernetes import Follower, Scope
from tests.support import kubernetes

PATIENCE_SECONDS = 60
KEY = cluster.Key("team-a", "bert")


@dataclass(slots=True)
class Following:
    """A mirror that is kept up to date, and what was said while it was."""

    shown: mirror.Mirror = field(default_factory=mirror.Mirror)
    said: list[str] = field(default_factory=list)
    listed: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def running(self, scope: Scope | None = None) -> AsyncIterator[None]:
        """Follow the cluster that the environment names."""
        follower = Follower(self.shown, scope or Scope(), self.said.append, 0.01)
        async with follower.running(self.listed.set):
            yield

    def pods(self) -> set[str]:
        """Name all pods that are shown."""
        return {name for workload in self.shown.workloads.values() for name in workload.pods}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.01)


@pytest.fixture
async def api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[kubernetes.ApiServer]:
    api = kubernetes.ApiServer(
        nodes=[kubernetes.node("blue", zone="a"), kubernetes.node("green", zone="b")],
        pods=[
            kubernetes.pod("bert-5d4f8-aaaaa", "blue", "bert"),
            kubernetes.pod("llm-5d4f8-bbbbb", "green", "llm", namespace="team-b"),
        ],
    )
    async with kubernetes.serving(api):
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path))
        yield api


async def test_nodes_and_pods_of_the_cluster_are_shown(api: kubernetes.ApiServer) -> None:
    following = Following()
    async with following.running():
        await following.listed.wait()
        assert following.pods() == {"bert-5d4f8-aaaaa", "llm-5d4f8-bbbbb"}
        assert [node.host for node in following.shown.nodes] == ["blue", "green"]
        api.pods.append(kubernetes.pod("bert-5d4f8-ccccc", "green", "bert"))
        await until(lambda: len(following.shown.workloads[KEY].pods) == 2)
    assert following.said == []
    assert set(api.asked) == {"/api/v1/nodes", "/api/v1/pods"}


@pytest.mark.parametrize(
    ("scope", "shown"),
    [
        (Scope(namespace="team-b"), {"llm-5d4f8-bbbbb"}),
        (Scope(node_labels={"zone": "a"}), {"bert-5d4f8-aaaaa"}),
        (Scope("team-b", {"zone": "a"}), set()),
    ],
)
async def test_namespace_and_node_labels_narrow_what_is_shown(
    api: kubernetes.ApiServer, scope: Scope, shown: set[str]
) -> None:
    following = Following()
    async with following.running(scope):
        await following.listed.wait()
    assert following.pods() == shown
    assert ("/api/v1/pods" in api.asked) is (scope.namespace is None)


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
    api: kubernetes.ApiServer, trouble: Response, message: str
) -> None:
    following = Following()
    async with following.running():
        await following.listed.wait()
        api.trouble = trouble
        await until(lambda: bool(following.said))
        before = len(api.asked)
        await until(lambda: len(api.asked) > before)
        assert following.pods() == {"bert-5d4f8-aaaaa", "llm-5d4f8-bbbbb"}
        assert len(following.shown.nodes) == 2
        api.trouble = None
        await until(lambda: len(following.said) > 1)
    failure, recovery = following.said
    assert failure.startswith(f"cannot list nodes and pods: {message}")
    assert recovery == "nodes and pods are listed again"


async def test_a_server_that_is_away_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = kubernetes.ApiServer(nodes=[kubernetes.node("blue")])
    async with kubernetes.serving(api):
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path))
    following = Following()
    async with following.running():
        await until(lambda: bool(following.said))
        assert not following.listed.is_set()
        async with kubernetes.serving(api):
            await following.listed.wait()
    assert [node.host for node in following.shown.nodes] == ["blue"]
    assert following.said[0].startswith(
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
def test_a_wrong_configuration_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, message: str
) -> None:
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=f"no cluster to follow: {message}"):
        Follower(mirror.Mirror(), Scope(), print)
