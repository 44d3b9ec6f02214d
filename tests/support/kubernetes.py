"""An API server as far as lists of nodes and pods go, on a real port, that fails when told to."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keda_gpu_scaler.simulator import web

TOKEN = "only-for-tests"  # noqa: S105 - it opens nothing but the server below


def node(name: str, gpus: str | None = "2", **labels: str) -> dict[str, object]:
    """Return a node as JSON."""
    allocatable = {"cpu": "8"} | ({"nvidia.com/gpu": gpus} if gpus else {})
    metadata = {"name": name, "uid": f"node-{name}", "labels": labels}
    return {"metadata": metadata, "status": {"allocatable": allocatable}}


def pod(name: str, home: str, workload: str, *, namespace: str = "team-a") -> dict[str, object]:
    """Return a Ready pod of a Deployment, with one GPU, as JSON."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{workload}-5d4f8", "uid": "r"}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{name}",
            "labels": {"pod-template-hash": "5d4f8"},
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {
            "nodeName": home,
            "containers": [{"name": "model", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


@dataclass(slots=True)
class ApiServer:
    """What the server has, and what was asked of it."""

    nodes: list[dict[str, object]] = field(default_factory=list)
    pods: list[dict[str, object]] = field(default_factory=list)
    trouble: Response | None = None
    """Answered to a list of pods instead of one."""
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def application(self) -> Starlette:
        """Return the two lists as an ASGI application."""
        return Starlette(
            routes=[
                Route("/api/v1/nodes", self._list_nodes),
                Route("/api/v1/pods", self._list_pods),
                Route("/api/v1/namespaces/{namespace}/pods", self._list_pods),
            ]
        )

    def kubeconfig(self, directory: Path) -> str:
        """Write the way to the server into a file and return its path."""
        path = directory / "kubeconfig"
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        user = {"name": "u", "user": {"token": TOKEN}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        parts = {"clusters": [cluster], "users": [user], "contexts": [context]}
        path.write_text(json.dumps(parts | {"current-context": "x"}))
        return str(path)

    async def _list_nodes(self, request: Request) -> Response:
        selector = parse_qs(request.url.query).get("labelSelector", [""])[0]
        wanted = dict(each.split("=") for each in selector.split(",") if each)
        return self._list(request, [each for each in self.nodes if _labels(each) >= wanted.items()])

    async def _list_pods(self, request: Request) -> Response:
        namespace = request.path_params.get("namespace")
        found = [each for each in self.pods if namespace in (None, _namespace(each))]
        return self.trouble or self._list(request, found)

    def _list(self, request: Request, items: list[dict[str, object]]) -> Response:
        self.asked.append(str(request.url.path))
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        return JSONResponse({"metadata": {"resourceVersion": "1"}, "items": items})


def _metadata(item: dict[str, object]) -> dict[str, dict[str, str]]:
    metadata = item["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def _labels(item: dict[str, object]) -> set[tuple[str, str]]:
    return set(_metadata(item)["labels"].items())


def _namespace(item: dict[str, object]) -> object:
    return _metadata(item)["namespace"]


class Served(Protocol):
    """An API server that is not listening yet."""

    port: int

    def application(self) -> Starlette:
        """Return what answers."""


ServedT = TypeVar("ServedT", bound=Served)


@contextlib.asynccontextmanager
async def serving(api: ServedT) -> AsyncIterator[ServedT]:
    """Serve on a free port, or on the one the server had before."""
    server = web.server(api.application(), port=api.port)
    api.port = await server.start()
    try:
        yield api
    finally:
        await server.stop()
